"""The HFiles of a metadata table's file slices: base files, and blocks of log files; nothing stays open.

What was read is kept in a cache of the process: files of a metadata table never change, except that log files of table
version 6 grow, which their size tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.hfile.block_cache import BlockCache
from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.log import BlockType, LogBlock, decode_deletes, scan_blocks
from pyhudi.merge.logs.valid_log_blocks import BlockView, valid_blocks
from pyhudi.schema.meta_fields import RECORD_KEY

if TYPE_CHECKING:
    from pyhudi.storage import Storage

CACHE = BlockCache()
"""Blocks of base files and of log files, and what their headers and indexes say."""

NO_CACHE = BlockCache(0)
"""Keeps nothing: for what is read once."""

_READER_BYTES = 16 * 1024
"""About what an open HFile takes, besides its index."""
_WHOLE_BYTES = 8 * 1024 * 1024
"""Log files, and contents of their blocks, up to this size are read in one go. Of larger ones, ranges are read; then
the checksums of the HFile's own blocks are checked instead of the one of the whole content."""


@dataclass(frozen=True, slots=True)
class HFileSource:
    """An HFile with values of the Avro ``schema``."""

    reader: HFileReader
    schema: str


@dataclass(frozen=True, slots=True)
class DeleteSource:
    """Keys that were deleted, as text."""

    keys: pa.Array


Source = HFileSource | DeleteSource


class StorageRanges:
    """Ranges of a file in a storage, each read by itself."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage, self._path, self._size = storage, path, size

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._size

    def read_range(self, offset: int, length: int) -> memoryview:
        """The bytes of a range; fewer than asked for only at the end of the file."""
        return memoryview(self._storage.read_range(self._path, offset, length))


class _ContentRanges:
    """Ranges of the content of a log block."""

    def __init__(self, block: LogBlock) -> None:
        self._block = block

    @property
    def size(self) -> int:
        """Bytes of the content."""
        return self._block.content_length

    def read_range(self, offset: int, length: int) -> memoryview:
        """The bytes of a range; fewer than asked for only at the end of the content."""
        length = max(0, min(length, self.size - offset))
        return self._block.source.read_range(self._block.content_offset + offset, length)


def slice_sources(
    storage: Storage, row: Mapping[str, Any], view: BlockView, cache: BlockCache = CACHE
) -> Iterator[Source]:
    """Yield what a file slice (a row of `SLICE_SCHEMA`) consists of, in the order in which it is merged. ``cache``
    keeps what is read.

    Raises:
        FormatError: a file is damaged, or has blocks that metadata tables do not have.
        StorageError: a file cannot be read.
    """
    if row["base_path"] is not None:
        yield _base(storage, row["base_path"], row["base_size"], cache)
    blocks: list[LogBlock] = []
    names: dict[int, tuple[str, int]] = {}
    for path, size in zip(row["log_paths"] or (), row["log_sizes"] or (), strict=True):
        for block in _log(storage, path, size, cache):
            names[id(block)] = (path, size)
            blocks.append(block)
    for block in valid_blocks(blocks, view):
        yield _block(storage, block, names[id(block)], cache)


def _base(storage: Storage, path: str, size: int, cache: BlockCache) -> HFileSource:
    key = (storage.root, path, size)

    def make() -> tuple[HFileSource, int]:
        reader = HFileReader(StorageRanges(storage, path, size), cache=cache, name=key)
        return _with_schema(reader, reader.schema, path), _READER_BYTES

    source: HFileSource = cache.get(key, make)
    return source


def _log(storage: Storage, path: str, size: int, cache: BlockCache) -> list[LogBlock]:
    def make() -> tuple[list[LogBlock], int]:
        is_whole = size <= _WHOLE_BYTES
        data = storage.read_range(path, 0, size) if is_whole else StorageRanges(storage, path, size)
        if isinstance(data, bytes) and len(data) != size:
            raise FormatError(f"{path} has {len(data)} of {size} bytes")
        found = list(scan_blocks(data, with_corrupt=True))
        if any(block.type is BlockType.CORRUPT for block in found):
            raise FormatError(f"{path} is damaged: it has bytes that are no block")
        return found, size if is_whole else _READER_BYTES

    blocks: list[LogBlock] = cache.get((storage.root, path, size, "log"), make)
    return blocks


def _block(storage: Storage, block: LogBlock, file: tuple[str, int], cache: BlockCache) -> Source:
    key = (storage.root, *file, block.offset)

    def make() -> tuple[Source, int]:
        if block.type is BlockType.DELETE:
            found = decode_deletes(block, pa.schema([]))[RECORD_KEY]
            keys = found.combine_chunks() if found.num_chunks else pa.array([], pa.string())
            return DeleteSource(keys), keys.nbytes
        if block.type is not BlockType.HFILE_DATA:
            raise FormatError(f"{file[0]} has a block of type {block.type.name}, which metadata tables do not have")
        content = block.content() if block.content_length <= _WHOLE_BYTES else _ContentRanges(block)
        reader = HFileReader(content, cache=cache, name=key)
        return _with_schema(reader, block.schema or reader.schema, file[0]), _READER_BYTES

    source: Source = cache.get(key, make)
    return source


def _with_schema(reader: HFileReader, schema: str | None, path: str) -> HFileSource:
    if schema is None:
        raise FormatError(f"{path} does not say which schema its values have")
    return HFileSource(reader, schema)
