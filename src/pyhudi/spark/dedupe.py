"""Merges the rows of one batch that have the same key, and says which rows are deletes.

All of it is lazy. What decides between rows of one key is measured on Apache Hudi: by event time the highest ordering
values win, by commit time the last row; ties go to the later row of the batch, deletes take part like any row.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, BooleanType, DataType, NumericType, StringType, StructType

from pyhudi.config.values import MergeMode, PartialUpdateMode
from pyhudi.errors import SchemaMismatchError, UnsupportedTableError
from pyhudi.format.columns import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.keytext import quoted, resolve
from pyhudi.table.merging import DELETE_FIELD, DELETE_MARKER, UNAVAILABLE_VALUE, MergeSettings
from pyhudi.write.columns import DELETE

IS_DELETED = "_hoodie_is_deleted"
_POSITION, _ORDER, _WINNER = "_pyhudi_position", "_pyhudi_order", "_pyhudi_winner"


def mark_deletes(df: DataFrame, merging: MergeSettings, *, every_row: bool = False) -> DataFrame:
    """*df* with the boolean ``_pyhudi_delete``.

    True where ``_hoodie_is_deleted`` is true or the table's delete field holds exactly its marker; everywhere for the
    operation delete (*every_row*).
    """
    return df.withColumn(DELETE, F.lit(True) if every_row else is_delete(df.schema, merging))


def is_delete(schema: StructType, merging: MergeSettings) -> Column:
    """Whether a row is a delete, never null."""
    found = F.lit(False)
    if IS_DELETED in schema.names and isinstance(schema[IS_DELETED].dataType, BooleanType):
        found = F.coalesce(F.col(IS_DELETED), F.lit(False))
    field, marker = merging.properties.get(DELETE_FIELD), merging.properties.get(DELETE_MARKER)
    if field is None or marker is None or field not in schema.names:
        return found
    return found | F.coalesce(F.col(quoted([field])).cast("string") == marker, F.lit(False))


def dedupe(df: DataFrame, merging: MergeSettings, *, global_keys: bool = False) -> DataFrame:
    """One row per key and partition path (*global_keys*: per key).

    *df* has keys (`with_keys`), and for partial-update modes ``_pyhudi_delete`` if deletes occur. "Later" is the order
    in which *df* comes: its partitions one after the other, rows within them. Lazy; *df* is evaluated once.
    With IGNORE_DEFAULTS a column that is null in the winning row is taken from the strongest row that has it; with
    FILL_UNAVAILABLE the same for columns that hold the marker text.

    Raises SchemaMismatchError for a missing ordering column, UnsupportedTableError for the merge mode CUSTOM.
    """
    order = batch_order(df.schema, merging)
    by = [RECORD_KEY] if global_keys else [PARTITION_PATH, RECORD_KEY]
    placed = df.withColumn(_POSITION, F.monotonically_increasing_id())
    if merging.partial_update_mode is not None:
        return _folded(placed, merging, order, by)
    # as fast as a window, and indifferent to the session's settings for windows
    rest = [name for name in df.columns if name not in by]
    columns = [F.lit(True).alias("_pyhudi_any"), *(F.col(quoted([name])) for name in rest)]
    strength = _strength(order)
    winners = placed.groupBy(*by).agg(F.max_by(F.struct(*columns), strength).alias(_WINNER))
    return winners.select(
        *(F.col(name if name in by else quoted([_WINNER, name])) for name in df.columns),
    )


def batch_order(schema: StructType, merging: MergeSettings) -> list[Column]:
    """What rows of one key are compared by before their position; nothing for commit time."""
    if merging.dedupe_mode is MergeMode.CUSTOM:
        raise UnsupportedTableError(
            f"records of one key are merged by {merging.payload_class or 'a merger of its own'}, which is not known "
            "here; set hoodie.combine.before.upsert=false if the input has each key once"
        )
    if merging.dedupe_mode is not MergeMode.EVENT_TIME_ORDERING:
        return []
    return ordering_values(schema, merging.ordering_fields)


def ordering_values(schema: StructType, fields: Sequence[str]) -> list[Column]:
    """The ordering columns as values that are never null for numbers.

    A missing ordering value counts as the number 0, as in Apache Hudi; of other types it is below every value. (The
    original itself fails on batches with nulls among rows of one key.)
    """
    values: list[Column] = []
    for name in fields:
        column, kind = resolve(schema, name, "ordering", SchemaMismatchError)
        values.append(F.coalesce(column, F.lit(0).cast(kind)) if isinstance(kind, NumericType) else column)
    return values


def _strength(order: Sequence[Column]) -> Column:
    """Ordering values, then the position: no two rows are equal."""
    return F.struct(*(part.alias(f"o{i}") for i, part in enumerate(order)), F.col(_POSITION).alias("p"))


def _folded(df: DataFrame, merging: MergeSettings, order: Sequence[Column], by: Sequence[str]) -> DataFrame:
    ordered = df.withColumn(_ORDER, _strength(order))
    hidden = {*by, _POSITION, _ORDER}
    names = [name for name in df.columns if name not in hidden]
    merged = []
    for name in names:
        column = F.col(quoted([name]))
        if name == DELETE or name in (RECORD_KEY, PARTITION_PATH):
            # deletes and places are the winner's
            merged.append(F.max_by(F.struct(column.alias("v")), _ORDER)["v"].alias(name))
            continue
        given = _is_given(column, df.schema[name].dataType, merging)
        # a struct, because max_by leaves out rows whose ordering is null, not those whose value is
        best = F.max_by(F.struct(column.alias("v")), F.when(given, F.col(_ORDER)))
        merged.append(F.coalesce(best, F.max_by(F.struct(column.alias("v")), _ORDER))["v"].alias(name))
    wide = ordered.groupBy(*by).agg(*merged)
    return wide.select(*(quoted([name]) for name in df.columns if name not in (_POSITION, _ORDER)))


def _is_given(column: Column, kind: DataType, merging: MergeSettings) -> Column:
    """Whether a value takes part in a partial update, rather than standing for "unchanged"."""
    if merging.partial_update_mode is PartialUpdateMode.IGNORE_DEFAULTS:
        return column.isNotNull()
    marker = merging.properties.get(UNAVAILABLE_VALUE, "__debezium_unavailable_value")
    if isinstance(kind, (StringType, BinaryType)):
        return F.coalesce(column.cast("string") != marker, F.lit(True))
    return F.lit(True)
