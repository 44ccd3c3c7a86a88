"""Random Arrow columns of every type that a table can have, with few distinct values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyhudi.schema.logical_types.vectors import is_vector

_TEXTS = ("", "a", "b", "ab", "é", "zz")


def random_rows(schema: pa.Schema, rows: int, random: np.random.Generator) -> pa.RecordBatch:
    """Return random rows.

    Args:
        schema: Schema of the rows; nullable columns get nulls.
        rows: Number of rows.
        random: Source of randomness.

    Returns:
        A batch of ``rows`` rows.
    """
    columns = [random_column(f.type, rows, random, nulls=f.nullable) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def random_column(data_type: pa.DataType, rows: int, random: np.random.Generator, *, nulls: bool = True) -> pa.Array:
    """Return random values of one type.

    Args:
        data_type: Type of the values.
        rows: Number of values.
        random: Source of randomness.
        nulls: Make a fifth of the values null.

    Returns:
        An array of ``rows`` values.
    """
    mask = random.random(rows) < 0.2 if nulls else np.zeros(rows, dtype=np.bool_)
    t = pa.types
    if t.is_struct(data_type):
        fields = [data_type.field(i) for i in range(data_type.num_fields)]
        children = [random_column(f.type, rows, random, nulls=f.nullable) for f in fields]
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(mask))
    if is_vector(data_type):
        numbers = random_column(data_type.value_type, rows * data_type.list_size, random, nulls=False)
        return pa.FixedSizeListArray.from_arrays(numbers, type=data_type, mask=pa.array(mask))
    if t.is_list(data_type) or t.is_map(data_type):
        sizes = np.where(mask, 0, random.integers(0, 3, rows))
        offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32), mask=np.append(mask, False))
        total = int(sizes.sum())
        if t.is_list(data_type):
            items = random_column(data_type.value_type, total, random, nulls=data_type.value_field.nullable)
            return pa.ListArray.from_arrays(offsets, items, type=data_type)
        keys = random_column(data_type.key_type, total, random, nulls=False)
        return pa.MapArray.from_arrays(offsets, keys, random_column(data_type.item_type, total, random), type=data_type)
    numbers = random.integers(-2, 3, rows)
    if t.is_string(data_type) or t.is_binary(data_type):
        values = pa.array([_TEXTS[i] for i in numbers % len(_TEXTS)], pa.string()).cast(data_type)
    elif t.is_decimal(data_type):
        values = pa.array(numbers).cast(pa.decimal128(38, 0)).cast(data_type)
    elif t.is_date(data_type) or t.is_time32(data_type):
        values = pa.array(np.abs(numbers).astype(np.int32)).cast(data_type)
    elif t.is_temporal(data_type):
        values = pa.array(np.abs(numbers)).cast(data_type)
    else:
        values = pa.array(numbers).cast(data_type, safe=False)
    return values.take(pa.array(np.arange(rows), mask=mask))
