"""Columnar decoder of delete lists whose ordering values all have the same kind.

This is the case for nearly every delete block. The kind is determined from the first delete and becomes part of the
schema: the union branch is then a plain number that is the same in all rows if the assumption holds. Other lists are
decoded by the general decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.avro.decoder import RecordProjection, decode_columns
from pyhudi.format.log.delete_ordering import AVRO_NAMES, RAW_TYPES, OrderingKind
from pyhudi.format.varint import encoded_sizes

_MIN_DELETE = 3
"""Bytes of the shortest delete: three null unions."""
_MAX_FIELDS = 64


@dataclass(frozen=True, slots=True)
class UniformDeletes:
    """Deletes as columns; ``values`` has an array of stored ordering values for each of ``kinds``."""

    keys: pa.Array
    partitions: pa.Array
    kinds: tuple[OrderingKind, ...]
    values: Sequence[pa.Array]


@dataclass(frozen=True, slots=True)
class _Shape:
    """Layout of the bytes after key and partition path of every delete: numbers that must match, and values."""

    constants: dict[str, int]
    kinds: tuple[OrderingKind, ...]
    fields: list[dict[str, Any]]


def decode_uniform(body: memoryview) -> UniformDeletes | None:
    """Return the deletes of an Avro delete list, or None if they must be decoded one by one.

    Raises:
        FormatError: The list is invalid.
    """
    reader = _Reader(body)
    try:
        count = reader.long()
        if not 0 < count <= len(body) // _MIN_DELETE:
            return None
        start = reader.at
        shape = _shape(reader)
    except (IndexError, ValueError):
        return None
    if shape is None:
        return None
    long, text = {"type": "long"}, {"type": "string"}
    fields = [{"name": "k", **long}, {"name": "key", **text}, {"name": "p", **long}, {"name": "partition", **text}]
    constants = {"k": 1, "p": 1, **shape.constants}
    expected = {"key": pa.string(), "partition": pa.string()}
    expected |= dict.fromkeys(constants, pa.int64())
    expected |= {f"v{i}": RAW_TYPES[kind] for i, kind in enumerate(shape.kinds)}
    # The list ends with an empty array block.
    items = body[start:-1]
    record = {"type": "record", "name": "row", "fields": [*fields, *shape.fields]}
    try:
        columns = decode_columns(record, items, count, {name: RecordProjection(raw) for name, raw in expected.items()})
    except FormatError:
        return None
    if any(
        pc.count(pc.index_in(columns[name], pa.array([number])), "only_null").as_py()
        for name, number in constants.items()
    ):
        return None
    values = [columns[f"v{i}"] for i in range(len(shape.kinds))]
    # With this number of bytes, all varints are minimal and nothing remains.
    size = count * len(constants) + sum(_size(array) for array in (columns["key"], columns["partition"], *values))
    if size != len(items) or body[-1] != 0:
        return None
    return UniformDeletes(columns["key"], columns["partition"], shape.kinds, values)


def _shape(reader: _Reader) -> _Shape | None:
    for _ in range(2):
        if reader.long() != 1:
            return None
        reader.skip(reader.long())
    branch = reader.long()
    if branch == OrderingKind.NONE:
        return None
    if branch != OrderingKind.ARRAY:
        kind = OrderingKind(branch)
        fields = [{"name": "branch", "type": "long"}, {"name": "v0", "type": AVRO_NAMES[kind]}]
        return _Shape({"branch": branch}, (kind,), fields)
    return _array_shape(reader)


def _array_shape(reader: _Reader) -> _Shape | None:
    """Return the layout of several ordering values: an optional array whose items have individual types."""
    constants = {"branch": int(OrderingKind.ARRAY), "present": 1, "items": 0}
    if reader.long() != 1:
        return None
    constants["items"] = items = reader.long()
    if not 0 < items <= _MAX_FIELDS:
        return None
    fields = [{"name": name, "type": "long"} for name in constants]
    kinds = []
    for i in range(items):
        branch = reader.long()
        kind = OrderingKind(branch if branch < OrderingKind.ARRAY else branch + 1)
        if kind is OrderingKind.NONE:
            return None
        kinds.append(kind)
        constants[f"b{i}"] = branch
        avro = AVRO_NAMES[kind]
        fields += [{"name": f"b{i}", "type": "long"}, {"name": f"v{i}", "type": avro}]
        reader.skip_value(avro)
    constants["end"] = 0
    fields.append({"name": "end", "type": "long"})
    return _Shape(constants, tuple(kinds), fields)


def _size(array: pa.Array) -> int:
    """Return the encoded bytes of a column's values, without unions."""
    if pa.types.is_boolean(array.type):
        return len(array)
    if pa.types.is_floating(array.type):
        return len(array) * int(array.type.bit_width) // 8
    if pa.types.is_integer(array.type):
        return int(encoded_sizes(array.cast(pa.int64()).to_numpy(zero_copy_only=False)).sum())
    lengths = pc.binary_length(array).cast(pa.int64()).to_numpy()
    return int((encoded_sizes(lengths) + lengths).sum())


class _Reader:
    """Reader of the first delete; raises IndexError if the bytes end, ValueError for an invalid varint."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.at = 0

    def long(self) -> int:
        result = 0
        for shift in range(0, 70, 7):
            byte = self._data[self.at]
            self.at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1)
        raise ValueError("a varint is too long")

    def skip(self, length: int) -> None:
        if length < 0:
            raise ValueError("a negative length")
        self.at += length

    def skip_value(self, avro: str) -> None:
        if avro in ("int", "long"):
            self.long()
        elif avro in ("string", "bytes"):
            self.skip(self.long())
        else:
            self.skip({"boolean": 1, "float": 4, "double": 8}[avro])
