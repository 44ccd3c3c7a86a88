"""Changes of partitions: a row is deleted at its old location and inserted at the new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import MergeMode, TableType
from pyhudi.errors import RecordKeyError, UnsupportedTableError
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.helper_columns import STORED_KEY, STORED_PATH
from pyhudi.spark.keys.deduplication import is_delete
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.write.dml_commit import NewRecords
from pyhudi.write.location_columns import IS_DELETE, ROW_POSITION

_OLD, _NEW = "_pyhudi_old", "_pyhudi_new"
_MOVED, _COUNT = "_pyhudi_moved", "_pyhudi_arrivals"
_DELETED_BY_STATEMENT = "_pyhudi_deleted_by_statement"
_LEFT, _GONE = "_pyhudi_left", "_pyhudi_gone"


@dataclass(frozen=True, slots=True)
class PartitionPathUpdate:
    """Changes of rows that may move to other partitions.

    Attributes:
        rows: The changes.
        searched: Partition paths that were searched for the keys of rows that move there.
        replaces_deleted: A row moves to a partition from which this statement deletes a record with the same key, as
            when rows swap partitions.
    """

    rows: DataFrame
    searched: tuple[str, ...] = ()
    replaces_deleted: bool = False

    @property
    def new_records(self) -> NewRecords:
        """Known properties of the keys of moved rows, which are new records of their partitions."""
        if self.replaces_deleted:
            return NewRecords.REPLACING_DELETED
        return NewRecords.DISTINCT_NEW_KEYS if self.searched else NewRecords.ANY


@dataclass(frozen=True, slots=True)
class RowAssignments:
    """Changes of rows by a statement.

    Attributes:
        values: New values of all columns of the table.
        deleted: True for deleted rows; rows whose new values mark them as deletes are deleted, too.
        stored: Stored values by column; None: the columns of the same names.
        keys_assigned: Columns of the record key may be assigned, so keys have to be compared.
    """

    values: Mapping[str, Column]
    deleted: Column
    stored: Mapping[str, Column] | None = None
    keys_assigned: bool = False


def split_partition_path_updates(
    rows: DataFrame, target: TargetTable, assignments: RowAssignments, cached: CachedFrames, *, adaptive: bool
) -> PartitionPathUpdate:
    """Split changes that move a row to another partition into a delete, with the stored values, and a new record. Runs
    Spark jobs.

    Args:
        rows: Rows from which values are computed, with the columns of `TargetTable.rows`.
        target: The table.
        assignments: Changes of the rows.
        cached: Persists the values, which are evaluated more than once.
        adaptive: The plan of the rows may improve while it is executed.

    Returns:
        The changes, computed from cached values.

    Raises:
        RecordKeyError: A row moves to a partition with a record of its key, which it would overwrite, or gets another
            key on the way.
        UnsupportedTableError: Rows swap partitions, in a table whose rows cannot be told apart by their file groups.
    """
    new_values = assignments.values
    locations = [F.col(name) for name in target.helpers]
    before = assignments.stored or {name: F.col(quoted([name])) for name in new_values}
    new = [value.alias(name) for name, value in new_values.items()]
    old = F.struct(*(before[name].alias(name) for name in new_values)).alias(_OLD)
    values = rows.select(
        *new, *locations, old, assignments.deleted.alias(IS_DELETE), assignments.deleted.alias(_DELETED_BY_STATEMENT)
    )
    values = values.withColumn(IS_DELETE, F.col(IS_DELETE) | is_delete(values.schema, target.merging))
    values = cached.add(values, adaptive=adaptive)
    keyed = with_keys(values, target.spec, "")
    names = list(new_values)
    moved = F.col(STORED_PATH).isNotNull() & ~F.col(IS_DELETE) & (F.col(STORED_PATH) != F.col(PARTITION_PATH))
    no_locations = [
        F.lit(None).cast("bigint" if name == ROW_POSITION else "string").alias(name) for name in target.helpers
    ]
    fields = [F.col(quoted([name])) for name in names]
    stored_fields = [F.col(quoted([_OLD, name])).alias(name) for name in names]
    as_is = F.struct(*fields, *locations, F.col(IS_DELETE).alias(IS_DELETE))
    inserted = F.struct(*fields, *no_locations, F.lit(False).alias(IS_DELETE))
    deleted = F.struct(*stored_fields, *locations, F.lit(True).alias(IS_DELETE))
    # A global index finds the record at its old location, and moves it if its options require that.
    if assignments.keys_assigned and not target.spec.auto_keys:
        _refuse_other_keys(keyed.where(moved))
    is_global = target.opts.get_typed(options.INDEX_TYPE).is_global
    checked = None if is_global or target.spec.auto_keys else _checked_partitions(keyed, moved, target)
    versions_of_moved = F.array(inserted) if is_global else F.array(deleted, inserted)
    versions = F.when(moved, versions_of_moved).otherwise(F.array(as_is))
    changes = keyed.select(F.explode(versions).alias(_NEW))
    columns = (F.col(quoted([_NEW, name])).alias(name) for name in (*names, *target.helpers, IS_DELETE))
    return PartitionPathUpdate(changes.select(*columns), *(checked or ()))


def _refuse_other_keys(moving: DataFrame) -> None:
    """Refuse rows whose record key differs from that of the stored row.

    Raises:
        RecordKeyError: The message has both keys.
    """
    with task_errors():
        example = moving.where(F.col(STORED_KEY) != F.col(RECORD_KEY)).select(STORED_KEY, RECORD_KEY).first()
    if example is not None:
        raise RecordKeyError(f"the record key of the stored row {example[0]!r} cannot be changed to {example[1]!r}")


def _checked_partitions(keyed: DataFrame, moved: Column, target: TargetTable) -> tuple[tuple[str, ...], bool]:
    """Check that no record remains where a row moves to.

    Returns:
        The partitions to which rows move, and whether one of the rows replaces a record that the statement deletes.

    Raises:
        RecordKeyError: A partition keeps a record with the key of such a row, or gets two.
        UnsupportedTableError: Rows replace deleted records, which the table does not support.
    """
    new = keyed.where(moved | (F.col(STORED_PATH).isNull() & ~F.col(IS_DELETE)))
    added = new.select(RECORD_KEY, PARTITION_PATH, moved.alias(_MOVED))
    moving = added.where(F.col(_MOVED)).select(RECORD_KEY, PARTITION_PATH)
    # a delete by new values may lose against the stored record
    leaving = keyed.where(moved | (F.col(STORED_PATH).isNotNull() & F.col(_DELETED_BY_STATEMENT)))
    leaving_keys = leaving.select(F.col(STORED_KEY).alias(RECORD_KEY), F.col(STORED_PATH).alias(PARTITION_PATH))
    with task_errors():
        paths = tuple(row[0] for row in moving.select(PARTITION_PATH).distinct().collect())
        if not paths:
            return (), False
        stored = target.partition_keys(keyed.sparkSession, paths)
        conflict = _target_conflicts(added, _remaining_records(moving, stored, leaving_keys)).first()
    key, path = (None, None) if conflict is None or conflict[0] is None else conflict[0]
    if key is not None:
        raise RecordKeyError(
            f"the record with the key {key!r} cannot move to the partition {path!r}, which has a record of "
            "that key already, or gets another one by this statement; nothing was written. Delete one of the two first"
        )
    replaces_deleted = conflict is not None and bool(conflict[1])
    if replaces_deleted and target.merging.mode is MergeMode.CUSTOM:
        raise UnsupportedTableError(
            "records of the same key swap partitions, or form a chain of moves, but the merger of the table may keep "
            "the stored ones; nothing was written. Move the records by several statements, by way of another partition"
        )
    if replaces_deleted and target.client.config.table_type is TableType.MERGE_ON_READ:
        raise UnsupportedTableError(
            "records of the same key swap partitions, or form a chain of moves, which leaves the key in two base "
            "files of a merge-on-read table until it is compacted, where Apache Hudi finds the wrong one; nothing was "
            "written. Move the records by several statements, by way of another partition"
        )
    if replaces_deleted and target.locations is None:
        raise UnsupportedTableError(
            "records of the same key swap partitions, or form a chain of moves, which requires an index that finds "
            f"them in their file groups, but the table has {_unlocated(target)}; nothing was written. Move the records "
            "by several statements, by way of another partition"
        )
    return paths, replaces_deleted


def _remaining_records(moving: DataFrame, stored: DataFrame, leaving_keys: DataFrame) -> DataFrame:
    """Return the numbers of records that remain (`_LEFT`) and that the statement deletes (`_GONE`), by key and
    partition, where rows move to."""
    names = [RECORD_KEY, PARTITION_PATH]
    before = stored.join(moving, names, "left_semi").select(*names, F.lit(1).alias(_LEFT), F.lit(0).alias(_GONE))
    away = leaving_keys.join(moving, names, "left_semi").select(*names, F.lit(-1).alias(_LEFT), F.lit(1).alias(_GONE))
    return before.unionByName(away).groupBy(*names).agg(F.sum(_LEFT).alias(_LEFT), F.sum(_GONE).alias(_GONE))


def _target_conflicts(added: DataFrame, remaining: DataFrame) -> DataFrame:
    """Return one row: key and partition of a row that moves to where a record remains or another one is added (null:
    there is none), and whether a row replaces a record that the statement deletes."""
    names = [RECORD_KEY, PARTITION_PATH]
    grouped = added.groupBy(*names).agg(F.count(F.lit(1)).alias(_COUNT), F.max(_MOVED).alias(_MOVED))
    arriving = grouped.where(F.col(_MOVED)).join(remaining, names, "left")
    conflict = (F.col(_COUNT) > 1) | (F.coalesce(F.col(_LEFT), F.lit(0)) > 0)
    return arriving.agg(F.min(F.when(conflict, F.struct(*names))), F.max(F.coalesce(F.col(_GONE), F.lit(0)) > 0))


def _unlocated(target: TargetTable) -> str:
    """Return why rows of a table have no file groups."""
    return "the bucket index" if target.client.config.populate_meta_fields else "no meta fields"
