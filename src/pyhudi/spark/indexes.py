"""Builds indexes on Spark: those with as many records as the table has, and those of values that Spark computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from pyhudi.metadata.secondary import SECONDARY
from pyhudi.services.indexes import IndexRequest
from pyhudi.services.indexing import Builder, LockedTable
from pyhudi.spark.expressionindex import build_expression_index
from pyhudi.spark.recordbuild import build_record_index
from pyhudi.spark.secondaryindex import build_secondary_index

if TYPE_CHECKING:
    from pyhudi.table.config import TableConfig


def spark_builder(spark: SparkSession) -> Builder:
    """What builds indexes on that Spark."""

    def build(table: LockedTable, request: IndexRequest) -> TableConfig:
        if request.expression is not None:
            build_expression_index(spark, table, request.expression)
            return table.config
        if request.kind != SECONDARY:
            return build_record_index(spark, table.storage, table.config, table.opts, table.data, table.completion)
        build_secondary_index(
            spark, table.storage, table.config, table.opts, table.data, request.secondary, table.completion
        )
        return table.config

    return build
