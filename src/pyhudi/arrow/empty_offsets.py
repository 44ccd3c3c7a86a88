"""Offsets of lists, maps and texts without values.

Arrow's Java library, as Spark 3.5 uses it, writes no offsets for an array of length zero, as that of the inner lists
where all outer ones are empty or null. The format allows this, but Arrow itself reads the first of these offsets, as in
``nbytes`` and ``flatten``, and whatever it finds there is where it reads on: a segmentation fault, or a wrong number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def with_offsets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return batches from Spark in which every array has offsets."""
    return map(_batch_with_offsets, batches)


def _batch_with_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    before = batch.columns
    columns = [_with_offsets(column) for column in before]
    if all(new is old for new, old in zip(columns, before, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _with_offsets(array: pa.Array) -> pa.Array:
    """Return an array whose nested arrays have offsets: the same one if they have."""
    data_type = array.type
    is_struct = pa.types.is_struct(data_type)
    if array.offset or not (is_struct or pa.types.is_list(data_type) or pa.types.is_map(data_type)):
        return array  # Spark makes neither slices nor other nested types
    if not len(array):
        return pa.array([], data_type)
    before = [array.field(i) for i in range(data_type.num_fields)] if is_struct else [array.values]
    children = [_with_offsets(child) if len(child) else pa.array([], child.type) for child in before]
    if all(new is old for new, old in zip(children, before, strict=True)):
        return array
    own = array.buffers()[: 1 if is_struct else 2]
    return pa.Array.from_buffers(data_type, len(array), own, array.null_count, children=children)
