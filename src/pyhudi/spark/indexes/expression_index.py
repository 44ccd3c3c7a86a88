"""Builds and updates of expression indexes on Spark."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.config import options
from pyhudi.config.enums import InvalidText
from pyhudi.errors import UnsupportedTableError
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles
from pyhudi.metadata.file_groups.log_file_groups import write_logs
from pyhudi.metadata.indexes.expression_index_definition import (
    ExpressionIndex,
    can_be_indexed,
    can_be_kept,
    expression_indexes,
)
from pyhudi.metadata.indexes.expression_index_records import expression_bloom_records, expression_stats_records
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, load_metadata_timeline
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.writer.commit_records import files_of_commit
from pyhudi.metadata.writer.file_records import logs_have_statistics
from pyhudi.metadata.writer.initialize_partitions import build_partition, initial_file_group_count, table_contents
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.read.schema.table_columns import schema_after
from pyhudi.schema.name_resolution import field_type
from pyhudi.services.indexing.index_builder import columns_of
from pyhudi.spark.indexes.expression_values import check_expression, summarize_files
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.read.pruning.overridden_functions import overridden_functions
from pyhudi.spark.spark_errors import refused_values
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import WriteStat

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _IndexedFiles:
    """Files whose values are added to an index at an instant. ``columns`` are those of the table; ``is_initial``: the
    index is being built."""

    files: pa.Table
    columns: pa.Schema
    instant: str
    is_initial: bool = False
    invalid_text: InvalidText = InvalidText.FAIL


def build_expression_index(spark: SparkSession, table: LockedTable, index: ExpressionIndex) -> None:
    """Build an expression index over the current content of a table, without declaring it. Runs a Spark job.

    Raises:
        ConfigError: Spark has no such function for a column of that type.
        UnsupportedTableError: Some values are null and the index has bloom filters.
    """
    columns = columns_of(table)
    check_expression(spark, index.expression, columns)
    records = first_records(spark, table, index, table_contents(table.snapshot).live, columns)
    count = initial_file_group_count(index.partition, table.opts)
    build_partition(table, index.partition, count, lambda groups: groups.write(records))


def first_records(
    spark: SparkSession, table: LockedTable, index: ExpressionIndex, live: pa.Table, columns: pa.Schema
) -> RecordChanges:
    """Return the records of an expression index for all live files (``live``) of a table with these columns. Runs a
    Spark job.

    Raises:
        UnsupportedTableError: Some values are null and the index has bloom filters, or the session fails to
            compute some values.
    """
    newest = pc.max(live["instant"]).as_py() or ""
    with refused_values(str(index.expression)):
        invalid_text = table.opts.get_typed(options.READ_INVALID_TEXT)
        files = _IndexedFiles(live, columns, newest, is_initial=True, invalid_text=invalid_text)
        (records,) = _records(spark, table.storage, table.config, [index], files)
    if records is None:
        raise UnsupportedTableError(
            f"{index.expression} is null in some rows, and Apache Hudi does not support bloom filters of such "
            "values; build a column_stats index instead"
        )
    return records


def expression_delta(commit: IndexedCommit, only: Collection[str] | None = None) -> IndexDelta | None:
    """Write the updates of expression indexes. Runs a Spark job.

    Args:
        commit: The commit.
        only: Index partitions to update; None: all.

    Returns:
        The update, without indexes whose values cannot be computed, which the caller disables; None if the table has no
        expression indexes that pyhudi maintains.
    """
    spark, storage, config = commit.spark, commit.storage, commit.config
    selected = [
        one
        for one in expression_indexes(storage, config, include_building=True)
        if only is None or one.partition in only
    ]
    columns = schema_after(TableSnapshot.load(commit.client), commit.metadata) if selected else pa.schema([])
    indexes = [
        index
        for index in selected
        if can_be_kept(index, config)
        and can_be_indexed(index, field_type(columns, index.expression.column), config.version)
        and not _is_overridden(spark, index, storage)
    ]
    if not indexes:
        return None
    names = [index.partition for index in indexes]
    try:
        files = _IndexedFiles(files_of_commit(commit.metadata), columns, commit.instant)
        index_records = _records(spark, storage, config, indexes, files)
        kept = {name: records for name, records in zip(names, index_records, strict=True) if records is not None}
        stats = _written(commit, kept)
    except Exception as failure:  # also errors that Spark's own functions raise for some values
        _log.warning("%s of %s cannot be maintained: %s", ", ".join(names), storage.root, failure)
        return None
    return IndexDelta(frozenset(kept), stats)


def _is_overridden(spark: SparkSession, index: ExpressionIndex, storage: Storage) -> bool:
    """Return True if the session overrides the function that the index is built on."""
    overridden = overridden_functions(spark, [index.expression.function])
    if overridden:
        _log.warning(
            "%s of %s cannot be maintained: the session defines a function named %s",
            index.partition,
            storage.root,
            ", ".join(overridden),
        )
    return bool(overridden)


def _written(commit: IndexedCommit, records: Mapping[str, RecordChanges]) -> list[WriteStat]:
    """Write the records of each partition of the metadata table; return the write stats of the files."""
    version = commit.config.version
    metadata = load_metadata_timeline(commit.storage, version).timeline
    stats = []
    for partition, part in records.items():
        files = GroupFiles(commit.storage, partition, commit.instant, version, commit.fence)
        stats += write_logs(files, metadata, part)
    return stats


def _records(
    spark: SparkSession,
    storage: Storage,
    config: TableConfig,
    indexes: Sequence[ExpressionIndex],
    files: _IndexedFiles,
) -> list[RecordChanges | None]:
    """Return the records of each index for the files; None for an index whose values do not allow bloom filters."""
    if not files.files.num_rows:
        return [RecordChanges() for _ in indexes]
    by_file = summarize_files(
        spark, storage, files.files, indexes, columns=files.columns, invalid_text=files.invalid_text
    )
    summarized, with_logs = files.files.take(by_file["number"]), logs_have_statistics(config)

    def records(index: ExpressionIndex) -> RecordChanges | None:
        values = by_file[index.partition].combine_chunks()
        if index.kind == BLOOM_FILTERS:
            if values.field("text").null_count:
                return None
            return expression_bloom_records(summarized, values, config.version, files.instant)
        column = index.expression.column
        return expression_stats_records(
            column, summarized, values, config.version, logs_have_statistics=with_logs, is_initial=files.is_initial
        )

    return [records(index) for index in indexes]
