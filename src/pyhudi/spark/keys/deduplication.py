"""Merging of the rows of one batch that have the same key, and detection of deletes.

All of it is lazy. The rules were measured on Apache Hudi: by event time the row with the highest ordering
values wins, by commit time the last row; ties go to the later row of the batch, and deletes take part like any row.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, DoubleType, FloatType, NumericType, StringType, StructType

from pyhudi.config.enums import MergeMode
from pyhudi.errors import SchemaMismatchError
from pyhudi.merge.modes.delete_marker import IS_DELETED
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.ordering_values import SEQUENCE_DIGITS
from pyhudi.merge.sorted_deduplication import SortedDeduplicator
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import quoted, resolve
from pyhudi.spark.execution.row_tasks import map_in_arrow
from pyhudi.spark.merger_pickling import check_picklable
from pyhudi.table.config.merge_settings import DELETE_FIELD, DELETE_MARKER, MergeSettings
from pyhudi.write.location_columns import IS_DELETE

POSITION = "_pyhudi_position"
"""Bigint: the position of a row in the batch."""
_WINNER = "_pyhudi_winner"


def mark_deletes(df: DataFrame, merging: MergeSettings, *, every_row: bool = False) -> DataFrame:
    """Return *df* with the boolean column `IS_DELETE`.

    It is true where ``_hoodie_is_deleted`` is true or the delete field of the table has exactly its marker value, and
    everywhere for the operation delete (*every_row*).
    """
    return df.withColumn(IS_DELETE, F.lit(True) if every_row else is_delete(df.schema, merging))


def is_delete(schema: StructType, merging: MergeSettings) -> Column:
    """Return a column that is true if a row is a delete; never null."""
    is_marked = F.lit(False)
    if _has_deleted_flag(schema):
        is_marked = F.coalesce(F.col(IS_DELETED), F.lit(False))
    field = _delete_field(schema, merging)
    if field is None:
        return is_marked
    marker = merging.properties[DELETE_MARKER]
    return is_marked | F.coalesce(F.col(quoted([field])).cast("string") == marker, F.lit(False))


def is_marked_delete() -> Column:
    """Return a column that is true for the rows that `IS_DELETE` marks as deletes; never null."""
    return F.coalesce(F.col(IS_DELETE), F.lit(False))


def delete_marker_columns(schema: StructType, merging: MergeSettings) -> frozenset[str]:
    """Return the columns that mark rows as deletes: ``_hoodie_is_deleted`` and the delete field of the table."""
    field = _delete_field(schema, merging)
    return frozenset((*([IS_DELETED] if _has_deleted_flag(schema) else []), *([field] if field is not None else [])))


def _has_deleted_flag(schema: StructType) -> bool:
    return IS_DELETED in schema.names and isinstance(schema[IS_DELETED].dataType, BooleanType)


def _delete_field(schema: StructType, merging: MergeSettings) -> str | None:
    """Return the delete field of the table, if it and its marker are known."""
    field = merging.properties.get(DELETE_FIELD)
    return field if field in schema.names and DELETE_MARKER in merging.properties else None


def dedupe(df: DataFrame, merging: MergeSettings, *, global_keys: bool = False) -> DataFrame:
    """Return one row per key and partition path (*global_keys*: per key).

    *df* has keys (`with_keys`), and for partial-update modes `IS_DELETE` if deletes occur. "Later" is the order
    in which *df* comes: its partitions one after the other, rows within them. Lazy; *df* is evaluated once.
    Partial updates and the mode CUSTOM are merged as versions from different writes are.

    Raises SchemaMismatchError for a missing ordering column, UnsupportedTableError where the mode is CUSTOM and its
    merger is not registered.
    """
    by = [RECORD_KEY] if global_keys else [PARTITION_PATH, RECORD_KEY]
    placed = with_batch_positions(df)
    if merging.dedupe_mode is MergeMode.CUSTOM:
        return _folded(placed, merging, by)
    order = batch_order(df.schema, merging)
    if merging.dedupe_partial_mode is not None:
        return _folded(placed, merging, by)
    # as fast as a window function, and independent of the session's settings for windows
    rest = [name for name in df.columns if name not in by]
    columns = [F.lit(True).alias("_pyhudi_any"), *(F.col(quoted([name])) for name in rest)]
    winners = placed.groupBy(*by).agg(F.max_by(F.struct(*columns), _precedence(order)).alias(_WINNER))
    return winners.select(
        *(F.col(name if name in by else quoted([_WINNER, name])) for name in df.columns),
    )


def dedupe_in_tasks(merging: MergeSettings, *, hard_deletes: bool) -> SortedDeduplicator:
    """Return a function that deduplicates inside tasks that each have all rows of a key, in their order
    (`with_batch_positions`)."""
    rules = MergeRules() if hard_deletes else MergeRules.for_batch(merging)
    return SortedDeduplicator((RECORD_KEY,), IS_DELETE, rules, (), hard_deletes)


def with_batch_positions(df: DataFrame) -> DataFrame:
    """Return the rows with their position in the batch (`POSITION`)."""
    return df.withColumn(POSITION, F.monotonically_increasing_id())


def batch_order(schema: StructType, merging: MergeSettings) -> list[Column]:
    """Return the columns that order rows of one key before their position; none for commit time."""
    if merging.dedupe_mode is not MergeMode.EVENT_TIME_ORDERING:
        return []
    return ordering_values(schema, merging.ordering_fields, compares_sequences=merging.compares_sequences)


def check_ordering_columns(schema: StructType, merging: MergeSettings) -> None:
    """Check that the columns exist by which rows of one key are ordered (`batch_order`).

    Raises:
        SchemaMismatchError: One is missing.
    """
    if merging.dedupe_mode is MergeMode.EVENT_TIME_ORDERING:
        for name in merging.ordering_fields:
            resolve(schema, name, "ordering", SchemaMismatchError)


def ordering_values(schema: StructType, fields: Sequence[str], *, compares_sequences: bool) -> list[Column]:
    """Return the ordering columns as values that are never null for numbers.

    A missing ordering value counts as the number 0, as in Apache Hudi; for other types it is below every value. (Apache
    Hudi itself fails on batches with nulls among rows of one key.) ``compares_sequences`` as in `MergeSettings`.
    """
    values: list[Column] = []
    for name in fields:
        column, kind = resolve(schema, name, "ordering", SchemaMismatchError)
        if isinstance(kind, NumericType):
            column = _with_signed_zero(F.coalesce(column, F.lit(0).cast(kind)), kind)
        elif compares_sequences and isinstance(kind, StringType):
            column = _padded(column)
        values.append(column)
    return values


def _with_signed_zero(column: Column, data_type: NumericType) -> Column:
    """Return numbers in the order of Java's ``Double.compare``, in which -0.0 precedes 0.0; to Spark they are equal.
    It becomes the greatest number below zero."""
    if not isinstance(data_type, DoubleType | FloatType):
        return column
    below = -5e-324 if isinstance(data_type, DoubleType) else -1.401298464324817e-45
    return F.when((column == 0) & (column.cast("string") == "-0.0"), F.lit(below).cast(data_type)).otherwise(column)


def _padded(column: Column) -> Column:
    """Return sequences as texts that sort like their numbers, as `pyhudi.merge.ordering_values.padded`."""
    return F.array_join(F.transform(F.split(column, "[.]"), lambda part: F.lpad(part, SEQUENCE_DIGITS, "0")), ".")


def _precedence(order: Sequence[Column]) -> Column:
    """Return the ordering values followed by the position, so that no two rows are equal."""
    return F.struct(*(part.alias(f"o{i}") for i, part in enumerate(order)), F.col(POSITION).alias("p"))


def _folded(df: DataFrame, merging: MergeSettings, by: Sequence[str]) -> DataFrame:
    """Return one row per key, merged by the merge kernel; the rows of a key are sent to one task, in their order."""
    marked = df if IS_DELETE in df.columns else df.withColumn(IS_DELETE, F.lit(False))
    out = df.drop(POSITION)
    drop = (POSITION,) if IS_DELETE in df.columns else (POSITION, IS_DELETE)
    rules = MergeRules.for_batch(merging)
    check_picklable(rules)
    how = SortedDeduplicator(tuple(by), IS_DELETE, rules, drop)
    together = marked.repartition(*by).sortWithinPartitions(*by, POSITION)
    return map_in_arrow(together, how.run, out.schema)
