"""Job of :mod:`tests.interop.sql.test_sql`, on a Spark of its own: tables of a Hive metastore, one by Apache Hudi."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import pyhudi
from tests.sessions import SMALL


def main(settings: dict[str, str]) -> None:
    builder = SparkSession.builder.master("local[1]")
    for key, value in {**SMALL, "spark.sql.shuffle.partitions": "1", **settings}.items():
        builder = builder.config(key, value)
    spark = pyhudi.configure_spark(builder).getOrCreate()
    pyhudi.activate(spark)
    found: list[object] = [sorted(spark.table("theirs").select("id", "city").collect())]
    spark.sql("INSERT INTO theirs VALUES (3, 'Oslo')")
    spark.sql("CREATE TABLE ours USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT id, city FROM theirs")
    found.append(sorted(spark.sql("SELECT o.id, t.city FROM ours o JOIN theirs t USING (id)").collect()))
    found.append(sorted(row.tableName for row in spark.sql("SHOW TABLES").collect()))
    pyhudi.deactivate()
    try:
        found.append(spark.sql("SELECT count(*) FROM ours").collect())
    except Exception as error:
        found.append("pyhudi.activate" in str(error))
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
