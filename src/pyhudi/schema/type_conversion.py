"""Conversion of values between table types, as in Apache Hudi after the promotion of a column.

`pyhudi.schema.evolution.write_evolution` defines which promotions are allowed. Conversions through text use Java's
format: a float is converted to double, or text, by its shortest decimal representation.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.logical_types.blobs import check_blobs, is_blob
from pyhudi.schema.logical_types.variants import is_shredded, is_variant
from pyhudi.schema.logical_types.vectors import as_lists, as_vectors, is_vector, vectors_of_bytes
from pyhudi.schema.table_types import is_list, table_type

_NUMBER = r"^(?P<sign>-?)(?P<whole>\d+)(?:\.(?P<part>\d+))?(?:e(?P<exp>[+-]\d+))?$"


_MAX_SHOWN = 100
"""Bytes of a text that an error message shows."""


def convert(array: pa.Array, target: pa.DataType, path: str = "?") -> pa.Array:
    """Return the values as ``target``, a table type.

    Raises:
        SchemaMismatchError: There is no conversion between the types, or a value does not fit.
    """
    if array.type == target:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if pa.types.is_dictionary(array.type):
        return convert(array.dictionary_decode(), target, path)
    if isinstance(array.type, pa.BaseExtensionType):
        return convert(array.storage, target, path)
    if is_vector(target) or is_vector(array.type):
        return _vectors(array, target, path)
    if is_variant(target) and is_shredded(array.type):
        raise SchemaMismatchError(
            f"the variants of column {path!r} are shredded: a file has some of their values as columns; read the "
            "table with Spark 4"
        )
    if is_like_nested(array.type, target):
        result = convert_children(array, target, path, convert)
        if is_blob(target):
            check_blobs(result, path)
        return result
    # Only unit and width may differ from those of a table; a value out of range raises an error.
    plain = table_type(array.type, path)
    rule = _rule(plain, target)
    if rule is None:
        raise SchemaMismatchError(f"cannot convert column {path!r} from {array.type} to {target}; cast it first")
    try:
        return rule(array.cast(plain), target)
    except pa.ArrowNotImplementedError as error:
        raise SchemaMismatchError(
            f"cannot convert column {path!r} from {array.type} to {target}: {error}; cast it first"
        ) from error
    except pa.ArrowInvalid as error:
        refused = _first_refused(array, lambda part: rule(part.cast(plain), target))
        raise SchemaMismatchError(
            f"cannot convert the value {_shown(refused)} of column {path!r} from {array.type} to {target}: {error}; "
            "correct or cast it first"
        ) from error


def _first_refused(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Scalar:
    """Return the first value that a conversion of the array fails at."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            change(array.slice(low, middle - low))
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return array[low]


def _shown(value: pa.Scalar) -> str:
    """Return a value as in an error message: texts and bytes in quotes, their first bytes."""
    t, data_type = pa.types, value.type
    if t.is_string(data_type) or t.is_large_string(data_type):
        return repr(value.cast(pa.large_binary()).as_py()[:_MAX_SHOWN].decode(errors="replace"))
    if t.is_binary(data_type) or t.is_large_binary(data_type) or t.is_fixed_size_binary(data_type):
        return repr(value.as_py()[:_MAX_SHOWN])
    plain = value.cast(pa.timestamp(data_type.unit)) if t.is_timestamp(data_type) else value
    return str(plain.cast(pa.string()))


def _vectors(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    """Convert to vectors, from lists or their bytes in files, or vectors to lists."""
    t = pa.types
    if is_vector(target):
        if is_list(array.type):
            return as_vectors(array, target, path)
        if t.is_binary(array.type) or t.is_fixed_size_binary(array.type) or t.is_large_binary(array.type):
            return vectors_of_bytes(array, target, path)
    elif t.is_list(target):
        return convert(as_lists(array), target, path)
    raise SchemaMismatchError(f"cannot convert column {path!r} from {array.type} to {target}; cast it first")


Rule = Callable[[pa.Array, pa.DataType], pa.Array]


def _rule(source: pa.DataType, target: pa.DataType) -> Rule | None:
    """Return the conversion between two different primitive types."""
    t = pa.types
    if source == target:
        return lambda array, _: array
    if t.is_string(target):
        if t.is_floating(source):
            return lambda array, _: java_text(array)
        if t.is_date(source):
            return lambda array, _: date_text(array)
        if t.is_integer(source) or t.is_decimal(source) or t.is_binary(source):
            return _cast
    if t.is_floating(target) and (t.is_integer(source) or t.is_floating(source)):
        if t.is_float32(source) and t.is_float64(target):
            return lambda array, type_: array.cast(pa.string()).cast(type_)
        return lambda array, type_: array.cast(type_, safe=False)
    if t.is_decimal(target):
        return _to_decimal_rule(source)
    if t.is_string(source) and (t.is_binary(target) or t.is_date(target)):
        return _cast
    if t.is_integer(source) and t.is_integer(target):
        return _cast
    if t.is_timestamp(source) and t.is_timestamp(target) and source.tz == target.tz:
        return _cast
    if t.is_integer(source) and (t.is_time(target) or t.is_timestamp(target)):
        return lambda array, type_: array.cast(pa.int32() if t.is_time32(type_) else pa.int64()).cast(type_)
    if t.is_time(source) and t.is_integer(target):
        return _cast
    return None


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array.cast(target)


def _to_decimal_rule(source: pa.DataType) -> Rule | None:
    if pa.types.is_decimal(source) or pa.types.is_integer(source):
        return _cast_decimal
    if pa.types.is_floating(source):
        return lambda array, target: _round_decimal(array.cast(pa.string()), target)
    return _round_decimal if pa.types.is_string(source) else None


def _cast_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast to a decimal through the widest one, because Arrow requires space for every integer of the source type."""
    return array.cast(pa.decimal256(76, target.scale)).cast(target)


def _round_decimal(text: pa.Array, target: pa.DataType) -> pa.Array:
    """Parse decimal numbers and round half up to the scale of the target, as Java's BigDecimal does."""
    # Arrow refuses more digits than the type has: the first one that is dropped decides.
    text = pc.replace_substring_regex(text, rf"^([+-]?\d*\.\d{{{target.scale + 1}}})\d+$", r"\1")
    exponents = pc.if_else(pc.match_substring_regex(text, "[eE]-"), text, "1").cast(pa.float64())
    text = pc.if_else(pc.less(pc.abs(exponents), 10.0 ** -(target.scale + 1)), "0", text)
    # The other numbers with exponents have up to 17 digits after the first one that counts.
    wide = text.cast(pa.decimal256(76, target.scale + 20))
    return pc.round(wide, target.scale, "half_towards_infinity").cast(pa.decimal256(76, target.scale)).cast(target)


def java_text(array: pa.Array) -> pa.Array:
    """Return floats as formatted by Java: ``5.0``, ``1.0E10``, ``NaN``."""
    text = array.cast(pa.string())
    parts = pc.extract_regex(text, _NUMBER)
    field = {name: pc.struct_field(parts, name) for name in ("sign", "whole", "part", "exp")}
    part = pc.fill_null(field["part"], "")
    shown = pc.if_else(pc.equal(pc.fill_null(field["exp"], ""), ""), "0", field["exp"])
    exponent = pc.utf8_ltrim(shown, "+").cast(pa.int32())
    digits = pc.binary_join_element_wise(field["whole"], part, "")
    stripped = pc.utf8_ltrim(digits, "0")
    leading = pc.subtract(pc.utf8_length(digits), pc.utf8_length(stripped))
    # Exponent of the first non-zero digit.
    power = pc.add(pc.subtract(pc.subtract(pc.utf8_length(field["whole"]), 1), leading), exponent)
    zero = pc.equal(stripped, "")
    plain = pc.or_(zero, pc.and_(pc.greater_equal(power, -3), pc.less(power, 7)))
    # Arrow formats numbers of this range without exponent, so only the fraction may be missing.
    decimal = pc.binary_join_element_wise(field["sign"], field["whole"], ".", "")
    decimal = pc.binary_join_element_wise(decimal, _or_zero(part), "")
    first = pc.utf8_slice_codeunits(stripped, 0, 1)
    rest = _or_zero(pc.utf8_rtrim(pc.utf8_slice_codeunits(stripped, 1), "0"))
    scientific = pc.binary_join_element_wise(field["sign"], first, ".", rest, "E", power.cast(pa.string()), "")
    number = pc.if_else(plain, decimal, scientific)
    special = pc.replace_substring(pc.replace_substring(text, "nan", "NaN"), "inf", "Infinity")
    return pc.if_else(pc.is_finite(array), number, special)


def date_text(array: pa.Array) -> pa.Array:
    """Return dates as formatted by Java: ``2024-01-02``, years after 9999 with a sign, ``+10000-01-01``."""
    return pc.replace_substring_regex(array.cast(pa.string()), r"^(\d{5,}-)", r"+\1")


def _or_zero(text: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(text, ""), "0", text)


Change = Callable[[pa.Array, pa.DataType, str], pa.Array]
"""Converts the values of a type. The path of the column is used in error messages."""


def is_like_nested(source: pa.DataType, target: pa.DataType) -> bool:
    """Return True if both are structs, or both lists, or both maps."""
    t = pa.types
    both_structs = t.is_struct(target) and t.is_struct(source)
    return both_structs or (t.is_map(target) and t.is_map(source)) or (t.is_list(target) and is_list(source))


def convert_children(array: pa.Array, target: pa.DataType, path: str, change: Change) -> pa.Array:
    """Return a struct, list or map array as ``target``. Children are converted by ``change``; missing fields become
    null."""
    if pa.types.is_struct(target):
        return _struct(array, target, path, change)
    return _map(array, target, path, change) if pa.types.is_map(target) else _list(array, target, path, change)


def _struct(array: pa.StructArray, target: pa.StructType, path: str, change: Change) -> pa.Array:
    children, fields = [], [target.field(i) for i in range(target.num_fields)]
    # values below null structs are ignored
    values = array.flatten() if array.null_count else [array.field(i) for i in range(array.type.num_fields)]
    for field in fields:
        index = array.type.get_field_index(field.name)
        if index < 0:
            children.append(pa.nulls(len(array), field.type))
        else:
            children.append(change(values[index], field.type, f"{path}.{field.name}"))
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _list(array: pa.Array, target: pa.ListType, path: str, change: Change) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    offsets = array.offsets
    start, end = offsets[0].as_py(), offsets[-1].as_py()
    values = change(array.values.slice(start, end - start), target.value_type, f"{path}.element")
    return _with_offsets(array, target, offsets, start, values)


def _map(array: pa.MapArray, target: pa.MapType, path: str, change: Change) -> pa.Array:
    offsets = array.offsets
    start, end = offsets[0].as_py(), offsets[-1].as_py()
    keys = change(array.keys.slice(start, end - start), target.key_type, f"{path}.key")
    items = change(array.items.slice(start, end - start), target.item_type, f"{path}.value")
    entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    return _with_offsets(array, target, offsets, start, entries)


def _with_offsets(
    array: pa.Array, target: pa.DataType, offsets: pa.Int32Array, start: int, child: pa.Array
) -> pa.Array:
    """Rebuild lists or maps around a new child, whose first value was the old child's ``start``-th."""
    moved = pc.subtract(offsets, pa.scalar(start, pa.int32()))
    validity = pc.is_valid(array).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(target, len(array), [validity, moved.buffers()[1]], children=[child])
