"""What :mod:`tests.spark.test_cluster` runs: tables written and read by executors in a JVM of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.sessions import SMALL

import pyhudi
from pyhudi.spark.java import ensure_java
from pyhudi.spark.session import configure_spark


def run(folder: Path) -> list[Any]:
    """The rows of tables of both types, with and without the names of columns in folders, after an upsert."""
    ensure_java()
    builder = configure_spark(SparkSession.builder.master("local-cluster[1,2,1024]"))
    executors = {"spark.executor.extraJavaOptions": SMALL["spark.driver.extraJavaOptions"]}
    for key, value in {**SMALL, **executors, "spark.sql.shuffle.partitions": "2"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    pyhudi.activate(spark)
    answers = []
    for table_type, hive in (("COPY_ON_WRITE", "false"), ("MERGE_ON_READ", "false"), ("MERGE_ON_READ", "true")):
        path = str(folder / f"{table_type}-{hive}")
        _write(spark, path, table_type, hive)
        rows = spark.read.format("hudi").load(path)
        answers.append(
            [list(row) for row in rows.where("p = '3' or p = '4'").select("id", "v").orderBy("id").collect()]
        )
    return answers


def _write(spark: SparkSession, path: str, table_type: str, hive: str) -> None:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.hive_style_partitioning": hive,
    }
    rows = spark.range(40).selectExpr("id", "cast(id % 5 as string) as p", "id * 2 as v")
    for batch in (rows, rows.where("id % 7 = 0").withColumn("v", -rows["v"])):
        batch.write.format("hudi").options(**options).mode("append").save(path)


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]))))
