"""Arrow types of tables, and conversion of other Arrow types to them.

Apache Hudi's types are Avro's: there are no small or unsigned integers, no large or dictionary-encoded text, and a
timestamp is either an instant (UTC) or local.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pyarrow as pa

from pyhudi.errors import SchemaError
from pyhudi.schema.logical_types.blobs import is_blob
from pyhudi.schema.logical_types.variants import VARIANT, has_variant_fields, is_variant
from pyhudi.schema.logical_types.vectors import is_vector, vector_type

MAX_PRECISION = 38
"""Maximum number of decimal digits of a number in a table."""

NAME_RULE = "names start with a letter or underscore, followed by letters, digits and underscores"
"""Names that columns and fields may have, as said in error messages (`is_valid_name`)."""

LIST_ITEM = "element"
"""Name of the item field of Arrow lists."""

COMMENT = b"comment"
"""Key of a column's comment in Arrow field metadata (Spark's `comment`, Avro's `doc`)."""
DEFAULT = b"hudi.default"
"""Key of a non-null default value (JSON) in Arrow field metadata, kept from the Avro schema of tables that have it."""
DECIMAL_FORM = b"hudi.decimal"
"""Key of the Avro type of decimals in Arrow field metadata, also of items and values: ``bytes`` if the Avro schema of
the table has that instead of fixed, because schemas with one and the other are incompatible in Avro."""


def to_table_types(schema: pa.Schema) -> pa.Schema:
    """Return the schema as stored in a table: types as in `table_type`, names checked.

    Raises:
        SchemaError: A column has an unsupported type or an invalid name, or names are not unique.
    """
    _check_names("", schema.names)
    return pa.schema([_table_field(field, field.name) for field in schema])


def as_nullable(schema: pa.Schema) -> pa.Schema:
    """Return the schema with every column, field and item nullable, as Apache Hudi stores those of DataFrames."""
    return pa.schema([field.with_type(nullable_type(field.type)).with_nullable(True) for field in schema])


def nullable_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type with everything inside nullable (except map keys, and fields of blobs and variants)."""
    if is_blob(data_type) or is_variant(data_type):
        return data_type
    return with_changed_children(
        data_type, lambda child: child.with_type(nullable_type(child.type)).with_nullable(True)
    )


def with_changed_children(data_type: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Return a nested type with its item, value and field types changed; others, and vectors, unchanged."""
    if is_vector(data_type):
        return data_type
    if pa.types.is_struct(data_type):
        return pa.struct([change(data_type.field(i)) for i in range(data_type.num_fields)])
    if pa.types.is_map(data_type):
        return pa.map_(data_type.key_type, change(data_type.item_field))
    if is_list(data_type):
        return pa.list_(change(data_type.value_field))
    return data_type


def is_list(data_type: pa.DataType) -> bool:
    """Return True for any of Arrow's list types."""
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
    return any(check(data_type) for check in checks) or pa.types.is_large_list_view(data_type)


def table_type(data_type: pa.DataType, path: str = "?") -> pa.DataType:
    """Return the table type for values of an Arrow type. ``path`` is the column in error messages.

    Small and unsigned integers become int32 or int64 (uint64 is refused), half floats float32, all strings string, all
    bytes binary, lists list, decimals decimal128, date64 date32, dictionaries their value type. Timestamps keep
    milliseconds and otherwise become microseconds, with time zone UTC or none. Columns with lists of a fixed number of
    floats, doubles or bytes are vectors (`pyhudi.schema.logical_types.vectors`), and structs of certain required fields
    blobs or variants (`pyhudi.schema.logical_types.blobs`, `pyhudi.schema.logical_types.variants`).
    """
    t = pa.types
    if isinstance(data_type, pa.BaseExtensionType):
        return table_type(data_type.storage_type, path)
    if t.is_dictionary(data_type):
        return table_type(data_type.value_type, path)
    if t.is_integer(data_type):
        return _integer(data_type, path)
    if t.is_float16(data_type):
        return pa.float32()
    if t.is_string(data_type) or t.is_large_string(data_type) or t.is_string_view(data_type):
        return pa.string()
    if t.is_binary(data_type) or t.is_large_binary(data_type) or t.is_binary_view(data_type):
        return pa.binary()
    if t.is_fixed_size_binary(data_type):
        return pa.binary()
    if t.is_decimal(data_type):
        return _decimal(data_type, path)
    if t.is_date(data_type):
        return pa.date32()
    if t.is_timestamp(data_type):
        return pa.timestamp("ms" if data_type.unit == "ms" else "us", None if data_type.tz is None else "UTC")
    if t.is_time(data_type):
        return pa.time32("ms") if t.is_time32(data_type) else pa.time64("us")
    if has_variant_fields(data_type) and not any(field.nullable for field in data_type):
        return VARIANT
    if t.is_struct(data_type):
        fields = [data_type.field(i) for i in range(data_type.num_fields)]
        _check_names(path, [field.name for field in fields])
        return pa.struct([_table_field(field, f"{path}.{field.name}") for field in fields])
    if t.is_map(data_type):
        key = table_type(data_type.key_type, f"{path}.key")
        if not t.is_string(key):
            raise SchemaError(
                f"column {path!r} is a map with keys of type {data_type.key_type}; only string keys are supported"
            )
        return pa.map_(key, _table_item("value", data_type.item_field, path))
    if is_vector(data_type) and "." not in path:
        return vector_type(data_type.list_size, data_type.value_type)
    if is_list(data_type):
        return pa.list_(_table_item(LIST_ITEM, data_type.value_field, path))
    if t.is_boolean(data_type) or t.is_float32(data_type) or t.is_float64(data_type) or t.is_null(data_type):
        return data_type
    raise SchemaError(f"column {path!r} has type {data_type}, which Hudi tables do not support; convert it first")


def _table_field(field: pa.Field, path: str) -> pa.Field:
    metadata = {key: value for key, value in (field.metadata or {}).items() if key in (COMMENT, DEFAULT, DECIMAL_FORM)}
    return pa.field(field.name, table_type(field.type, path), field.nullable, metadata or None)


def _table_item(name: str, item: pa.Field, path: str) -> pa.Field:
    """Return the field of items of lists or values of maps."""
    metadata = {key: value for key, value in (item.metadata or {}).items() if key == DECIMAL_FORM}
    return pa.field(name, table_type(item.type, f"{path}.{name}"), item.nullable, metadata or None)


def _integer(data_type: pa.DataType, path: str) -> pa.DataType:
    if pa.types.is_uint64(data_type):
        raise SchemaError(
            f"column {path!r} has type uint64, which Hudi tables do not support; convert it to int64 or decimal(20, 0)"
        )
    return pa.int64() if data_type.bit_width == 64 or pa.types.is_uint32(data_type) else pa.int32()


def _decimal(data_type: pa.DataType, path: str) -> pa.DataType:
    precision, scale = data_type.precision, data_type.scale
    if precision > MAX_PRECISION or not 0 <= scale <= precision:
        raise SchemaError(
            f"column {path!r} has type decimal({precision}, {scale}); a table supports at most {MAX_PRECISION} "
            "digits and a scale between 0 and the precision"
        )
    return pa.decimal128(precision, scale)


def _check_names(path: str, names: list[str]) -> None:
    for name in names:
        if not is_valid_name(name):
            where = f" in {path!r}" if path else ""
            raise SchemaError(f"invalid column name {name!r}{where}: {NAME_RULE}; rename the column")
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SchemaError(f"column names{f' in {path!r}' if path else ''} must be unique; duplicates: {twice}")


def is_valid_name(name: str) -> bool:
    """Return True for a valid Avro name as checked by Apache Hudi: letters and digits of any script are allowed."""
    return (
        bool(name)
        and (_is_letter(name[0]) or name[0] == "_")
        and all(_is_letter(c) or c == "_" or (c <= "\uffff" and unicodedata.category(c) == "Nd") for c in name)
    )


def _is_letter(c: str) -> bool:
    # Java considers UTF-16 units, so letters outside the basic plane are invalid.
    return c <= "\uffff" and c.isalpha()
