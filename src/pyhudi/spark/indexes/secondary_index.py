"""Builds and updates of secondary indexes on Spark."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.errors import CorruptTableError, UnsupportedTableError
from pyhudi.index.row_estimates import estimated_rows
from pyhudi.merge.file_slice import SliceContext
from pyhudi.metadata.file_groups.delta_commit_writer import GroupSlice
from pyhudi.metadata.file_groups.log_file_groups import group_slices
from pyhudi.metadata.indexes.file_slice_changes import SliceChanges
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.indexes.secondary_index_definition import SecondaryIndex, can_be_indexed, secondary_indexes
from pyhudi.metadata.metadata_layout import file_group_ids, load_metadata_timeline
from pyhudi.metadata.writer.initialize_partitions import build_partition
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.schema.table_columns import resolve_table_schema, schema_after
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.table_types import as_nullable
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.indexes.record_index.initial_keys import global_group_count
from pyhudi.spark.indexes.secondary_index_entries import (
    IndexTarget,
    sampled_ranges,
    write_entries,
    write_initial_entries,
)
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import WriteStat

_log = logging.getLogger(__name__)


def build_secondary_index(spark: SparkSession, table: LockedTable, index: SecondaryIndex) -> int:
    """Build a secondary index over the current content of a table, without declaring it. Runs a Spark job.

    Returns:
        The number of its file groups.

    Raises:
        UnsupportedTableError: A value is too long for the index.
    """
    first = InitialEntries.from_table(spark, table, index)
    build_partition(table, index.partition, first.groups, lambda groups: first.write(groups.files.instant))
    return len(first.groups)


@dataclass(frozen=True, slots=True)
class InitialEntries:
    """The rows of a table at one instant, with the estimated number of those in base files, and the file groups (ids)
    of a secondary index over them."""

    spark: SparkSession
    table: TableSnapshot
    opts: Options
    slices: pa.Table
    rows: int
    index: SecondaryIndex
    groups: Sequence[str]

    @classmethod
    def from_table(cls, spark: SparkSession, locked: LockedTable, index: SecondaryIndex) -> InitialEntries:
        """Load the file slices of a table; reads no rows."""
        table = locked.snapshot
        slices = FileSystemView.load(table).latest_slices()
        count = int(estimated_rows(locked.storage, slices).sum())
        groups = file_group_ids(index.partition, global_group_count(locked.opts, count))
        return cls(spark, table, locked.opts, slices, count, index, groups)

    def write(self, instant: str) -> list[WriteStat]:
        """Write the base files of the index at an instant of the metadata table; return their write stats. Runs a Spark
        job."""
        schema = resolve_table_schema(self.table)
        if not self.slices.num_rows or schema is None:
            return []
        context = _context(self.table, as_nullable(schema.schema), [self.index], self.opts)
        groups = [[GroupSlice(file_id) for file_id in self.groups]]
        target = IndexTarget(self.table.storage, instant, self.table.config.version, [self.index], groups)
        ranges = sampled_ranges(self.spark, context, self.slices, target, self.rows)
        return write_initial_entries(self.spark, context, self.slices, target, ranges)


def secondary_delta(commit: IndexedCommit, only: Collection[str] | None) -> IndexDelta | None:
    """Write the updates of secondary indexes. Runs a Spark job.

    Args:
        commit: The commit.
        only: Index partitions to update; None: all.

    Returns:
        The update, without indexes for which a value is too long, or whose files are gone, which the caller disables;
        None if the table has no such indexes that pyhudi maintains.
    """
    storage, config, version = commit.storage, commit.config, commit.config.version
    table = TableSnapshot.load(commit.client)
    columns = schema_after(table, commit.metadata)
    indexes = [
        index
        for index in secondary_indexes(storage, config, include_building=True)
        if (only is None or index.partition in only)
        and index.column in columns.names
        and can_be_indexed(columns.field(index.column).type)
    ]
    groups = _file_groups(commit, indexes) if indexes else {}
    if not groups:
        return None
    changes = commit.slice_changes()
    if not changes:
        return IndexDelta(frozenset(index.partition for index in groups))
    target = IndexTarget(storage, commit.instant, version, list(groups), list(groups.values()), fence=commit.fence)
    return _written(commit, table, columns, changes, target)


def _file_groups(commit: IndexedCommit, indexes: Sequence[SecondaryIndex]) -> dict[SecondaryIndex, list[GroupSlice]]:
    """Return the file groups of those of the indexes that have any."""
    storage, version = commit.storage, commit.config.version
    metadata = load_metadata_timeline(storage, version).timeline
    groups = {}
    for index in indexes:
        try:
            groups[index] = group_slices(storage, metadata, index.partition, version)
        except CorruptTableError as gone:
            _log.warning("%s is taken out of use: %s", index.partition, gone)
    return groups


def _written(
    commit: IndexedCommit, table: TableSnapshot, columns: pa.Schema, changes: SliceChanges, target: IndexTarget
) -> IndexDelta:
    """Write the changes of file groups to indexes; return those that have all their entries."""
    try:
        context = _context(table, columns, target.indexes, commit.opts)
        stats = write_entries(commit.spark, context, changes, target)
    except UnsupportedTableError as reason:
        if len(target.indexes) == 1:
            _log.warning("%s is taken out of use: %s", target.indexes[0].partition, reason)
            return IndexDelta()
        single = (replace(target, indexes=[i], groups=[g]) for i, g in zip(target.indexes, target.groups, strict=True))
        deltas = (_written(commit, table, columns, changes, one) for one in single)
        return reduce(lambda some, more: some.merge(more), deltas)
    return IndexDelta(frozenset(index.partition for index in target.indexes), stats)


def _context(table: TableSnapshot, schema: pa.Schema, indexes: Sequence[SecondaryIndex], opts: Options) -> SliceContext:
    columns = dict.fromkeys((RECORD_KEY, *(index.column for index in indexes)))
    return replace(slice_context(table, schema, names=column_names(table, schema), opts=opts), columns=tuple(columns))
