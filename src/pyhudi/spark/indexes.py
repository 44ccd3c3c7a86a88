"""Builds indexes with as many records as the table has, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from pyhudi.metadata.secondary import SECONDARY
from pyhudi.services.indexes import IndexRequest
from pyhudi.services.indexing import Builder, LockedTable
from pyhudi.spark.recordbuild import build_record_index
from pyhudi.spark.secondaryindex import build_secondary_index

if TYPE_CHECKING:
    from pyhudi.table.config import TableConfig


def spark_builder(spark: SparkSession) -> Builder:
    """What builds indexes on that Spark."""

    def build(table: LockedTable, request: IndexRequest) -> TableConfig:
        if request.kind != SECONDARY:
            return build_record_index(spark, table.storage, table.config, table.opts, table.data, table.completion)
        build_secondary_index(
            spark, table.storage, table.config, table.opts, table.data, request.secondary, table.completion
        )
        return table.config

    return build
