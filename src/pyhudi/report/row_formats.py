"""Rows of Arrow batches as lines of JSON or as CSV, written batch by batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from pyhudi.read.cdc.json_text import json_objects, json_texts
from pyhudi.schema.table_types import is_list

_ROWS_AT_ONCE = 8_192
"""Number of rows whose JSON is one Arrow array, which has 2 GiB at most."""


def write_json_lines(batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """Write one JSON object per row and line.

    Dates and times are texts such as ``2026-11-21 09:49:47.775000``, with ``Z`` if they are in UTC; binary values are
    base64 text, decimals numbers.

    Args:
        batches: The rows; a batch is written before the next one is taken.
        out: Binary file.
    """
    for batch in batches:
        if not batch.num_columns:
            out.write(b"{}\n" * batch.num_rows)
            continue
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            rows = json_objects(_readable_rows(batch.slice(start, _ROWS_AT_ONCE)))
            out.write(_bytes_of(pc.binary_join_element_wise(rows, "\n", "")))


def write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: BinaryIO) -> None:
    """Write rows as CSV with a header. A null is empty, an empty text ``""``; lists, structs and maps are JSON.

    Args:
        batches: The rows; a batch is written before the next one is taken.
        schema: Schema of the batches.
        out: Binary file.
    """
    if not schema.names:
        return
    flat = pa.schema([field.with_type(_flat_type(field.type)) for field in schema])
    with csv.CSVWriter(out, flat, write_options=csv.WriteOptions(quoting_style="needed")) as writer:
        for batch in batches:
            columns = [_flat(column) for column in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=flat))


def readable(values: pa.Array) -> pa.Array:
    """Return values with dates and times as texts, also those in lists, structs and maps."""
    data_type = _readable_type(values.type)
    return values if data_type == values.type else values.cast(data_type)


def cell_texts(values: pa.Array) -> pa.Array:
    """Return values as texts: dates and times readable, lists, structs and maps as JSON, bytes as base64 text."""
    if pa.types.is_floating(values.type):
        return pc.replace_substring(json_texts(values), '"', "")
    return _flat(values).cast(pa.string())


def _readable_rows(batch: pa.RecordBatch) -> pa.StructArray:
    columns = [readable(column) for column in batch.columns]
    fields = [field.with_type(column.type) for field, column in zip(batch.schema, columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields)


def _readable_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(data_type) or pa.types.is_null(data_type):
        return pa.string()
    if pa.types.is_dictionary(data_type):
        return _readable_type(data_type.value_type)
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_readable_type(field.type)) for field in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(_readable_type(data_type.key_type), _readable_type(data_type.item_type))
    if is_list(data_type):
        return _list_like(data_type, _readable_type(data_type.value_type))
    return data_type


def _list_like(data_type: pa.DataType, value_type: pa.DataType) -> pa.DataType:
    """Return the list type with other values."""
    field = data_type.value_field.with_type(value_type)
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(field, data_type.list_size)
    return pa.large_list(field) if pa.types.is_large_list(data_type) else pa.list_(field)


def _flat_type(data_type: pa.DataType) -> pa.DataType:
    is_plain = pa.types.is_boolean(data_type) or pa.types.is_integer(data_type) or pa.types.is_floating(data_type)
    return data_type if is_plain else pa.string()


def _flat(values: pa.Array) -> pa.Array:
    """Return values of a type that a cell of CSV can have."""
    data_type = values.type
    if _flat_type(data_type) == data_type:
        return values
    if pa.types.is_nested(data_type):
        return json_texts(readable(values))
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type):
        return pc.utf8_slice_codeunits(json_texts(values), 1, -1)  # without the quotes
    return readable(values).cast(pa.string())


def _bytes_of(texts: pa.Array) -> pa.Buffer:
    """Return the bytes of all texts of a new array one after the other."""
    _, offsets, data = texts.buffers()
    end = int(pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, offsets])[-1].as_py())
    return data.slice(0, end)
