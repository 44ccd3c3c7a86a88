"""Reader of HFiles: sorted keys with values. Base files of the metadata table and its log blocks are HFiles.

Blocks are read on demand. Keys and values are decoded to Arrow binary arrays, block by block. Keys are compared as
unsigned bytes; they are row keys, without the bytes that HBase adds.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.hfile import hfile_blocks as blocks
from pyhudi.format.hfile.block_index import IndexEntry, leaf_entries, root_entries
from pyhudi.format.hfile.block_search import keys_by_block, prefixes_by_block, span_of_prefix
from pyhudi.format.hfile.key_values import ENTRY_SCHEMA, Entries
from pyhudi.format.range_reader import RangeReader, Source, open_ranges, read_exactly
from pyhudi.storage.byte_bounded_cache import ByteBoundedCache
from pyhudi.storage.lazy_property import lazy_property

SCHEMA_KEY = "schema"
"""Entry of the file info with the Avro schema of the values."""

KEY_FIELD = "key"
"""Field of Avro values that is stored as empty text, because it equals the key."""

_INT = struct.Struct(">i")
_VERSION_WITH_SEQUENCE = 1
"""Value of KEY_VALUE_VERSION if each value is followed by a sequence number."""
_RUN_BLOCKS, _RUN_BYTES = 8, 1 << 20
"""Maximum number of blocks, and their bytes on disk, that are read and decoded at once: each call has costs besides
those of its blocks."""
_SCAN_BLOCKS, _LOOKUP_BLOCKS = 64, 256
"""Maximum numbers of such blocks without a cache: of a scan, and of a lookup, which decodes only the keys of most
entries."""
_GAP_BYTES = 128 * 1024
"""Maximum bytes between two blocks that are read by one request."""
_KEPT_BLOCKS, _KEPT_BYTES = 16, 4 << 20
"""Maximum number of requested blocks, and maximum bytes of a file, for which blocks are cached: a scan of a large file
would evict blocks that are requested repeatedly."""


class HFileReader:
    """Reader of one HFile.

    Args:
        source: Content (`pyhudi.format.range_reader.Source`), which the caller keeps open.
        cache: Cache for decoded blocks.
        name: Identifier of the content in the cache.

    Raises:
        FormatError: The file is not an HFile, or has an unsupported version or encoding.
    """

    def __init__(self, source: Source, *, cache: ByteBoundedCache | None = None, name: Hashable = None) -> None:
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
        root, _ = blocks.read_block(opened, (blocks.ROOT_INDEX_MAGIC,), trailer.codec)
        self._root = root_entries(root, trailer.data_index_count, start, levels=trailer.index_levels)
        info, _ = blocks.read_block(
            opened[trailer.file_info_offset - start :], (blocks.FILE_INFO_MAGIC,), trailer.codec
        )
        self._info = blocks.parse_file_info(info)
        if bool(trailer.entry_count) != bool(self._root):
            raise FormatError(f"an HFile of {trailer.entry_count} entries with {len(self._root)} blocks in its index")
        if "hfile.MAX_TAGS_LEN" in self._info:
            raise FormatError("an HFile with tags, which Hudi does not write")
        version = self._info.get("KEY_VALUE_VERSION", b"")
        self._has_sequence = version == _INT.pack(_VERSION_WITH_SEQUENCE)

    @property
    def num_entries(self) -> int:
        """Number of entries."""
        return self._trailer.entry_count

    @property
    def comparator(self) -> str:
        """Java class by which the writer compared keys; all compare unsigned bytes."""
        return self._trailer.comparator

    @property
    def file_info(self) -> Mapping[str, bytes]:
        """Entries of the file info, by name."""
        return self._info

    @property
    def schema(self) -> str | None:
        """Avro schema of the values as JSON; None: it is not recorded."""
        text = self._info.get(SCHEMA_KEY)
        try:
            return None if text is None else text.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"the schema of an HFile is not UTF-8: {error}") from error

    @property
    def last_key(self) -> bytes | None:
        """The last key; None if the file is empty or does not record it."""
        key = self._info.get("hfile.LASTKEY")
        return blocks.row_of(key) if key and self.num_entries else None

    @lazy_property
    def index(self) -> list[IndexEntry]:
        """Index of all data blocks in order. Reads the lower levels of a large index."""
        entries = self._root
        for _ in range(self._trailer.index_levels - 1):
            magics = (blocks.LEAF_INDEX_MAGIC, blocks.INTERMEDIATE_INDEX_MAGIC)
            limit = self._trailer.load_on_open_offset
            entries = [child for entry in entries for child in leaf_entries(self._payload(entry, magics), limit)]
        if any(a.offset >= b.offset or a.key > b.key for a, b in itertools.pairwise(entries)):
            raise FormatError("the index of an HFile is not in order")
        return entries

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all entries (`ENTRY_SCHEMA`) in the order of their keys, one or several blocks at a time.

        Raises:
            FormatError: A block is corrupt, or the number of entries differs from that in the trailer.
        """
        count = 0
        keep = self._keeps(len(self.index))
        for run in self._runs(range(len(self.index)), _RUN_BLOCKS if keep else _SCAN_BLOCKS):
            for batch in self._cached_blocks(run) if keep else self._in_parts(run):
                count += batch.num_rows
                yield batch
        if count != self.num_entries:
            raise FormatError(f"an HFile of {self.num_entries} entries has {count}")

    def lookup(self, keys: pa.Array | pa.ChunkedArray) -> pa.Table:
        """Return the entries with any of these keys (text or bytes). Reads only blocks that may contain them.

        Raises:
            FormatError: A block is corrupt, or the file is in another order, in which a key may be elsewhere.
        """
        sorted_keys = pc.unique(keys.cast(pa.binary())).drop_null()
        sorted_keys = sorted_keys.take(pc.sort_indices(sorted_keys))
        keys_of_block = keys_by_block(self._first_keys, sorted_keys)
        tables = []
        keep = self._keeps(len(keys_of_block))
        for run in self._runs(list(keys_of_block), _RUN_BLOCKS if keep else _LOOKUP_BLOCKS):
            if keep:
                for number, batch in zip(run, self._cached_blocks(run), strict=True):
                    tables.append(batch.filter(pc.is_in(batch["key"], value_set=keys_of_block[number])))
            else:
                tables.append(self._parsed(run).having(pa.concat_arrays([keys_of_block[number] for number in run])))
        return pa.Table.from_batches(tables, ENTRY_SCHEMA)

    def prefix(self, prefix: bytes) -> pa.Table:
        """Return the entries whose keys start with these bytes. Reads only blocks that may contain them."""
        return self.prefixes([prefix])

    def prefixes(self, prefixes: Iterable[bytes]) -> pa.Table:
        """Return the entries whose keys start with any of these prefixes. Reads only blocks that may contain them, once
        each."""
        by_block = prefixes_by_block(self._first_keys, prefixes)
        found = []
        keep = self._keeps(len(by_block))
        for run in self._runs(list(by_block)):
            if keep:
                parts = list(zip(self._cached_blocks(run), (by_block[number] for number in run), strict=True))
            else:
                run_prefixes = list(dict.fromkeys(prefix for number in run for prefix in by_block[number]))
                parts = [(self._parsed(run).batch(), run_prefixes)]
            for batch, block_prefixes in parts:
                spans = [(prefix, span_of_prefix(batch["key"], prefix)) for prefix in block_prefixes]
                found += [batch.slice(start, end - start) for _, (start, end) in spans if end > start]
        return pa.Table.from_batches(found, ENTRY_SCHEMA)

    @lazy_property
    def _first_keys(self) -> list[bytes]:
        """First key of each block."""
        return [entry.key for entry in self.index]

    def _keeps(self, count: int) -> bool:
        """Return True if the blocks of a read of this number of blocks are cached."""
        if self._cache is None:
            return False
        return count <= _KEPT_BLOCKS or self._trailer.load_on_open_offset <= _KEPT_BYTES

    def _runs(self, numbers: Sequence[int], max_blocks: int = _RUN_BLOCKS) -> Iterator[list[int]]:
        """Yield the numbers of blocks (ascending) in groups that are read at once."""
        run: list[int] = []
        size = 0
        for number in numbers:
            size += self.index[number].size
            if run and (size > _RUN_BYTES or len(run) >= max_blocks):
                yield run
                run, size = [], self.index[number].size
            run.append(number)
        if run:
            yield run

    def _in_parts(self, run: list[int]) -> Iterator[pa.RecordBatch]:
        """Decode several blocks at once. Yield their entries in batches of a few blocks each."""
        entries = self._parsed(run)
        all_entries = entries.batch()
        for first in range(0, len(run), _RUN_BLOCKS):
            start, end = entries.bounds[first], entries.bounds[min(first + _RUN_BLOCKS, len(run))]
            yield all_entries.slice(start, end - start)

    def _parsed(self, run: list[int]) -> Entries:
        """Return the entries of several blocks. Blocks with small gaps between them are read by one request."""
        parts: list[bytes] = []
        stretch: list[IndexEntry] = []
        for entry in map(self.index.__getitem__, run):
            if stretch and entry.offset > stretch[-1].offset + stretch[-1].size + _GAP_BYTES:
                parts += self._payloads(stretch)
                stretch = []
            stretch.append(entry)
        parts += self._payloads(stretch)
        entries = Entries.parse(parts, has_sequence=self._has_sequence)
        if run[-1] == len(self.index) - 1 and self.last_key is not None:
            # If the index lacked blocks, their entries would be missing without an error.
            last = entries.keys[-1].as_py() if len(entries.keys) else None
            if last != self.last_key:
                raise FormatError(f"the last key of an HFile is {last!r}, and must be {self.last_key!r}")
        return entries

    def _payloads(self, stretch: list[IndexEntry]) -> Iterator[bytes]:
        first, last = stretch[0], stretch[-1]
        data = read_exactly(self._ranges, first.offset, last.offset + last.size - first.offset)
        for entry in stretch:
            at = entry.offset - first.offset
            yield blocks.read_block(data[at : at + entry.size], (blocks.DATA_MAGIC,), self._trailer.codec)[0]

    def _payload(self, entry: IndexEntry, magics: tuple[bytes, ...]) -> bytes:
        data = read_exactly(self._ranges, entry.offset, entry.size)
        return blocks.read_block(data, magics, self._trailer.codec)[0]

    def _cached_blocks(self, run: list[int]) -> list[pa.RecordBatch]:
        """Return the entries of each of these blocks from the cache. Missing blocks are read and added to it."""
        assert self._cache is not None
        names = [(self._name, self.index[number].offset) for number in run]
        found: list[pa.RecordBatch | None] = [self._cache.find(name) for name in names]
        missing = [place for place, batch in enumerate(found) if batch is None]
        if missing:
            entries = self._parsed([run[place] for place in missing])
            all_entries = entries.batch()
            for place, (start, end) in zip(missing, itertools.pairwise(entries.bounds), strict=True):
                batch = all_entries.slice(start, end - start)
                self._cache.put(names[place], batch, batch.nbytes)
                found[place] = batch
        return [batch for batch in found if batch is not None]
