"""Writer of HFiles that all releases read: HBase's reader of 0.15 and the native one since 1.0.

HBase requires full keys in the index, too, and some numbers in the file info. The native reader loses the last entries
of a block whose checksums are longer than those entries, so one checksum covers a whole block.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FileSizeError, FormatError
from pyhudi.format.binary_builder import BinaryRowBuilder
from pyhudi.format.hfile import hfile_blocks as blocks
from pyhudi.format.hfile.block_codecs import Codec
from pyhudi.format.hfile.hfile_reader import SCHEMA_KEY
from pyhudi.format.varint import unsigned

COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"

_LEVEL = 1
"""Level of gzip; higher ones cost more than they save."""
_CHUNK = 1 << 30
LONGEST_KEY = (1 << 15) - 1
"""Bytes of the longest key that an HFile can have."""
_MAX_BYTES = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class HFileContext:
    """Layout of the blocks of an HFile.

    Attributes:
        codec: Compression of all blocks.
        block_size: Bytes of entries from which a data block is full, before compression.
    """

    codec: Codec = Codec.GZIP
    block_size: int = 64 * 1024


def write_hfile(
    keys: pa.Array,
    values: pa.Array,
    *,
    schema: str,
    info: Mapping[str, bytes] | None = None,
    context: HFileContext | None = None,
) -> bytes:
    """Return an HFile of keys (text or bytes, ascending by bytes, unique) with values (binary).

    Args:
        keys: The keys.
        values: The value of each key.
        schema: Avro JSON of the values.
        info: Additional entries of the file info.
        context: Layout of the blocks.

    Raises:
        FormatError: Keys are null, too long, or not ascending, or values are null.
    """
    parts: list[bytes] = []
    writer = HFileWriter(parts.append, schema=schema, info=info, context=context)
    writer.add(keys, values)
    writer.finish()
    return b"".join(parts)


class HFileWriter:
    """Writes an HFile of entries that are added in order, several at a time; arguments as of `write_hfile`.

    ``sink`` receives the bytes part by part. Memory: the entries of one call, and the block index.

    Raises:
        FormatError: As of `write_hfile`.
        FileSizeError: The file gets too large.
    """

    def __init__(
        self,
        sink: Callable[[bytes], object],
        *,
        schema: str,
        info: Mapping[str, bytes] | None = None,
        context: HFileContext | None = None,
    ) -> None:
        self._blocks = _Blocks(sink, context or HFileContext())
        self._schema, self._info = schema, info or {}
        self._count = self._key_bytes = self._value_bytes = 0
        self._last = pa.array([], pa.binary())

    @property
    def count(self) -> int:
        """Number of entries so far."""
        return self._count

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._blocks.size

    def add(self, keys: pa.Array, values: pa.Array) -> None:
        """Write entries. A block ends with the entry that fills it, and with the last one."""
        if not len(keys) and not len(values):
            return
        rows = keys.cast(pa.binary())
        check_entries(rows, values, self._last)
        self._blocks.data(rows, values)
        self._last = rows[-1:]
        self._count += len(rows)
        self._key_bytes += pc.sum(pc.binary_length(rows)).as_py()
        self._value_bytes += pc.sum(pc.binary_length(values)).as_py()

    def finish(self) -> None:
        """Write the sections after the entries."""
        self._blocks.finish(self._file_info(), self._count)

    def _file_info(self) -> bytes:
        count = max(1, self._count)
        entries = {
            **self._info,
            SCHEMA_KEY: self._schema.encode(),
            "KEY_VALUE_VERSION": struct.pack(">i", 1),
            "MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
            "hfile.AVG_KEY_LEN": struct.pack(">i", self._key_bytes // count + 12),
            "hfile.AVG_VALUE_LEN": struct.pack(">i", self._value_bytes // count),
            "hfile.CREATE_TIME_TS": struct.pack(">q", time.time_ns() // 1_000_000),
        }
        if len(self._last):
            entries["hfile.LASTKEY"] = blocks.full_key(self._last[0].as_py())
        pairs = [
            blocks.protobuf_bytes(1, blocks.protobuf_bytes(1, name.encode()) + blocks.protobuf_bytes(2, entries[name]))
            for name in sorted(entries)
        ]
        message = b"".join(pairs)
        return b"PBUF" + unsigned(len(message)) + message


def check_entries(keys: pa.Array, values: pa.Array, last: pa.Array) -> None:
    """Refuse entries that cannot follow the ``last`` key (empty: they are the first)."""
    if len(keys) != len(values) or keys.null_count or values.null_count:
        raise FormatError(
            f"{len(keys)} keys ({keys.null_count} null) for {len(values)} values ({values.null_count} null)"
        )
    if pc.max(pc.binary_length(keys)).as_py() > LONGEST_KEY:
        raise FormatError(
            f"an HFile key has {pc.max(pc.binary_length(keys)).as_py()} bytes; at most {LONGEST_KEY} are supported"
        )
    before = pa.concat_arrays([last, keys[:-1]])
    if not pc.all(pc.less(before, keys[len(keys) - len(before) :]), min_count=0).as_py():
        raise FormatError("keys of an HFile must be unique and in ascending byte order")


def _entries(keys: pa.Array, values: pa.Array) -> tuple[memoryview, npt.NDArray[np.int64]]:
    """Return all entries concatenated, and the offsets of the entries."""
    rows = BinaryRowBuilder(len(keys))
    row_sizes = pc.binary_length(keys).to_numpy().astype(np.int64)
    value_sizes = pc.binary_length(values).to_numpy().astype(np.int64)
    key_sizes = row_sizes + 2 + len(blocks.KEY_TAIL)
    heads = [key_sizes.astype(">i4"), value_sizes.astype(">i4"), row_sizes.astype(">i2")]
    rows.short(np.concatenate([head.view(np.uint8).reshape(len(keys), -1) for head in heads], axis=1))
    rows.long(keys)
    rows.constant(blocks.KEY_TAIL)
    rows.long(values)
    # Sequence number of the key-value, which Hudi does not use.
    rows.constant(b"\0")
    joined = rows.joined()
    offsets = np.frombuffer(joined.buffers()[1], np.int32, len(keys) + 1).astype(np.int64)
    return memoryview(joined.buffers()[2] or b"").cast("B"), offsets


class _Blocks:
    """Writes the blocks of an HFile from start to end; ``size`` is the number of bytes so far."""

    def __init__(self, sink: Callable[[bytes], object], context: HFileContext) -> None:
        self.size = 0
        self._sink = sink
        self._codec, self._block_size = context.codec, context.block_size
        self._index: list[tuple[bytes, int, int]] = []
        self._plain_bytes = 0

    def data(self, keys: pa.Array, values: pa.Array) -> None:
        """Write data blocks: each ends with the entry that fills it, or with the last one."""
        data, offsets = _entries(keys, values)
        start = 0
        previous = self._index[-1][1] if self._index else -1
        while start < len(keys):
            end = min(len(keys), int(np.searchsorted(offsets, offsets[start] + self._block_size)))
            place = self._block(blocks.DATA_MAGIC, data[offsets[start] : offsets[end]], previous)
            self._index.append((blocks.full_key(keys[start].as_py()), *place))
            previous = place[0]
            start = end

    def finish(self, info: bytes, count: int) -> None:
        """Write indexes, file info and trailer. Meta blocks, which have an index of their own, are optional."""
        load_on_open = self.size
        index = _index_payload(self._index)
        self._block(blocks.ROOT_INDEX_MAGIC, memoryview(index), -1)
        self._block(blocks.ROOT_INDEX_MAGIC, memoryview(_index_payload([])), -1)
        info_place, _ = self._block(blocks.FILE_INFO_MAGIC, memoryview(info), -1)
        numbers = {
            1: info_place,
            2: load_on_open,
            3: len(index),
            4: self._plain_bytes,
            5: len(self._index),
            6: 0,
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

    def _block(self, magic: bytes, payload: memoryview, previous: int) -> tuple[int, int]:
        """Write a block. Return its offset and its bytes on disk."""
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
        place = self.size
        self._add(header)
        self._add(bytes(packed))
        self._add(struct.pack(">I", checksum))
        return place, size

    def _add(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > _MAX_BYTES:
            raise FileSizeError(
                f"an HFile of at least {self.size} bytes exceeds the limit of {_MAX_BYTES}: distribute the "
                "entries over more files, those of an index of the metadata table over more file groups "
                "(hoodie.metadata.index.*.file.group.count)"
            )
        self._sink(part)


def _index_payload(entries: list[tuple[bytes, int, int]]) -> bytes:
    return b"".join(
        struct.pack(">qi", offset, size) + blocks.hadoop_number(len(key)) + key for key, offset, size in entries
    )
