"""Arrays of length zero that Arrow's Java library writes without offsets."""

from __future__ import annotations

import struct

import pyarrow as pa

from pyhudi.arrow.empty_offsets import with_offsets

WHAT_FOLLOWS = pa.py_buffer(struct.pack("<2i", 1 << 29, 1 << 29))
NO_OFFSETS = WHAT_FOLLOWS.slice(0, 0)
TEXTS = pa.map_(pa.string(), pa.list_(pa.string()))
INNER = pa.struct([("m", TEXTS), ("l", pa.list_(pa.list_(pa.int32()))), ("t", pa.string()), ("n", pa.int32())])


def without_offsets(kind: pa.DataType) -> pa.Array:
    """Return an array of length zero, as the Java library writes it."""
    nested = pa.types.is_nested(kind)
    if pa.types.is_struct(kind):
        children = [without_offsets(field.type) for field in kind]
    elif pa.types.is_map(kind):
        entries = pa.struct([pa.field("key", kind.key_type, nullable=False), ("value", kind.item_type)])
        children = [without_offsets(entries)]
    else:
        children = [without_offsets(kind.value_type)] if nested else []
    buffers = [None, *[NO_OFFSETS] * (kind.num_buffers - 1)]
    return pa.Array.from_buffers(kind, 0, buffers, children=children or None)


def test_lists_inside_of_empty_lists_can_be_measured_and_flattened() -> None:
    offsets = pa.py_buffer(struct.pack("<3i", 0, 0, 0))
    lists = pa.Array.from_buffers(pa.list_(INNER), 2, [None, offsets], children=[without_offsets(INNER)])
    maps = pa.array([[("k", [])], None], TEXTS)
    both = pa.StructArray.from_arrays([lists, maps], ["l", "m"], mask=pa.array([False, True]))
    batch = pa.RecordBatch.from_arrays([lists, maps, both, pa.array(["a", None])], ["l", "m", "s", "t"])
    (found,) = with_offsets([batch])
    found.validate(full=True)
    assert found.schema == batch.schema
    assert found.to_pylist() == [
        {"l": [], "m": [("k", [])], "s": {"l": [], "m": [("k", [])]}, "t": "a"},
        {"l": [], "m": None, "s": None, "t": None},
    ]
    assert 0 < found.nbytes < 500
    assert found["l"].flatten().field("l").flatten().flatten().to_pylist() == []
    (empty,) = with_offsets([pa.RecordBatch.from_arrays([without_offsets(pa.list_(INNER))], ["l"])])
    assert empty.nbytes < 100


def test_other_batches_stay_as_they_are() -> None:
    batch = pa.RecordBatch.from_pylist([{"i": 1, "l": [["x"]], "m": {"a": None}}, {"i": None, "l": None, "m": None}])
    for rows in (batch, batch.slice(1), pa.RecordBatch.from_pylist([{"i": 1}])):
        assert next(with_offsets([rows])) is rows
