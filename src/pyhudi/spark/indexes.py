"""Builds indexes on Spark: those with as many records as the table has, and those of values that Spark computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from pyhudi.config import options
from pyhudi.metadata.deltas import GroupFiles
from pyhudi.metadata.expressions import ExpressionIndex
from pyhudi.metadata.filefacts import FirstGroups
from pyhudi.metadata.home import file_group_ids
from pyhudi.metadata.initialize import group_count, table_contents
from pyhudi.metadata.secondary import SECONDARY
from pyhudi.services.indexbuild import Prepared, Preparer
from pyhudi.services.indexes import IndexRequest
from pyhudi.services.indexing import Builder, LockedTable
from pyhudi.spark.expressionindex import build_expression_index, first_records
from pyhudi.spark.expressions import check_expression
from pyhudi.spark.failures import task_errors
from pyhudi.spark.recordbuild import FirstKeys, build_record_index, record_index_definition, refuse_doubled
from pyhudi.spark.secondaryindex import FirstEntries, build_secondary_index
from pyhudi.write.guards import check_record_index

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


def spark_preparer(spark: SparkSession) -> Preparer:
    """What prepares indexes on that Spark that are built while writers go on."""

    def prepare(table: LockedTable, request: IndexRequest, instant: str) -> Prepared:
        storage, config, opts, data = table.storage, table.config, table.opts, table.data
        if request.expression is not None:
            return _prepared_expression(spark, table, request.expression, instant)
        if request.kind == SECONDARY:
            entries = FirstEntries.of(spark, storage, config, opts, data, request.secondary)
            return Prepared(request.partition, entries.groups, None, lambda: _in_tasks(entries.write, instant))
        partitioned = not opts.get_typed(options.METADATA_GLOBAL_RECORD_INDEX_ENABLE)
        check_record_index(config, opts)
        keys = FirstKeys.of(spark, storage, config, opts, data, partitioned=partitioned)
        definition = None if config.version < 9 else record_index_definition(partitioned=partitioned)
        return Prepared(
            request.partition,
            keys.groups.ids,
            definition,
            lambda: _in_tasks(keys.write, instant),
            partial(refuse_doubled, keys),
        )

    return prepare


def _prepared_expression(spark: SparkSession, table: LockedTable, index: ExpressionIndex, instant: str) -> Prepared:
    check_expression(spark, index.expression, table.schema)
    groups = file_group_ids(index.partition, group_count(index.partition, table.opts))
    live, columns = table_contents(table.storage, table.config, table.data).live, table.schema

    def write() -> Sequence[Mapping[str, Any]]:
        records = first_records(spark, table, index, live, columns)
        files = GroupFiles(table.storage, index.partition, instant, table.config.version)
        return FirstGroups(files, groups).write(records)

    return Prepared(index.partition, groups, None, write)


def _in_tasks(write: Callable[[str], Sequence[Mapping[str, Any]]], instant: str) -> Sequence[Mapping[str, Any]]:
    with task_errors():
        return write(instant)
