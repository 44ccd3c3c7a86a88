"""Timestamps of milliseconds that files describe as microseconds.

Releases of Apache Hudi before 1.1 recorded ``timestamp-millis`` of Avro sources as ``timestamp-micros``, in schemas and
files, without changing the values. Since 1.1 the column is ``timestamp-millis``, and where a Parquet file or a log
block has microseconds for it, the numbers are read as milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pyhudi.schema.table_types import is_list
from pyhudi.schema.type_conversion import convert_children, is_like_nested


def actual_type(stored: pa.DataType, table: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column with the type ``stored`` in a file: microseconds, also inside structs,
    lists and maps, are milliseconds where the table has these.

    >>> actual_type(pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"))
    TimestampType(timestamp[ms, tz=UTC])
    """
    if stored == table:
        return stored
    t = pa.types
    if t.is_timestamp(stored) and t.is_timestamp(table):
        is_mislabelled = (stored.unit, table.unit) == ("us", "ms")
        return pa.timestamp("ms", stored.tz) if is_mislabelled else stored
    if not is_like_nested(stored, table):
        return stored
    if t.is_struct(stored):
        inside = {field.name: field.type for field in table}
        return pa.struct([f.with_type(actual_type(f.type, inside.get(f.name, f.type))) for f in stored])
    if t.is_map(stored):
        item = stored.item_field
        return pa.map_(stored.key_field, item.with_type(actual_type(item.type, table.item_type)))
    if t.is_list(stored) and is_list(table):
        item = stored.value_field
        return pa.list_(item.with_type(actual_type(item.type, table.value_type)))
    return stored


def with_actual_types(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of a Parquet file or a log block with the actual types of timestamps: the batch itself where they
    are as recorded. ``schema`` has columns of the table, or fields inside of structs by their paths; others are left
    alone."""
    kinds = {field.name: field.type for field in schema}
    fields = [f.with_type(_actual_type_at(f.type, f.name, kinds)) for f in batch.schema]
    if all(field.type == column.type for field, column in zip(fields, batch.columns, strict=True)):
        return batch
    columns = [_relabelled(column, field.type) for column, field in zip(batch.columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, batch.schema.metadata))


def _actual_type_at(stored: pa.DataType, path: str, kinds: Mapping[str, pa.DataType]) -> pa.DataType:
    if path in kinds:
        return actual_type(stored, kinds[path])
    if pa.types.is_struct(stored) and any(other.startswith(f"{path}.") for other in kinds):
        return pa.struct([f.with_type(_actual_type_at(f.type, f"{path}.{f.name}", kinds)) for f in stored])
    return stored


def _relabelled(array: pa.Array, data_type: pa.DataType, path: str = "") -> pa.Array:
    if array.type == data_type:
        return array
    return (
        convert_children(array, data_type, path, _relabelled)
        if is_like_nested(array.type, data_type)
        else array.view(data_type)
    )
