"""Job of :mod:`tests.interop.write.test_s3a`: a Spark session that accesses S3 through Hadoop's own file system."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.spark.session import configure_spark


def run(conf: Mapping[str, str], folder: str, storage: Mapping[str, str], types: Sequence[str]) -> list[dict[str, Any]]:
    """Return the results of `_one` for tables of these types."""
    builder = configure_spark(SparkSession.builder.master("local[2]"))
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    pyhudi.activate(spark)
    return [_one(spark, f"{folder}/{table_type}", storage, table_type) for table_type in types]


def _one(spark: SparkSession, path: str, storage: Mapping[str, str], table_type: str) -> dict[str, Any]:
    """Write a table twice and read it, with partition columns from folders and with the real addresses."""
    options = {
        **storage,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.table.type": table_type,
    }
    rows = spark.range(100).selectExpr("id", "cast(id % 5 as string) as p", "id * 2 as v")
    for batch in (rows, rows.where("id % 7 = 0").withColumn("v", -rows["v"])):
        batch.write.format("hudi").options(**options).mode("append").save(path)
    by_folders, by_files = (
        spark.read.format("hudi").options(**storage, **{"pyhudi.read.partition.values": wish}).load(path)
        for wish in ("auto", "file")
    )
    return {
        "folders": _answers(by_folders),
        "files": _answers(by_files),
        "pruned": "p#" in _partition_filters(by_folders.where("p = '3'")),
        "addresses": sorted({file.partition(":")[0] for file in by_folders.inputFiles()}),
    }


def _answers(rows: DataFrame) -> list[list[Any]]:
    return [list(row) for row in rows.where("p = '3' and id < 50").select("id", "v").orderBy("id").collect()]


def _partition_filters(rows: DataFrame) -> str:
    plan = rows._jdf.queryExecution().toString()  # type: ignore[operator]
    return "".join(re.findall(r"PartitionFilters: \[([^\]]*)\]", plan))


if __name__ == "__main__":
    print(json.dumps(run(*(json.loads(text) for text in sys.argv[1:]))))
