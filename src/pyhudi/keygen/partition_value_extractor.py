"""Decoding of partition paths to column values, for pruning and for tables whose files omit partition columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pyhudi.config import property_keys
from pyhudi.keygen.key_spec import DEFAULT_PARTITION
from pyhudi.schema.name_resolution import field_type
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionField, PartitionKind
from pyhudi.table.config.table_config import TableConfig

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode_partition_paths(config: TableConfig, schema: pa.Schema, paths: Sequence[str]) -> pa.Table:
    """Decode the values of the partition columns from partition paths.

    The result has one row per path, in the given order. For each partition field it has a column with its name (and its
    type in *schema*; string if the schema lacks it) that is null if the path cannot be decoded, and a boolean column
    ``exact_<i>`` (i: position of the field) that is true if the rows certainly hold this value. It is false for
    timestamp fields (the path holds a formatted part of the value), for fields whose conversion is unknown
    (:func:`has_known_kinds`), for the default partition of texts and binaries (null or empty), for texts with slashes
    and for paths that do not match the fields.

    A path is the whole value of a single field, regardless of its levels. Never raises for unexpected paths.
    """
    fields = partition_fields(config)
    rows = [_decode(path, fields, config) for path in paths]
    known = has_known_kinds(config)
    columns: dict[str, pa.Array] = {}
    exacts: dict[str, pa.Array] = {}
    for index, field in enumerate(fields):
        data_type = field_type(schema, field.name) or pa.string()
        values: list[Any] = []
        exact: list[bool] = []
        for texts in rows:
            formatted = field.kind is PartitionKind.TIMESTAMP
            if texts is None or (
                formatted and not pa.types.is_string(data_type) and not pa.types.is_integer(data_type)
            ):
                value, certain = None, False
            else:
                value, certain = _value(texts[index], data_type, config)
            values.append(value)
            exact.append(certain and known and not formatted)
        columns[field.name] = pa.array(values, type=data_type)
        exacts[f"exact_{index}"] = pa.array(exact, type=pa.bool_())
    if not fields:
        return pa.table({}).select([])
    return pa.table({**columns, **exacts})


def has_known_kinds(config: TableConfig) -> bool:
    """Return True if the conversion of partition values to text is known. Version 6 does not store the kinds of fields
    of the custom generator, and conversions of user-defined generators are unknown."""
    if config.keygen is KeyGenType.CUSTOM:
        typed = any(field.kind is PartitionKind.TIMESTAMP for field in config.partition_fields)
        return typed or ":" in config.properties.get(property_keys.PARTITION_FIELDS, "")
    return config.keygen is not KeyGenType.USER_PROVIDED


def partition_fields(config: TableConfig) -> tuple[PartitionField, ...]:
    """Return the fields of the table's partition paths (none for generators without partitions)."""
    if config.keygen in (KeyGenType.NON_PARTITION, KeyGenType.GLOBAL_DELETE):
        return ()
    if config.keygen is KeyGenType.TIMESTAMP:
        return tuple(PartitionField(field.name, PartitionKind.TIMESTAMP) for field in config.partition_fields)
    return config.partition_fields


def as_formatted(config: TableConfig, schema: pa.Schema) -> pa.Schema:
    """Return the schema with columns of a timestamp generator as texts, as in paths."""
    for field in partition_fields(config):
        if field.kind is PartitionKind.TIMESTAMP and field.name in schema.names:
            schema = schema.set(schema.get_field_index(field.name), pa.field(field.name, pa.string()))
    return schema


def partition_texts(config: TableConfig, path: str) -> tuple[str | None, ...] | None:
    """Return the unescaped text of each partition field (null: the default partition); None if *path* does not
    match."""
    return _decode(path, partition_fields(config), config)


def _decode(path: str, fields: tuple[PartitionField, ...], config: TableConfig) -> tuple[str | None, ...] | None:
    if not fields:
        return () if not path else None
    segments = _hive_segments(path, fields) if config.hive_style else _plain_segments(path, fields, config)
    if segments is None:
        return None
    return tuple(
        None if text == DEFAULT_PARTITION else (unquote(text) if config.url_encode else text) for text in segments
    )


def _hive_segments(path: str, fields: tuple[PartitionField, ...]) -> tuple[str, ...] | None:
    pattern = "/".join(re.escape(field.name) + "=(.*)" for field in fields)
    match = re.fullmatch(pattern, path, re.DOTALL)
    return match.groups() if match else None


def _plain_segments(path: str, fields: tuple[PartitionField, ...], config: TableConfig) -> tuple[str, ...] | None:
    if len(fields) == 1:
        return (path,)
    parts = path.split("/")
    widths = [_levels(field, config) for field in fields]
    if len(parts) != sum(widths):
        return None
    segments: list[str] = []
    start = 0
    for width in widths:
        segments.append("/".join(parts[start : start + width]))
        start += width
    return tuple(segments)


def _levels(field: PartitionField, config: TableConfig) -> int:
    """Return the number of folder levels of the value of a field."""
    if field.kind is not PartitionKind.TIMESTAMP or config.url_encode:
        return 1
    return config.properties.get(property_keys.TIMESTAMP_OUTPUT_FORMAT, "").count("/") + 1


def _value(text: str | None, data_type: pa.DataType, config: TableConfig) -> tuple[Any, bool]:
    """Return the typed value of a partition text, and whether the rows certainly hold it."""
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return _text_value(text, config)
    if text is None:
        return None, not pa.types.is_binary(data_type) and not pa.types.is_large_binary(data_type)
    parser = next((parse for test, parse in _PARSERS if test(data_type)), None)
    if parser is None:
        return None, False
    # Such a number has the unit of the column, except from writers on Spark, which use microseconds.
    millis = pa.types.is_timestamp(data_type) and data_type.unit == "ms"
    try:
        value = parser(f"{text}000" if millis else text)
        # Rows cannot hold a value that exceeds the type.
        pa.scalar(value, type=data_type)
    except (ValueError, ArithmeticError, InvalidOperation, OverflowError, pa.ArrowException):
        return None, False
    return value, not millis


def _text_value(text: str | None, config: TableConfig) -> tuple[str | None, bool]:
    if text is None:
        return None, False
    if config.url_encode:
        return text, not (config.slash_dates and "/" in text)
    # Two slashes in a value are one in the folder name, and a dash may have been replaced by a slash.
    return text, "/" not in text


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def _date(text: str) -> date:
    return date.fromisoformat(text.replace("/", "-"))


def _timestamp(text: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(text))


def _local_timestamp(text: str) -> datetime:
    return _timestamp(text).replace(tzinfo=None)


_Test = Callable[[pa.DataType], bool]
_PARSERS: tuple[tuple[_Test, Callable[[str], Any]], ...] = (
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_date32, _date),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, _timestamp),
    (pa.types.is_timestamp, _local_timestamp),
    (pa.types.is_binary, bytes.fromhex),
    (pa.types.is_large_binary, bytes.fromhex),
)
