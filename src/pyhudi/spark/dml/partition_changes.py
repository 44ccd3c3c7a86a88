"""Changes of partitions: a row is deleted at its old location and inserted at the new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.errors import RecordKeyError
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.dml.target_table import TargetTable
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.keys.deduplication import is_delete
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.write.row_changes import STORED_KEY, STORED_PATH
from pyhudi.write.location_columns import DELETE, ROW

_OLD, _NEW = "_pyhudi_old", "_pyhudi_new"
_MOVED, _COUNT = "_pyhudi_moved", "_pyhudi_count"


class PartitionMoves(NamedTuple):
    """Changes of rows, and the partition paths that were searched for the keys of rows that move there."""

    rows: DataFrame
    searched: tuple[str, ...]


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


def split_partition_changes(
    rows: DataFrame, target: TargetTable, assignments: RowAssignments, cached: CachedFrames
) -> PartitionMoves:
    """Split changes that move a row to another partition into a delete, with the stored values, and a new record. Runs
    Spark jobs.

    Args:
        rows: Rows from which values are computed, with the columns of `TargetTable.rows`.
        target: The table.
        assignments: Changes of the rows.
        cached: Persists the values, which are evaluated more than once.

    Returns:
        The changes.

    Raises:
        RecordKeyError: A row moves to a partition with a record of its key, which it would overwrite, or gets another
            key on the way.
    """
    own = assignments.values
    helpers = [F.col(name) for name in target.helpers]
    before = assignments.stored or {name: F.col(quoted([name])) for name in own}
    new = [value.alias(name) for name, value in own.items()]
    old = F.struct(*(before[name].alias(name) for name in own)).alias(_OLD)
    values = rows.select(*new, *helpers, old, assignments.deleted.alias(DELETE))
    values = cached.add(values.withColumn(DELETE, F.col(DELETE) | is_delete(values.schema, target.merging)))
    keyed = with_keys(values, target.spec, "")
    names = list(own)
    moved = F.col(STORED_PATH).isNotNull() & ~F.col(DELETE) & (F.col(STORED_PATH) != F.col(PARTITION_PATH))
    stays = [F.col(name) for name in target.helpers]
    goes = [F.lit(None).cast("bigint" if name == ROW else "string").alias(name) for name in target.helpers]
    fields = [F.col(quoted([name])) for name in names]
    back = [F.col(quoted([_OLD, name])).alias(name) for name in names]
    as_is = F.struct(*fields, *stays, F.col(DELETE).alias(DELETE))
    there = F.struct(*fields, *goes, F.lit(False).alias(DELETE))
    gone = F.struct(*back, *stays, F.lit(True).alias(DELETE))
    # A global index finds the record at its old location, and moves it if its options require that.
    if assignments.keys_assigned and not target.spec.auto_keys:
        _refuse_other_keys(keyed.where(moved))
    is_global = target.opts.get_typed(options.INDEX_TYPE).is_global
    paths = () if is_global or target.spec.auto_keys else _checked_partitions(keyed, moved, target)
    both = F.array(there) if is_global else F.array(gone, there)
    versions = F.when(moved, both).otherwise(F.array(as_is))
    every = keyed.select(F.explode(versions).alias(_NEW))
    columns = (F.col(quoted([_NEW, name])).alias(name) for name in (*names, *target.helpers, DELETE))
    return PartitionMoves(every.select(*columns), paths)


def _refuse_other_keys(moving: DataFrame) -> None:
    """Refuse rows whose record key is another one than that of the stored row.

    Raises:
        RecordKeyError: The message has both keys.
    """
    with task_errors():
        found = moving.where(F.col(STORED_KEY) != F.col(RECORD_KEY)).select(STORED_KEY, RECORD_KEY).first()
    if found is not None:
        raise RecordKeyError(f"the record key of the stored row {found[0]!r} cannot be changed to {found[1]!r}")


def _checked_partitions(keyed: DataFrame, moved: Column, target: TargetTable) -> tuple[str, ...]:
    """Return the partitions to which rows move, none of which has a record with the key of such a row.

    Raises:
        RecordKeyError: One has, or gets two.
    """
    new = keyed.where(moved | (F.col(STORED_PATH).isNull() & ~F.col(DELETE)))
    added = new.select(RECORD_KEY, PARTITION_PATH, moved.alias(_MOVED))
    moving = added.where(F.col(_MOVED)).select(RECORD_KEY, PARTITION_PATH)
    with task_errors():
        paths = tuple(row[0] for row in moving.select(PARTITION_PATH).distinct().collect())
        if not paths:
            return ()
        grouped = added.groupBy(RECORD_KEY, PARTITION_PATH).agg(
            F.count(F.lit(1)).alias(_COUNT), F.max(_MOVED).alias(_MOVED)
        )
        repeated = grouped.where(F.col(_MOVED) & (F.col(_COUNT) > 1)).select(RECORD_KEY, PARTITION_PATH)
        stored = target.partition_keys(keyed.sparkSession, paths)
        taken = moving.join(stored, [RECORD_KEY, PARTITION_PATH], "left_semi")
        found = taken.unionByName(repeated).first()
    if found is not None:
        raise RecordKeyError(
            f"the record with the key {found[0]!r} cannot move to the partition {found[1]!r}, which has a record of "
            "that key already, or gets another one by this statement; nothing was written. Delete one of the two first"
        )
    return paths
