"""Minimum and maximum values in column statistics, each in one of a dozen wrapper records.

docs/format/metadata.md, section 3.2. The wrapper of a value depends on the column's type and the table version; from
version 9 on a separate field has the type. A value that was written with another type of the column, or in an ambiguous
form, is *unknown*, in contrast to null: it must not be used for pruning.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import is_text, numpy_mask
from pyhudi.errors import FormatError
from pyhudi.format.decimals import bytes_of_decimals, decimals_from_bytes
from pyhudi.metadata.records.metadata_record import RecordType, payload_type

BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, STRING, DATE, DECIMAL, TIME_MICROS, TIMESTAMP_MICROS, LOCAL_DATE = range(12)
"""Indexes of the wrappers among the members of ``minValue`` and ``maxValue``."""

VALUE = "value"
MEMBER = "member"
"""Prefix of the members' names, followed by their index."""
_V2 = 9
"""First table version with statistics of index version V2."""

NULL_TYPE, BYTES_TYPE, DECIMAL_TYPE, TIMESTAMP_MILLIS, TIMESTAMP_MICROS_TYPE = 1, 8, 10, 15, 16
"""Type numbers in ``valueType``."""
_MILLIS_TYPES = (TIMESTAMP_MILLIS, 18)
_MICROS_TYPES = (TIMESTAMP_MICROS_TYPE, 19)


def is_supported(data_type: pa.DataType, table_version: int) -> bool:
    """Return True if columns of a type have statistics in tables of that version."""
    if _wrapper(data_type, table_version) is None:
        return False
    if pa.types.is_decimal(data_type) and table_version < _V2:
        return bool(data_type.scale <= 15 and data_type.precision + (15 - data_type.scale) <= 30)
    return True


def wrap_values(values: pa.Array, table_version: int) -> pa.StructArray:
    """Return minimum or maximum values (null: none) in their wrappers.

    Raises:
        FormatError: The type has no statistics.
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    data_type = values.type
    place = _wrapper(data_type, table_version)
    if place is None or not is_supported(data_type, table_version):
        raise FormatError(f"columns of type {data_type} have no statistics in tables of version {table_version}")
    union = payload_type(RecordType.COLUMN_STATS, table_version).field("minValue").type
    member = union.field(place).type
    inner = _stored(values, member.field(VALUE).type)
    mask = values.is_null()
    members = [pa.nulls(len(values), field.type) for field in union]
    members[place] = pa.StructArray.from_arrays([inner], fields=list(member), mask=mask)
    return pa.StructArray.from_arrays(members, fields=list(union), mask=mask)


def value_type(data_type: pa.DataType, empty: pa.Array) -> pa.StructArray:
    """Return ``valueType`` for statistics of a column; ``empty`` is a mask of those without values."""
    ordinal = pc.if_else(empty, pa.scalar(NULL_TYPE, pa.int32()), pa.scalar(_ordinal(data_type), pa.int32()))
    info = pa.scalar(None, pa.string())
    if pa.types.is_decimal(data_type):
        info = pa.scalar(f"{data_type.precision},{data_type.scale}")
    info = pc.if_else(empty, pa.scalar(None, pa.string()), info)
    return pa.StructArray.from_arrays([ordinal, info], fields=list(_value_type()))


def unwrap(
    wrapped: pa.Array, data_type: pa.DataType, value_types: pa.Array | None = None
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the values in wrappers as those of a column of a type, and a mask of known ones.

    A known null means that there is no value. ``value_types`` is the field ``valueType``, if there is one.
    """
    count = len(wrapped)
    unset = wrapped.is_null()
    result = pa.nulls(count, data_type)
    is_known = numpy_mask(unset)
    ordinals = _ordinals(value_types, count)
    for number, field in enumerate(wrapped.type):
        place, member = int(field.name.removeprefix(MEMBER)), wrapped.field(number)
        if member.null_count == count:
            continue
        is_set = numpy_mask(pc.and_not(member.is_valid(), unset))
        read_values = (
            _read(place, pc.struct_field(member, [VALUE]), data_type, ordinals, value_types) if place < 12 else None
        )
        if read_values is None:
            continue
        values, usable = read_values
        usable = usable & is_set & numpy_mask(values.is_valid())
        is_known |= usable
        result = values if usable.all() else pc.if_else(pa.array(usable), values, result)
    return result, is_known


def members_of_type(data_type: pa.DataType) -> dict[str, None]:
    """Return the names of the members that can hold values of a column type, so that
    `pyhudi.metadata.records.metadata_record.decode` can skip others."""
    for test, places in (
        (pa.types.is_boolean, (BOOLEAN,)),
        (pa.types.is_integer, (INT, LONG)),
        (pa.types.is_floating, (INT, LONG, FLOAT, DOUBLE)),
        (is_text, (STRING,)),
        (_is_binary, (BYTES,)),
        (pa.types.is_decimal, (BYTES, DECIMAL)),
        (pa.types.is_date32, (INT, DATE, LOCAL_DATE)),
        (pa.types.is_timestamp, (LONG, TIMESTAMP_MICROS)),
    ):
        if test(data_type):
            return {f"{MEMBER}{place}": None for place in places}
    return {}


def _wrapper(data_type: pa.DataType, table_version: int) -> int | None:
    new = table_version >= _V2
    for test, place in (
        (pa.types.is_boolean, BOOLEAN),
        (pa.types.is_int64, LONG),
        (_is_small_integer, INT),
        (pa.types.is_float32, FLOAT),
        (pa.types.is_float64, DOUBLE),
        (is_text, STRING),
        (_is_binary, BYTES),
        (pa.types.is_decimal, BYTES if new else DECIMAL),
        (pa.types.is_date32, INT if new else DATE),
        (pa.types.is_timestamp, LONG),
    ):
        if test(data_type):
            return place
    return None


def _is_small_integer(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_int8(data_type) or pa.types.is_int16(data_type) or pa.types.is_int32(data_type))


def _is_binary(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type)
    )


def _stored(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return values in the type of their wrapper."""
    if pa.types.is_decimal(values.type):
        return values.cast(target) if pa.types.is_decimal(target) else bytes_of_decimals(values)
    if pa.types.is_timestamp(values.type):
        return values.view(pa.int64())
    if pa.types.is_date32(values.type):
        return values.view(pa.int32()).cast(target)
    return values.cast(target)


def _ordinal(data_type: pa.DataType) -> int:
    if pa.types.is_timestamp(data_type):
        base = {"ms": 15, "us": 16, "ns": 17}.get(data_type.unit)
        if base is None:
            raise FormatError(f"columns of type {data_type} have no statistics")
        return base if data_type.tz is not None else base + 3
    place = _wrapper(data_type, _V2)
    if pa.types.is_decimal(data_type):
        return DECIMAL_TYPE
    if pa.types.is_date32(data_type):
        return 12
    if pa.types.is_fixed_size_binary(data_type):
        return 9
    ordinals = {BOOLEAN: 2, INT: 3, LONG: 4, FLOAT: 5, DOUBLE: 6, STRING: 7, BYTES: BYTES_TYPE}
    if place is None:
        raise FormatError(f"columns of type {data_type} have no statistics")
    return ordinals[place]


@functools.cache
def _value_type() -> pa.DataType:
    return payload_type(RecordType.COLUMN_STATS, _V2).field("valueType").type


def _ordinals(value_types: pa.Array | None, count: int) -> npt.NDArray[np.int64]:
    """Return the type numbers; -1 if unknown."""
    if value_types is None or value_types.null_count == count:
        return np.full(count, -1, np.int64)
    numbers = pc.fill_null(pc.struct_field(value_types, ["typeOrdinal"]), -1)
    result: npt.NDArray[np.int64] = numbers.to_numpy(zero_copy_only=False).astype(np.int64)
    return result


def _read(
    place: int, stored: pa.Array, data_type: pa.DataType, ordinals: npt.NDArray[np.int64], value_types: pa.Array | None
) -> tuple[pa.Array, npt.NDArray[np.bool_]] | None:
    """Return the values of one wrapper for a column of a type, and a mask of usable ones; None if none is."""
    all_usable = np.ones(len(stored), np.bool_)
    # Numbers whose recorded type is not a number type do not belong to a numeric column.
    if pa.types.is_decimal(data_type):
        if place == DECIMAL:
            return _cast(stored, data_type), all_usable
        return _decimals(stored, data_type, ordinals, value_types) if place == BYTES else None
    if pa.types.is_date32(data_type):
        if place not in (DATE, LOCAL_DATE, INT):
            return None
        usable = all_usable if place != INT else np.isin(ordinals, (-1, 12))
        return stored.cast(pa.int32()).view(pa.date32()), usable
    if pa.types.is_timestamp(data_type):
        return _timestamps(place, stored, data_type, ordinals)
    plain = ordinals < 7
    if pa.types.is_boolean(data_type):
        return (stored, all_usable) if place == BOOLEAN else None
    if pa.types.is_integer(data_type):
        return (_cast(stored, data_type), plain) if place in (INT, LONG) else None
    if pa.types.is_floating(data_type):
        return (_cast(stored, data_type), plain) if place in (INT, LONG, FLOAT, DOUBLE) else None
    if is_text(data_type):
        return (_cast(stored, data_type), all_usable) if place == STRING else None
    if _is_binary(data_type):
        usable = np.isin(ordinals, (-1, BYTES_TYPE, 9))
        return (_cast(stored, data_type), usable) if place == BYTES else None
    return None


def _cast(stored: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return the values in another type; null, which means unknown, if they do not fit."""
    if stored.type == data_type:
        return stored
    try:
        return stored.cast(data_type)
    except pa.ArrowInvalid:
        cast_values = [_cast_or_none(value, data_type) for value in stored]
        return pa.array([None if value is None else value.as_py() for value in cast_values], data_type)


def _cast_or_none(value: pa.Scalar, data_type: pa.DataType) -> pa.Scalar | None:
    try:
        return value.cast(data_type) if value.is_valid else None
    except pa.ArrowInvalid:
        return None


def _timestamps(
    place: int, stored: pa.Array, data_type: pa.TimestampType, ordinals: npt.NDArray[np.int64]
) -> tuple[pa.Array, npt.NDArray[np.bool_]] | None:
    if place not in (LONG, TIMESTAMP_MICROS):
        return None
    # Without a recorded unit, values are microseconds.
    usable = np.isin(ordinals, _MICROS_TYPES)
    if data_type.unit == "us":
        usable |= ordinals == -1
    micros = stored.cast(pa.int64()).view(pa.timestamp("us", data_type.tz))
    if data_type.unit == "us":
        return micros, usable
    if data_type.unit == "ms":
        return stored.cast(pa.int64()).view(data_type), np.isin(ordinals, _MILLIS_TYPES)
    return None


def _decimals(
    stored: pa.Array, data_type: pa.Decimal128Type, ordinals: npt.NDArray[np.int64], value_types: pa.Array | None
) -> tuple[pa.Array, npt.NDArray[np.bool_]] | None:
    """Return decimals from bytes, whose scale is recorded in the type."""
    if value_types is None:
        return None
    result = pa.nulls(len(stored), data_type)
    remarks = pc.struct_field(value_types, ["additionalInfo"])
    usable = (ordinals == DECIMAL_TYPE) & numpy_mask(remarks.is_valid()) & numpy_mask(stored.is_valid())
    for remark in pc.unique(remarks.filter(pa.array(usable))).to_pylist():
        parts = remark.split(",")
        if len(parts) != 2 or not all(part.strip().isdigit() for part in parts):
            continue
        try:
            written = pa.decimal128(int(parts[0]), int(parts[1]))
        except ValueError:
            continue
        of_type = usable & numpy_mask(pc.fill_null(pc.equal(remarks, remark), False))
        part = pc.if_else(pa.array(of_type), stored, pa.scalar(None, stored.type))
        result = pc.coalesce(result, _cast(decimals_from_bytes(part, written), data_type))
    return result, usable
