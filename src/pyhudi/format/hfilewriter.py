"""Writes HFiles that all releases read: HBase's reader of 0.15 and the native one since 1.0.

HBase wants full keys in the index, too, and a few numbers in the file info; the native reader loses the last entries of
a block whose checksums take more room than those entries, so one checksum covers a whole block.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format import hfileblocks as blocks
from pyhudi.format.hfile import SCHEMA_KEY
from pyhudi.format.hfilecodecs import Codec
from pyhudi.format.pieces import Pieces
from pyhudi.format.varint import unsigned

COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"
BLOCK_SIZE = 64 * 1024
"""Bytes of entries in a block, before compression."""

_LEVEL = 1
"""Of gzip: higher ones cost more than they save."""
_CHUNK = 1 << 30
_LONGEST_KEY = (1 << 15) - 1
_MOST_BYTES = (1 << 31) - 1


def write_hfile(
    keys: pa.Array,
    values: pa.Array,
    *,
    schema: str,
    info: Mapping[str, bytes] | None = None,
    meta: Mapping[str, bytes] | None = None,
    codec: Codec = Codec.GZIP,
    block_size: int = BLOCK_SIZE,
) -> bytes:
    """Return an HFile of keys (text or bytes, ascending by bytes, all different) with values (binary).

    Args:
        schema: Avro JSON of the values.
        info: more entries of the file info.
        meta: meta blocks by name.

    Raises:
        FormatError: keys are null, too long, or not in order; values are null.
    """
    rows = keys.cast(pa.binary())
    _check(rows, values)
    writer = _Writer(codec)
    writer.data(rows, values, block_size)
    writer.meta(meta or {})
    writer.finish(_info(rows, values, schema, info or {}), len(rows))
    return b"".join(writer.parts)


def _check(keys: pa.Array, values: pa.Array) -> None:
    if len(keys) != len(values) or keys.null_count or values.null_count:
        raise FormatError(
            f"{len(keys)} keys ({keys.null_count} null) for {len(values)} values ({values.null_count} null)"
        )
    if len(keys) and pc.max(pc.binary_length(keys)).as_py() > _LONGEST_KEY:
        raise FormatError(
            f"an HFile key of {pc.max(pc.binary_length(keys)).as_py()} bytes; up to {_LONGEST_KEY} are possible"
        )
    if len(keys) > 1 and not pc.all(pc.less(keys[:-1], keys[1:])).as_py():
        raise FormatError("keys of an HFile must be in ascending order of their bytes, and all different")


def _entries(keys: pa.Array, values: pa.Array) -> tuple[memoryview, npt.NDArray[np.int64]]:
    """All entries one after another, and where each begins and the last one ends."""
    rows = Pieces(len(keys))
    row_sizes = pc.binary_length(keys).to_numpy().astype(np.int64)
    value_sizes = pc.binary_length(values).to_numpy().astype(np.int64)
    key_sizes = row_sizes + 2 + len(blocks.KEY_TAIL)
    heads = [key_sizes.astype(">i4"), value_sizes.astype(">i4"), row_sizes.astype(">i2")]
    rows.short(np.concatenate([head.view(np.uint8).reshape(len(keys), -1) for head in heads], axis=1))
    rows.long(keys)
    rows.constant(blocks.KEY_TAIL)
    rows.long(values)
    # the sequence number of a key-value, which Hudi does not use
    rows.constant(b"\0")
    joined = rows.joined()
    offsets = np.frombuffer(joined.buffers()[1], np.int32, len(keys) + 1).astype(np.int64)
    return memoryview(joined.buffers()[2] or b"").cast("B"), offsets


def _info(keys: pa.Array, values: pa.Array, schema: str, more: Mapping[str, bytes]) -> bytes:
    count = max(1, len(keys))
    entries = {
        **more,
        SCHEMA_KEY: schema.encode(),
        "KEY_VALUE_VERSION": struct.pack(">i", 1),
        "MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
        "hfile.AVG_KEY_LEN": struct.pack(">i", (pc.sum(pc.binary_length(keys)).as_py() or 0) // count + 12),
        "hfile.AVG_VALUE_LEN": struct.pack(">i", (pc.sum(pc.binary_length(values)).as_py() or 0) // count),
        "hfile.CREATE_TIME_TS": struct.pack(">q", time.time_ns() // 1_000_000),
    }
    if len(keys):
        entries["hfile.LASTKEY"] = blocks.full_key(keys[-1].as_py())
    pairs = [
        blocks.protobuf_bytes(1, blocks.protobuf_bytes(1, name.encode()) + blocks.protobuf_bytes(2, entries[name]))
        for name in sorted(entries)
    ]
    message = b"".join(pairs)
    return b"PBUF" + unsigned(len(message)) + message


class _Writer:
    def __init__(self, codec: Codec) -> None:
        self.parts: list[bytes] = []
        self._codec = codec
        self._size = 0
        self._index: list[tuple[bytes, int, int]] = []
        self._meta: list[tuple[bytes, int, int]] = []
        self._plain_bytes = 0

    def data(self, keys: pa.Array, values: pa.Array, block_size: int) -> None:
        """Write the data blocks: each ends with the entry that fills it."""
        if len(keys) == 0:
            return
        data, offsets = _entries(keys, values)
        start = 0
        previous = -1
        while start < len(keys):
            end = min(len(keys), int(np.searchsorted(offsets, offsets[start] + block_size)))
            place = self._block(blocks.DATA_MAGIC, data[offsets[start] : offsets[end]], previous)
            self._index.append((blocks.full_key(keys[start].as_py()), *place))
            previous = place[0]
            start = end

    def meta(self, meta: Mapping[str, bytes]) -> None:
        """Write the meta blocks."""
        for name in sorted(meta):
            self._meta.append((name.encode(), *self._block(blocks.META_MAGIC, memoryview(meta[name]), -1)))

    def finish(self, info: bytes, count: int) -> None:
        """Write indexes, file info and trailer."""
        load_on_open = self._size
        index = _index_payload(self._index)
        self._block(blocks.ROOT_INDEX_MAGIC, memoryview(index), -1)
        self._block(blocks.ROOT_INDEX_MAGIC, memoryview(_index_payload(self._meta)), -1)
        info_place, _ = self._block(blocks.FILE_INFO_MAGIC, memoryview(info), -1)
        numbers = {
            1: info_place,
            2: load_on_open,
            3: len(index),
            4: self._plain_bytes,
            5: len(self._index),
            6: len(self._meta),
            7: count,
            8: 1,
            9: self._index[0][1] if self._index else 0,
            10: self._index[-1][1] if self._index else 0,
        }
        message = b"".join(unsigned(n << 3) + unsigned(v) for n, v in numbers.items())
        message += blocks.protobuf_bytes(11, COMPARATOR.encode())
        message += unsigned(12 << 3) + unsigned(self._codec)
        trailer = blocks.TRAILER_MAGIC + unsigned(len(message)) + message
        version = struct.pack(">i", 3 << 24 | blocks.MAJOR_VERSION)
        self._add(trailer.ljust(blocks.TRAILER_SIZE - len(version), b"\0") + version)
        if self._size > _MOST_BYTES:
            raise FormatError(f"an HFile of {self._size} bytes is too large; readers know up to {_MOST_BYTES}")

    def _block(self, magic: bytes, payload: memoryview, previous: int) -> tuple[int, int]:
        """Write a block; return where it is and its bytes on disk."""
        packed: bytes | memoryview = payload
        if self._codec is Codec.GZIP:
            deflate = zlib.compressobj(_LEVEL, wbits=31)
            packed = deflate.compress(payload) + deflate.flush()
        covered = blocks.BLOCK_HEADER.size + len(packed)
        size = covered + 4
        header = blocks.BLOCK_HEADER.pack(
            magic, size - blocks.BLOCK_HEADER.size, len(payload), previous, blocks.CHECKSUM_CRC32, _CHUNK, covered
        )
        checksum = zlib.crc32(packed, zlib.crc32(header))
        self._plain_bytes += blocks.BLOCK_HEADER.size + len(payload)
        place = self._size
        self._add(header)
        self._add(bytes(packed))
        self._add(struct.pack(">I", checksum))
        return place, size

    def _add(self, part: bytes) -> None:
        self.parts.append(part)
        self._size += len(part)


def _index_payload(entries: list[tuple[bytes, int, int]]) -> bytes:
    return b"".join(
        struct.pack(">qi", offset, size) + blocks.hadoop_number(len(key)) + key for key, offset, size in entries
    )
