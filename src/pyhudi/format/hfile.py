"""HFiles: sorted keys with values. The metadata table's base files, and the content of its log blocks.

Blocks are read when they are needed; keys and values come as Arrow binary arrays, a block at a time. Keys are compared
as unsigned bytes, and are here the plain row keys, without what HBase adds to them.
"""

from __future__ import annotations

import functools
import itertools
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format import hfileblocks as blocks
from pyhudi.format.gather import gather
from pyhudi.format.hfilecache import BlockCache
from pyhudi.format.hfileindex import IndexEntry, leaf_entries, meta_entries, root_entries
from pyhudi.format.ranges import RangeReader, Source, open_ranges, read_exactly

SCHEMA_KEY = "schema"
"""Entry of the file info that holds the Avro schema of the values."""

KEY_FIELD = "key"
"""Field of Avro values that is stored empty, because the key has its text."""

ENTRY_SCHEMA = pa.schema([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)])
"""What `HFileReader.batches` and `HFileReader.lookup` give, in the order of the keys."""

_INT = struct.Struct(">i")
_ENTRY_HEAD = 8
"""Length of the key and of the value, four bytes each."""
_KEY_EXTRA = 2 + len(blocks.KEY_TAIL)
_VERSION_WITH_SEQUENCE = 1
"""Value of KEY_VALUE_VERSION that says that a sequence number follows each value."""


class HFileReader:
    """An HFile that is open for reading.

    Args:
        source: what `pyhudi.format.ranges.Source` names; it must stay open.
        cache: keeps decoded blocks, under ``name`` of this content.

    Raises:
        FormatError: it is no HFile, or one of a kind that cannot be read.
    """

    def __init__(self, source: Source, *, cache: BlockCache | None = None, name: Hashable = None) -> None:
        self._ranges: RangeReader = open_ranges(source)
        self._cache, self._name = cache, name
        size = self._ranges.size
        if size < blocks.TRAILER_SIZE:
            raise FormatError(f"not an HFile: {size} bytes are less than its trailer")
        self._trailer = blocks.parse_trailer(
            read_exactly(self._ranges, size - blocks.TRAILER_SIZE, blocks.TRAILER_SIZE)
        )
        trailer = self._trailer
        start, end = trailer.load_on_open_offset, size - blocks.TRAILER_SIZE
        if not 0 <= start <= trailer.file_info_offset <= end:
            raise FormatError(
                f"an HFile of {size} bytes with its index at {start}, its info at {trailer.file_info_offset}"
            )
        opened = read_exactly(self._ranges, start, end - start)
        root, at = blocks.read_block(opened, (blocks.ROOT_INDEX_MAGIC,), trailer.codec)
        meta, _ = blocks.read_block(opened[at:], (blocks.ROOT_INDEX_MAGIC,), trailer.codec)
        self._root = root_entries(root, trailer.data_index_count, start)
        self._meta = {entry.key: entry for entry in meta_entries(meta, trailer.meta_index_count, start)}
        info, _ = blocks.read_block(
            opened[trailer.file_info_offset - start :], (blocks.FILE_INFO_MAGIC,), trailer.codec
        )
        self._info = _parse_info(info)
        if "hfile.MAX_TAGS_LEN" in self._info:
            raise FormatError("an HFile with tags, which Hudi does not write")
        version = self._info.get("KEY_VALUE_VERSION", b"")
        self._has_sequence = version == _INT.pack(_VERSION_WITH_SEQUENCE)

    @property
    def num_entries(self) -> int:
        """Keys in the file."""
        return self._trailer.entry_count

    @property
    def comparator(self) -> str:
        """Java class that compares keys for the writer; always by unsigned bytes."""
        return self._trailer.comparator

    @property
    def file_info(self) -> Mapping[str, bytes]:
        """The writer's remarks by name."""
        return self._info

    @property
    def schema(self) -> str | None:
        """Avro JSON of the values."""
        text = self._info.get(SCHEMA_KEY)
        try:
            return None if text is None else text.decode()
        except UnicodeDecodeError as e:
            raise FormatError(f"the schema of an HFile is not UTF-8: {e}") from e

    @property
    def last_key(self) -> bytes | None:
        """The greatest key; None in an empty file, or where the writer did not note it."""
        key = self._info.get("hfile.LASTKEY")
        return blocks.row_of(key) if key and self.num_entries else None

    def meta_block(self, name: str) -> bytes | None:
        """Return a meta block's bytes, e.g. ``bloomFilter``; None if there is none."""
        entry = self._meta.get(name.encode())
        return None if entry is None else self._payload(entry, (blocks.META_MAGIC,))

    @functools.cached_property
    def index(self) -> list[IndexEntry]:
        """All data blocks in order; reads the lower levels of the index, where there are any."""
        entries = self._root
        for _ in range(self._trailer.index_levels - 1):
            magics = (blocks.LEAF_INDEX_MAGIC, blocks.INTERMEDIATE_INDEX_MAGIC)
            limit = self._trailer.load_on_open_offset
            entries = [child for entry in entries for child in leaf_entries(self._payload(entry, magics), limit)]
        if any(a.offset >= b.offset or a.key > b.key for a, b in itertools.pairwise(entries)):
            raise FormatError("the index of an HFile is not in order")
        return entries

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all entries in order of their keys (`ENTRY_SCHEMA`), a batch a block.

        Raises:
            FormatError: a block is broken, or the file has not as many entries as it says.
        """
        count = 0
        for entry in self.index:
            batch = self._entries(entry)
            count += batch.num_rows
            yield batch
        if count != self.num_entries:
            raise FormatError(f"an HFile of {self.num_entries} entries has {count}")

    def lookup(self, keys: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Return the entries with any of these keys (text or bytes); reads only the blocks where they can be."""
        wanted = pc.unique(keys.cast(pa.binary())).drop_null()
        wanted = wanted.take(pc.sort_indices(wanted))
        tables = []
        for i, part in _by_block(self._firsts, wanted):
            batch = self._entries(self.index[i])
            tables.append(batch.filter(pc.is_in(batch["key"], value_set=part)))
        return pa.Table.from_batches(tables, ENTRY_SCHEMA)

    def prefix(self, prefix: bytes) -> pa.Table:
        """Return the entries whose keys begin with some bytes; reads only the blocks where they can be."""
        return self.prefixes([prefix])

    def prefixes(self, prefixes: Iterable[bytes]) -> pa.Table:
        """Return the entries whose keys begin with any of these; reads only the blocks where they can be, each once."""
        batches: dict[int, list[pa.RecordBatch]] = {}
        last_batch: tuple[int, pa.RecordBatch] | None = None
        # none that another one begins: entries are given once
        apart: list[bytes] = []
        for prefix in sorted(set(prefixes)):
            if not apart or not prefix.startswith(apart[-1]):
                apart.append(prefix)
        for prefix in apart:
            start = max(0, bisect_left(self._firsts, prefix) - 1)
            for i in range(start, len(self.index)):
                if self._firsts[i] > prefix and not self._firsts[i].startswith(prefix):
                    break
                if last_batch is None or last_batch[0] != i:
                    last_batch = (i, self._entries(self.index[i]))
                batch = last_batch[1]
                found = _span(batch["key"], prefix)
                if found[1] > found[0]:
                    batches.setdefault(i, []).append(batch.slice(found[0], found[1] - found[0]))
        return pa.Table.from_batches([batch for parts in batches.values() for batch in parts], ENTRY_SCHEMA)

    @functools.cached_property
    def _firsts(self) -> list[bytes]:
        """The first key of each block."""
        return [entry.key for entry in self.index]

    def _payload(self, entry: IndexEntry, magics: tuple[bytes, ...]) -> bytes:
        data = read_exactly(self._ranges, entry.offset, entry.size)
        return blocks.read_block(data, magics, self._trailer.codec)[0]

    def _entries(self, entry: IndexEntry) -> pa.RecordBatch:
        if self._cache is None:
            return self._decoded(entry)
        batch: pa.RecordBatch = self._cache.get((self._name, entry.offset), lambda: self._with_size(entry))
        return batch

    def _with_size(self, entry: IndexEntry) -> tuple[pa.RecordBatch, int]:
        batch = self._decoded(entry)
        return batch, batch.nbytes

    def _decoded(self, entry: IndexEntry) -> pa.RecordBatch:
        data = self._payload(entry, (blocks.DATA_MAGIC,))
        return _parse_entries(data, has_sequence=self._has_sequence)


def _by_block(firsts: list[bytes], keys: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """Numbers of blocks with the (sorted) keys that may be in them."""
    start = 0
    while start < len(keys):
        block = bisect_right(firsts, keys[start].as_py()) - 1
        end = len(keys) if block + 1 >= len(firsts) else _first_from(keys, firsts[block + 1], start)
        if block >= 0:
            yield block, keys.slice(start, end - start)
        start = end


def _first_from(keys: pa.Array, key: bytes, start: int = 0) -> int:
    """The place, from ``start`` on, of the first of the sorted keys that is not less than one."""
    low, high = start, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle].as_py() < key:
            low = middle + 1
        else:
            high = middle
    return low


def _span(keys: pa.Array, prefix: bytes) -> tuple[int, int]:
    """Where the sorted keys begin, and where they end, that begin with some bytes."""
    start = _first_from(keys, prefix)
    # the least bytes that are greater than all with the prefix
    rest = prefix.rstrip(b"\xff")
    if not rest:
        return start, len(keys)
    return start, _first_from(keys, rest[:-1] + bytes([rest[-1] + 1]), start)


def _parse_info(payload: bytes) -> dict[str, bytes]:
    if payload[:4] != b"PBUF":
        raise FormatError(f"the file info of an HFile starts with {payload[:4]!r}")
    length, at = blocks.protobuf_varint(payload, 4)
    result: dict[str, bytes] = {}
    for number, entry in blocks.protobuf_fields(payload[at : at + length]):
        pair = dict(blocks.protobuf_fields(entry)) if number == 1 and isinstance(entry, bytes) else {}
        name, value = pair.get(1), pair.get(2)
        if not isinstance(name, bytes) or not isinstance(value, bytes):
            raise FormatError("the file info of an HFile has an entry that is no pair")
        result[name.decode("utf-8", "replace")] = value
    return result


def _parse_entries(data: bytes, *, has_sequence: bool) -> pa.RecordBatch:
    """Keys and values of a data block."""
    starts, key_sizes, value_sizes = _layout(data, has_sequence)
    raw = np.frombuffer(data, np.uint8)
    keys_at = starts + _ENTRY_HEAD
    row_sizes = raw[keys_at].astype(np.int64) << 8 | raw[keys_at + 1]
    if not bool(((row_sizes + 2 == key_sizes) | (row_sizes + _KEY_EXTRA == key_sizes)).all()):
        raise FormatError("an HFile block has a key that is no row key")
    keys = gather(raw, keys_at + 2, row_sizes)
    values = gather(raw, keys_at + key_sizes, value_sizes)
    if len(keys) > 1 and not pc.all(pc.less_equal(keys[:-1], keys[1:])).as_py():
        raise FormatError("an HFile block has keys that are not in order")
    return pa.RecordBatch.from_arrays([keys, values], schema=ENTRY_SCHEMA)


def _layout(
    data: bytes, has_sequence: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where entries begin, and how long their keys and values are."""
    same = _same_sizes(data, has_sequence)
    if same is not None:
        return same
    plain = _one_by_one(data, int(has_sequence))
    if plain is not None:
        return plain
    starts, key_sizes, value_sizes = [], [], []
    at, size = 0, len(data)
    lengths = struct.Struct(">ii")
    while at < size:
        if at + _ENTRY_HEAD > size:
            raise FormatError("an HFile block ends within an entry")
        key_size, value_size = lengths.unpack_from(data, at)
        end = at + _ENTRY_HEAD + key_size + value_size
        if key_size < 2 or value_size < 0 or end > size:
            raise FormatError(f"an HFile block has a key of {key_size} and a value of {value_size} bytes")
        starts.append(at)
        key_sizes.append(key_size)
        value_sizes.append(value_size)
        at = blocks.hadoop_varint(data, end)[1] if has_sequence else end
    return np.array(starts, np.int64), np.array(key_sizes, np.int64), np.array(value_sizes, np.int64)


def _one_by_one(
    data: bytes, behind: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """The layout of a block whose entries have ``behind`` zero bytes behind them; None for any other."""
    starts: list[int] = []
    add, lengths = starts.append, struct.Struct(">ii").unpack_from
    at, size, more = 0, len(data), _ENTRY_HEAD + behind
    try:
        while at < size:
            key_size, value_size = lengths(data, at)
            if key_size < 2 or value_size < 0:
                return None
            add(at)
            at += key_size + value_size + more
    except struct.error:
        return None
    if at != size:
        return None
    found = np.array(starts, np.int64)
    raw = np.frombuffer(data, np.uint8)
    heads = raw[found[:, None] + np.arange(_ENTRY_HEAD)].view(">i4").astype(np.int64).reshape(-1, 2)
    key_sizes, value_sizes = np.ascontiguousarray(heads[:, 0]), np.ascontiguousarray(heads[:, 1])
    if behind and raw[found + _ENTRY_HEAD + key_sizes + value_sizes].any():
        return None
    return found, key_sizes, value_sizes


def _same_sizes(
    data: bytes, has_sequence: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """The layout of a block whose entries are all of the same sizes, as in most record indexes."""
    if len(data) < _ENTRY_HEAD:
        return None
    key_size, value_size = struct.unpack_from(">ii", data)
    stride = _ENTRY_HEAD + key_size + value_size + has_sequence
    if key_size < 2 or value_size < 0 or len(data) % stride:
        return None
    rows = np.frombuffer(data, np.uint8).reshape(-1, stride)
    if not bool((rows[:, :_ENTRY_HEAD] == rows[0, :_ENTRY_HEAD]).all()) or (has_sequence and rows[:, -1].any()):
        return None
    count = len(rows)
    return np.arange(count, dtype=np.int64) * stride, np.full(count, key_size), np.full(count, value_size)
