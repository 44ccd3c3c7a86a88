"""Columns by which incoming keys and the keys of base files are compared, and the lookup by scanning the files' keys.

The text of a key is always right, but long: reading and hashing it is most of what a look-up costs. Where a key is made
of numbers, dates or decimals that base files hold with the same type, comparing those columns says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    StringType,
    StructField,
    StructType,
)

from pyhudi.config import options
from pyhudi.config.enums import ReadEngine
from pyhudi.keygen import KeySpec
from pyhudi.read.schema.table_columns import table_schema
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.keys.key_generator import jvm_zone, record_key
from pyhudi.spark.keys.key_text import quoted, resolve
from pyhudi.spark.lookup.base_file_keys import (
    FILE_NO,
    OLD_PARTITION,
    BaseFiles,
    KeyLookup,
    base_rows,
    stored_types,
    with_file_no,
)
from pyhudi.spark.lookup.batch_summary import Batch
from pyhudi.spark.lookup.merged_slice_keys import merged_slice_rows
from pyhudi.spark.spark_types import spark_schema
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.write.location_columns import ROW

_KEY = "_pyhudi_key_"
_LONG_BITS = 64


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Names of the compared columns in the batch; in locations they are called ``_pyhudi_key_<i>``.

    ``bits``: so many of each column are all that the batch needs, and together they fit into one whole number, which is
    compared instead (empty: they do not). Spark joins by one number in two thirds of the time.
    """

    names: tuple[str, ...]
    bits: tuple[int, ...] = ()

    @property
    def in_locations(self) -> tuple[str, ...]:
        return tuple(f"{_KEY}{i}" for i in range(1 if self.bits else len(self.names)))

    def of(self, rows: DataFrame) -> list[Column]:
        """The batch's key columns, in the form in which they are compared."""
        return self.compared([_compared(F.col(quoted([name])), rows.schema[name].dataType) for name in self.names])

    def compared(self, columns: list[Column]) -> list[Column]:
        """Key columns in the form in which they are compared; one number only for rows in the batch's ranges."""
        if not self.bits:
            return columns
        return [
            reduce(
                lambda left, right: F.shiftleft(left, right[1]).bitwiseOR(right[0]),
                zip(columns[1:], self.bits[1:], strict=True),
                columns[0],
            )
        ]

    def matches(self, rows: DataFrame) -> Column:
        """Condition that a row and a location, joined with the rows, have the same key."""
        pairs = zip(self.of(rows), self.in_locations, strict=True)
        return reduce(and_, (mine == F.col(theirs) for mine, theirs in pairs))


TEXT = KeyColumns((RECORD_KEY,))


def _compared(column: Column, kind: DataType) -> Column:
    # whole numbers of all widths have the same text, so they are compared as the widest
    return column.cast("bigint") if isinstance(kind, IntegralType) else column


def _bits(kinds: Iterable[DataType], names: Sequence[str], batch: Batch) -> tuple[int, ...]:
    """Number of bits hold the batch's values of each key column, if all are whole numbers, none is negative, and all
    together fit into one."""
    ranges = [batch.ranges[name] for name in names]
    if len(ranges) < 2 or not all(isinstance(kind, IntegralType) for kind in kinds):
        return ()
    if any(least is None or least < 0 for least, _ in ranges):
        return ()
    bits = tuple(most.bit_length() for _, most in ranges)
    return bits if sum(bits) < _LONG_BITS else ()


def native_candidates(schema: StructType, spec: KeySpec) -> tuple[str, ...]:
    """The key fields, if two rows have the same key text exactly when they have the same values there.

    Not for texts: in keys of several fields nothing marks where a text ends. Not for timestamps, whose text depends on
    options, nor for floats (0.0 equals -0.0).
    """
    if spec.auto_keys or not all(name in schema.names for name in spec.record_fields):
        return ()
    kinds = [schema[name].dataType for name in spec.record_fields]
    if not all(isinstance(kind, (IntegralType, DateType, DecimalType)) for kind in kinds):
        return ()
    return spec.record_fields


def scan_locations(
    rows: DataFrame,
    lookup: KeyLookup,
    files: BaseFiles,
    batch: Batch,
    extra: tuple[str, ...],
    *,
    broadcast: bool,
    everywhere: bool,
    merge_logs: bool | None = None,
) -> tuple[DataFrame, KeyColumns]:
    """Find the batch's keys by scanning the key columns of *files*. Lazy.

    *merge_logs* True: the files' slices have log files, and their merged rows are scanned, which have no position.
    Not None: keys are compared as texts, so that both kinds of locations go together.

    Gives locations: key columns, file number, old partition, row position and the *extra* columns of the base rows.
    *broadcast*: the batch is small, and only its own locations are wanted: those of its keys, unless *everywhere* those
    of its keys in its partitions.
    """
    spark = rows.sparkSession
    native = _native_types(rows, lookup, files, batch) if merge_logs is None else {}
    keys = KeyColumns(tuple(native), _bits(native.values(), tuple(native), batch)) if native else TEXT
    engine = lookup.opts.get_typed(options.READ_ENGINE)
    more, exact = _held_fields(rows, lookup, files, extra, merge_logs=merge_logs)
    if native:
        fields = [StructField(name, kind) for name, kind in native.items()]
    elif lookup.virtual_keys:
        fields, same = _held_fields(rows, lookup, files, _key_columns(rows, lookup), merge_logs=merge_logs)
        exact = exact and same
    else:
        fields = [StructField(RECORD_KEY, StringType())]
    schema = StructType([*fields, *(field for field in more if field.name not in {f.name for f in fields})])
    if merge_logs:
        base = merged_slice_rows(spark, lookup, files, schema)
    else:
        base = base_rows(spark, lookup, files, schema, engine=engine if exact else ReadEngine.ARROW)
    base = _within(base, keys, batch)
    texts = [F.col(RECORD_KEY)]
    if native:
        texts = keys.compared([_compared(F.col(quoted([field.name])), field.dataType) for field in fields])
    elif lookup.virtual_keys:
        zone = jvm_zone(spark) if lookup.spec.consistent_timestamps else "UTC"
        texts = [record_key(schema, lookup.spec, zone)]
    kept = [F.col(quoted([n])).cast(resolve(rows.schema, n, "ordering")[1]).alias(extra_name(n)) for n in extra]
    reference = FILE_NO if FILE_NO in base.columns else "_pyhudi_file_name"
    named = [text.alias(name) for text, name in zip(texts, keys.in_locations, strict=True)]
    base = base.select(*named, reference, ROW, *kept)
    if not broadcast:
        return with_file_no(spark, base, files), keys
    incoming = keys.of(rows)
    names = [f"{_KEY}in_{i}" for i in range(len(incoming))]
    ignore_partitions = everywhere or len(batch.partitions) == 1
    wanted = rows.select(*(c.alias(n) for c, n in zip(incoming, names, strict=True)), PARTITION_PATH)
    wanted = F.broadcast(
        wanted.select(*names) if ignore_partitions else wanted.distinct() if batch.has_duplicates else wanted
    )
    same_key = reduce(and_, (F.col(mine) == F.col(n) for mine, n in zip(keys.in_locations, names, strict=True)))
    if ignore_partitions:
        return with_file_no(spark, base.join(wanted, same_key, "left_semi"), files), keys
    # a key may be in many partitions, and only after the join are the file's partitions cheap to know
    locations = with_file_no(spark, base.join(wanted, same_key), files)
    return locations.where(F.col(OLD_PARTITION) == F.col(PARTITION_PATH)).drop(*names, PARTITION_PATH), keys


def extra_name(name: str) -> str:
    """Return the name of a base column in a table of locations."""
    return "_pyhudi_base_" + name


def _within(base: DataFrame, keys: KeyColumns, batch: Batch) -> DataFrame:
    """Rows within the batch's range of keys; Spark's readers skip row groups by it."""
    for name in keys.names:
        least, most = batch.ranges.get(name, (None, None))
        if name in base.columns and least is not None and most is not None:
            base = base.where(F.col(quoted([name])).between(F.lit(least), F.lit(most)))
    return base


def _native_types(rows: DataFrame, lookup: KeyLookup, files: BaseFiles, batch: Batch) -> dict[str, DataType]:
    """The types of the key fields in the files when keys can be compared by them, else nothing."""
    names = native_candidates(rows.schema, lookup.spec)
    if not names or batch.nulls or not set(names) <= set(batch.ranges):
        return {}
    held = stored_types(lookup.client, files, names)
    found: dict[str, DataType] = {}
    for name in names:
        kinds = held[name]
        first = next(iter(kinds))
        if len(kinds) != 1 or first is None:
            return {}
        kind = _spark_type(first)
        mine = rows.schema[name].dataType
        if kind != mine and not (isinstance(kind, IntegralType) and isinstance(mine, IntegralType)):
            return {}
        found[name] = kind
    return found


def _key_columns(rows: DataFrame, lookup: KeyLookup) -> tuple[str, ...]:
    """The columns that keys are made of."""
    tops = (top_column(name, rows.columns) for name in lookup.spec.record_fields)
    return tuple(dict.fromkeys(tops))


def _held_fields(
    rows: DataFrame, lookup: KeyLookup, files: BaseFiles, names: tuple[str, ...], *, merge_logs: bool | None
) -> tuple[list[StructField], bool]:
    """Columns with the types that the files have for them, and whether all files have the same. Merged slices
    (*merge_logs*) have the table's types."""
    if not names:
        return [], True
    if merge_logs:
        found = table_schema(PinnedTable.of(lookup.client))
        held = {n: {found.schema.field(n).type} if found and n in found.schema.names else set() for n in names}
    else:
        held = stored_types(lookup.client, files, names)
    fields: list[StructField] = []
    exact = True
    for name in names:
        kinds: set[Any] = {kind for kind in held[name] if kind is not None}
        exact = exact and len(kinds) <= 1
        kind = _spark_type(next(iter(kinds))) if len(kinds) == 1 else resolve(rows.schema, name, "look-up")[1]
        fields.append(StructField(name, kind))
    return fields, exact


def _spark_type(kind: pa.DataType) -> DataType:
    return spark_schema(pa.schema([("c", kind)])).fields[0].dataType
