"""UPDATE and DELETE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import Options
from pyhudi.config.enums import MergeMode, Operation
from pyhudi.errors import ConfigError
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.column_names import quoted, select_names
from pyhudi.spark.dml.assignments.column_assignments import (
    as_column,
    assigned_values,
    convert_values,
    resolve_assignments,
)
from pyhudi.spark.dml.partition_path_update import RowAssignments, split_partition_path_updates
from pyhudi.spark.dml.target_snapshot import TargetSnapshot
from pyhudi.spark.dml.target_table import TargetTable, read_target
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.keys.deduplication import is_delete
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.write.dataframe_writer import write_changes
from pyhudi.spark.write.dml_commit import ColumnAssignments, DmlCommit, NewRecords, RowChanges, RowOrigin
from pyhudi.storage import open_storage
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.location_columns import IS_DELETE
from pyhudi.write.write_result import ChangeResult

Condition: TypeAlias = "str | Column | None"
_QUERY = re.compile(r"\b(select|from|table|values|with)\b", re.IGNORECASE)
"""Words that begin a query."""


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Rows that an UPDATE or DELETE changes.

    Attributes:
        where: Their condition; None: all rows.
        alias: Name of the table in the condition and in new values.
        reads_whole_table: A subquery reads the table, so that any change since the snapshot is a conflict.
    """

    where: Condition
    alias: str | None = None
    reads_whole_table: bool = False


def update(
    spark: SparkSession, path: str, opts: Options, assigned: Mapping[str, object], selection: RowSelection
) -> ChangeResult:
    """Assign new values to columns of some rows, in one commit.

    Returns:
        Numbers of the changed rows.

    Raises:
        ConfigError: A column of the record key is assigned.
        RecordKeyError: A row would move to a partition that has a record of its key after the statement.
        UnsupportedTableError: Records of one key would swap partitions, in a table with the bucket index or without
            meta fields.
        SchemaMismatchError: A column does not exist, or a value cannot be converted to its type.
        ConflictError: Other writers changed the rows that were read, in every attempt.
    """
    return with_retries(
        open_storage(path, opts),
        opts,
        lambda: update_pinned(spark, TargetSnapshot.pin(spark, path, opts), assigned, selection),
    )


def update_pinned(
    spark: SparkSession, pinned: TargetSnapshot, assigned: Mapping[str, object], selection: RowSelection
) -> ChangeResult:
    """Run `update` once, on a snapshot of a table.

    Returns:
        Numbers of the changed rows.

    Raises:
        ConflictError: Another writer changed the rows that were read.
    """
    target, rows = _selected_rows(spark, pinned, selection)
    values = _assigned_values(rows, target, assigned, selection.alias)
    moves = bool(target.partition_columns & values.keys())
    marks = bool(target.delete_markers & values.keys())
    unassigned: frozenset[str] = frozenset() if moves else target.unassigned(values)
    with CachedFrames() as cached:
        if not moves:
            rows = _with_values(rows, target, values | target.absent(unassigned), marks=marks)
        matched, reads = None, target.reads
        new_records, origin = NewRecords.NONE, _origin(selection.where, *assigned.values())
        if not _is_certain(target, values.keys()):  # The write would not count rows whose stored version wins.
            rows, origin = cached.add(rows), RowOrigin.CACHED
            matched = _count(rows)
        if moves:
            new_values = {name: values.get(name, F.col(quoted([name]))) for name in target.schema.names}
            assignments = RowAssignments(new_values, F.lit(False))
            adaptive = origin is RowOrigin.QUERY
            moved = split_partition_path_updates(rows, target, assignments, cached, adaptive=adaptive)
            rows, new_records, origin = moved.rows, moved.new_records, RowOrigin.CACHED
            reads = reads.union(target.partition_reads(moved.searched)) if moved.searched else reads
        changes = RowChanges(
            target.locations,
            new_records,
            ColumnAssignments(partition_path=moves, unassigned=unassigned),
            deletes=moves or marks,
            origin=origin,
        )
        done = write_changes(rows, target.keyed, target.opts, Operation.UPSERT, DmlCommit(reads, changes))
    if matched is None:
        matched = done.num_deletes + done.num_updates if moves else done.num_updates
    return ChangeResult(done, matched, rows_updated=matched)


def planned_update(
    spark: SparkSession, pinned: TargetSnapshot, assigned: Mapping[str, object], selection: RowSelection
) -> tuple[TargetTable, DataFrame]:
    """Return the table of `update_pinned`, and the new values of the rows, without running the update. Errors as
    there."""
    target, rows = planned_delete(spark, pinned, selection)
    values = _assigned_values(rows, target, assigned, selection.alias)
    return target, rows.select(*(value.alias(name) for name, value in values.items()))


def planned_delete(
    spark: SparkSession, pinned: TargetSnapshot, selection: RowSelection
) -> tuple[TargetTable, DataFrame]:
    """Return the table of `delete_pinned`, and the rows to delete, without running the statement. Errors as there."""
    target, rows = _selected_rows(spark, pinned, selection)
    return target, rows.drop(*target.helpers)


def _origin(*expressions: object) -> RowOrigin:
    """Return the origin of rows whose condition and values are these expressions."""
    return RowOrigin.SCAN if all(map(_has_no_subquery, expressions)) else RowOrigin.QUERY


def _has_no_subquery(expression: object) -> bool:
    """Return True if an expression certainly has no subquery: None, or SQL text without the words that begin one."""
    return expression is None or (isinstance(expression, str) and _QUERY.search(expression) is None)


def _assigned_values(
    rows: DataFrame, target: TargetTable, assigned: Mapping[str, object], alias: str | None
) -> dict[str, Column]:
    """Return the new values by the table's names of their columns.

    Raises:
        ConfigError: A column of the record key is assigned.
        SchemaMismatchError: A column does not exist, or a value cannot be converted to its type.
    """
    sensitive = is_case_sensitive(rows.sparkSession)
    assignments = resolve_assignments(assigned, target.schema, case_sensitive=sensitive, alias=alias)
    values = assigned_values(assignments, target.schema, alias)
    keys = sorted(target.key_columns & values.keys())
    if keys:
        raise ConfigError(f"UPDATE cannot assign {keys[0]!r}: it is part of the record key; delete and insert rows")
    return convert_values(rows, values, target.schema)


def _with_values(rows: DataFrame, target: TargetTable, values: Mapping[str, Column], *, marks: bool) -> DataFrame:
    """Return rows at their locations with these values, which may mark rows as deletes."""
    return rows.withColumns(dict(values)).withColumn(
        IS_DELETE, is_delete(target.schema, target.merging) if marks else F.lit(False)
    )


def _count(rows: DataFrame) -> int:
    with task_errors():
        return int(rows.count())


def _is_certain(target: TargetTable, assigned: Set[str]) -> bool:
    """Return True if an update changes each row: no stored version wins by its ordering value or by a merger, and no
    row is deleted."""
    merging = target.merging
    if not target.delete_markers.isdisjoint(assigned):
        return False
    if merging.mode is MergeMode.EVENT_TIME_ORDERING:
        return assigned.isdisjoint(top_column(name, target.schema.names) for name in merging.ordering_fields)
    return merging.mode is MergeMode.COMMIT_TIME_ORDERING


def delete(spark: SparkSession, path: str, opts: Options, selection: RowSelection) -> ChangeResult:
    """Delete the rows that meet a condition, or all, in one commit.

    Returns:
        Number of the deleted rows.

    Raises:
        ConflictError: Other writers changed the rows that were read, in every attempt.
    """
    return with_retries(
        open_storage(path, opts),
        opts,
        lambda: delete_pinned(spark, TargetSnapshot.pin(spark, path, opts), selection),
    )


def delete_pinned(spark: SparkSession, pinned: TargetSnapshot, selection: RowSelection) -> ChangeResult:
    """Run `delete` once, on a snapshot of a table. Errors as of `update_pinned`."""
    target, rows = _selected_rows(spark, pinned, selection)
    rows = select_names(rows, [*target.deletion_columns, *target.helpers]).withColumn(IS_DELETE, F.lit(True))
    origin, ordered = _origin(selection.where), bool(target.ordering_of_deletes)
    changes = RowChanges(target.locations, NewRecords.NONE, origin=origin, ordered_deletes=ordered)
    done = write_changes(rows, target.keyed, target.opts, Operation.DELETE, DmlCommit(target.reads, changes))
    return ChangeResult(done, done.num_deletes, rows_deleted=done.num_deletes)


def _selected_rows(
    spark: SparkSession, pinned: TargetSnapshot, selection: RowSelection
) -> tuple[TargetTable, DataFrame]:
    """Read the rows that meet a condition."""
    where, alias = selection.where, selection.alias
    plain = isinstance(where, str) and alias is None
    target = read_target(spark, pinned, where if plain else None)
    if selection.reads_whole_table:
        target = replace(target, reads=pinned.whole_table())
    rows = target.rows if alias is None else target.rows.alias(alias)
    return target, rows if where is None or plain else rows.where(as_column(where))
