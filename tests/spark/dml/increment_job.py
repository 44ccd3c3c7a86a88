"""Job of :mod:`tests.spark.dml.test_dml`: adds one to every row of a table, again and again; several run at once."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import pyhudi
from pyhudi import HudiTable
from tests.sessions import SMALL

OPTIONS = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.num.retries.on.conflict.failures": "1000",
}


def add_one(table: HudiTable, times: int) -> None:
    """Add one to all rows, ``times`` times."""
    for _ in range(times):
        table.update({"fare": "fare + 1"}, options=OPTIONS)


def main(path: str, times: int) -> None:
    builder = SparkSession.builder.master("local[1]")
    for key, value in {**SMALL, "spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g"}.items():
        builder = builder.config(key, value)
    spark = pyhudi.configure_spark(builder).getOrCreate()
    add_one(HudiTable.for_path(path), times)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
