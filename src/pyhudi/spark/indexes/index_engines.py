"""Index builds on Spark: indexes with as many records as the table, and indexes of values that Spark computes."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles
from pyhudi.metadata.indexes.expression_index_definition import ExpressionIndex
from pyhudi.metadata.indexes.record_index_definition import record_index_definition
from pyhudi.metadata.indexes.secondary_index_definition import SECONDARY
from pyhudi.metadata.metadata_layout import file_group_ids
from pyhudi.metadata.writer.initial_statistics import InitialFileGroups
from pyhudi.metadata.writer.initialize_partitions import initial_file_group_count, table_contents
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.services.indexing.index_builder import Builder, columns_of
from pyhudi.services.indexing.index_preparation import PreparedIndex, Preparer
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.spark.indexes.expression_index import build_expression_index, first_records
from pyhudi.spark.indexes.expression_values import check_expression
from pyhudi.spark.indexes.record_index.initial_keys import InitialKeys
from pyhudi.spark.indexes.record_index.record_index_build import build_record_index, refuse_duplicate_keys
from pyhudi.spark.indexes.secondary_index import InitialEntries, build_secondary_index
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.commit_metadata import WriteStat


def spark_index_builder(spark: SparkSession) -> Builder:
    """Return an index builder that runs on a Spark session."""

    def build(table: LockedTable, request: IndexRequest) -> TableConfig:
        if request.expression is not None:
            build_expression_index(spark, table, request.expression)
            return table.config
        if request.kind != SECONDARY:
            return build_record_index(spark, table)
        build_secondary_index(spark, table, request.secondary)
        return table.config

    return build


def spark_index_preparer(spark: SparkSession) -> Preparer:
    """Return an index builder that runs on a Spark session while other writers commit."""

    def prepare(table: LockedTable, request: IndexRequest, instant: str) -> PreparedIndex:
        if request.expression is not None:
            return _prepared_expression(spark, table, request.expression, instant)
        if request.kind == SECONDARY:
            entries = InitialEntries.from_table(spark, table, request.secondary)
            return PreparedIndex(request.partition, entries.groups, None, partial(entries.write, instant))
        keys = InitialKeys.from_table(spark, table.snapshot, table.opts)
        definition = record_index_definition(partitioned=keys.groups.partitioned) if table.config.version >= 9 else None
        return PreparedIndex(
            request.partition,
            keys.groups.ids,
            definition,
            partial(keys.write, instant),
            partial(refuse_duplicate_keys, keys),
        )

    return prepare


def _prepared_expression(
    spark: SparkSession, table: LockedTable, index: ExpressionIndex, instant: str
) -> PreparedIndex:
    columns = columns_of(table)
    check_expression(spark, index.expression, columns)
    groups = file_group_ids(index.partition, initial_file_group_count(index.partition, table.opts))
    live = table_contents(table.snapshot).live

    def write() -> list[WriteStat]:
        records = first_records(spark, table, index, live, columns)
        files = GroupFiles(table.storage, index.partition, instant, table.config.version)
        return InitialFileGroups(files, groups).write(records)

    return PreparedIndex(index.partition, groups, None, write)
