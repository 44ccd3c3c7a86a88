"""Ordering values of deletes, each with the kind of value that its writer used.

The kinds are the branches of Avro's union in delete blocks of content version 3. A delete without ordering value has
the int 0, Apache Hudi's default, and is ordered by commit time only.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError, SchemaMismatchError
from pyhudi.format.decimals import bytes_of_decimals, decimals_from_bytes
from pyhudi.schema.type_conversion import convert

DECIMAL_TYPE = pa.decimal128(38, 15)
"""Type to which decimals are converted in a delete block. Its schema declares 30 digits, which is never checked."""


NATURAL_COLUMN = "_pyhudi_natural"
"""Column that is true if a delete has the default ordering value and is thus ordered by commit time."""


class OrderingKind(IntEnum):
    """Branch indexes of the union. The last one occurs only inside arrays, with this number minus one."""

    NONE = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    STRING = 7
    DATE = 8
    DECIMAL = 9
    TIME_MICROS = 10
    TIMESTAMP_MICROS = 11
    ARRAY = 12
    LOCAL_DATE = 13


RAW_TYPES = {
    OrderingKind.NONE: pa.null(),
    OrderingKind.BOOLEAN: pa.bool_(),
    OrderingKind.INT: pa.int32(),
    OrderingKind.LONG: pa.int64(),
    OrderingKind.FLOAT: pa.float32(),
    OrderingKind.DOUBLE: pa.float64(),
    OrderingKind.BYTES: pa.binary(),
    OrderingKind.STRING: pa.string(),
    OrderingKind.DATE: pa.int32(),
    OrderingKind.DECIMAL: pa.binary(),
    OrderingKind.TIME_MICROS: pa.int64(),
    OrderingKind.TIMESTAMP_MICROS: pa.int64(),
    OrderingKind.LOCAL_DATE: pa.int32(),
}
"""Arrow types of stored values: decimals and bytes as bytes, dates and times as numbers."""


AVRO_NAMES = {
    OrderingKind.BOOLEAN: "boolean",
    OrderingKind.INT: "int",
    OrderingKind.LONG: "long",
    OrderingKind.FLOAT: "float",
    OrderingKind.DOUBLE: "double",
    OrderingKind.BYTES: "bytes",
    OrderingKind.STRING: "string",
    OrderingKind.DATE: "int",
    OrderingKind.DECIMAL: "bytes",
    OrderingKind.TIME_MICROS: "long",
    OrderingKind.TIMESTAMP_MICROS: "long",
    OrderingKind.LOCAL_DATE: "int",
}
"""Avro's primitive types of the stored values."""


class Ordering(NamedTuple):
    """One ordering value: of the raw type of its kind, or a tuple of such for ``ARRAY``."""

    kind: OrderingKind
    value: Any

    @property
    def is_natural(self) -> bool:
        """True for the default, which means ordering by commit time."""
        return self.kind is OrderingKind.NONE or (self.kind is OrderingKind.INT and self.value == 0)


NATURAL = Ordering(OrderingKind.INT, 0)
"""Ordering value of a delete that has none."""


def to_column(values: pa.Array, kind: OrderingKind, field: pa.Field) -> pa.Array:
    """Return stored ordering values of one kind as values of an ordering field.

    Raises:
        FormatError: The kind cannot be converted to the field's type.
    """
    target = field.type
    try:
        if kind is OrderingKind.NONE:
            return pa.nulls(len(values), target)
        return (
            _temporal(values, kind, target) if _is_temporal(target) else convert(_plain(values, kind, target), target)
        )
    except (SchemaMismatchError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FormatError(
            f"a delete has an ordering value of kind {kind.name}, but field {field.name!r} has type {target}: {error}"
        ) from error


def to_stored(values: pa.Array, field: pa.Field) -> tuple[OrderingKind, pa.Array]:
    """Return values of an ordering field as stored in deletes by Apache Hudi, and their kind; nulls stay null.

    Raises:
        FormatError: Deletes do not support values of that type, or a decimal has more than 15 digits after the point.
    """
    target = field.type
    values = values if values.type == target else values.cast(target)
    for kind in (
        OrderingKind.BOOLEAN,
        OrderingKind.INT,
        OrderingKind.LONG,
        OrderingKind.FLOAT,
        OrderingKind.DOUBLE,
        OrderingKind.BYTES,
        OrderingKind.STRING,
    ):
        if RAW_TYPES[kind] == target:
            return kind, values
    if pa.types.is_date32(target):
        # Apache Hudi 1.x fails to read a date here. 0.15.0 writes one, which it does not compare with those of records.
        return OrderingKind.INT, values.view(pa.int32())
    if pa.types.is_timestamp(target) or pa.types.is_time64(target):
        return OrderingKind.LONG, values.view(pa.int64())
    if pa.types.is_time32(target):
        return OrderingKind.INT, values.view(pa.int32())
    if pa.types.is_decimal(target):
        wide = pa.decimal128(38, DECIMAL_TYPE.scale)
        try:
            return OrderingKind.DECIMAL, bytes_of_decimals(values.cast(pa.decimal256(76, wide.scale)).cast(wide))
        except pa.ArrowInvalid as error:
            raise FormatError(
                f"a delete cannot store a value of ordering field {field.name!r} ({target}): {error}"
            ) from error
    raise FormatError(
        f"deletes do not support the type {target} of ordering field {field.name!r}; choose another field"
    )


def _is_temporal(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(data_type))


def _plain(values: pa.Array, kind: OrderingKind, target: pa.DataType) -> pa.Array:
    if kind is OrderingKind.DECIMAL:
        return decimals_from_bytes(values, DECIMAL_TYPE)
    if kind is OrderingKind.BYTES and pa.types.is_decimal(target):
        return decimals_from_bytes(values, target)
    if kind in (OrderingKind.DATE, OrderingKind.LOCAL_DATE):
        return values.view(pa.date32())
    return values


def _temporal(values: pa.Array, kind: OrderingKind, target: pa.DataType) -> pa.Array:
    if pa.types.is_string(values.type):
        return values.cast(target)
    if not pa.types.is_integer(values.type):
        raise pa.ArrowInvalid(f"{values.type} is neither a date nor a time type")
    if pa.types.is_date32(target):
        return values.cast(pa.int32()).view(target)
    if kind in (OrderingKind.DATE, OrderingKind.LOCAL_DATE):
        return values.view(pa.date32()).cast(target)
    if target.bit_width == 32:
        return (pc.divide(values, 1000) if kind is OrderingKind.TIME_MICROS else values).cast(pa.int32()).view(target)
    wide = values.cast(pa.int64())
    if kind is OrderingKind.TIMESTAMP_MICROS and target.unit == "ms":
        return (
            pc.floor_temporal(wide.view(pa.timestamp("us")), unit="millisecond").cast(pa.timestamp("ms")).view(target)
        )
    return wide.view(target)
