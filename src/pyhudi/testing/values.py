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


def random_column(kind: pa.DataType, rows: int, random: np.random.Generator, *, nulls: bool = True) -> pa.Array:
    """Return random values of one type.

    Args:
        kind: Type of the values.
        rows: Number of values.
        random: Source of randomness.
        nulls: Make a fifth of the values null.

    Returns:
        An array of ``rows`` values.
    """
    mask = random.random(rows) < 0.2 if nulls else np.zeros(rows, dtype=np.bool_)
    t = pa.types
    if t.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        children = [random_column(f.type, rows, random, nulls=f.nullable) for f in fields]
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(mask))
    if is_vector(kind):
        numbers = random_column(kind.value_type, rows * kind.list_size, random, nulls=False)
        return pa.FixedSizeListArray.from_arrays(numbers, type=kind, mask=pa.array(mask))
    if t.is_list(kind) or t.is_map(kind):
        sizes = np.where(mask, 0, random.integers(0, 3, rows))
        offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))).astype(np.int32), mask=np.append(mask, False))
        total = int(sizes.sum())
        if t.is_list(kind):
            items = random_column(kind.value_type, total, random, nulls=kind.value_field.nullable)
            return pa.ListArray.from_arrays(offsets, items, type=kind)
        keys = random_column(kind.key_type, total, random, nulls=False)
        return pa.MapArray.from_arrays(offsets, keys, random_column(kind.item_type, total, random), type=kind)
    numbers = random.integers(-2, 3, rows)
    if t.is_string(kind) or t.is_binary(kind):
        values = pa.array([_TEXTS[i] for i in numbers % len(_TEXTS)], pa.string()).cast(kind)
    elif t.is_decimal(kind):
        values = pa.array(numbers).cast(pa.decimal128(38, 0)).cast(kind)
    elif t.is_date(kind) or t.is_time32(kind):
        values = pa.array(np.abs(numbers).astype(np.int32)).cast(kind)
    elif t.is_temporal(kind):
        values = pa.array(np.abs(numbers)).cast(kind)
    else:
        values = pa.array(numbers).cast(kind, safe=False)
    return values.take(pa.array(np.arange(rows), mask=mask))
