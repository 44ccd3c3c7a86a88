"""HFiles of a metadata table's file slices: base files, and blocks of log files. Files are not kept open.

Data are cached per process by path, size and modification time of their files. Log files of table version 6 grow, and
Apache Hudi gives the first files of a partition that it rebuilds the names of earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.log import BlockType, LogBlock, decode_deletes, scan_blocks
from pyhudi.merge.logs.valid_log_blocks import BlockView, valid_blocks
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.storage import Storage
from pyhudi.storage.byte_bounded_cache import ByteBoundedCache

CACHE = ByteBoundedCache()
"""Blocks of base files and of log files, with their headers and indexes."""

NO_CACHE = ByteBoundedCache(0)
"""Cache without capacity, for data that are read once."""

_READER_BYTES = 16 * 1024
"""Approximate memory of an open HFile, besides its index."""
_WHOLE_BYTES = 8 * 1024 * 1024
"""Size in bytes up to which log files, and contents of their blocks, are read in one request. Of larger ones ranges are
read; then the checksums of HFile blocks are verified instead of that of the whole content."""


_ONE_REQUEST_BYTES = 512 * 1024
"""Size in bytes up to which base files are read in one request, as other base files are: one for the trailer, one for
the index and one for each run of blocks take longer."""


class SliceFile(NamedTuple):
    """File of a slice. ``size`` is in bytes, ``modified`` in epoch milliseconds."""

    path: str
    size: int
    modified: int


@dataclass(frozen=True, slots=True)
class MetadataSlice:
    """File slice of a partition of the metadata table."""

    partition: str
    file_id: str
    base_instant: str
    base: SliceFile | None
    logs: tuple[SliceFile, ...]

    @classmethod
    def from_rows(cls, partition: str, slices: pa.Table) -> list[MetadataSlice]:
        """Return the slices of `pyhudi.metadata.reader.metadata_slices.current_slices`."""
        return [cls._from_row(partition, row) for row in slices.to_pylist()]

    @classmethod
    def _from_row(cls, partition: str, row: Mapping[str, Any]) -> MetadataSlice:
        modified = iter(row["modified"])
        base = None if row["base_path"] is None else SliceFile(row["base_path"], row["base_size"], next(modified))
        logs = zip(row["log_paths"], row["log_sizes"], modified, strict=True)
        return cls(partition, row["file_id"], row["base_instant"], base, tuple(SliceFile(*file) for file in logs))

    @property
    def files(self) -> tuple[SliceFile, ...]:
        """The base file if there is one, then the log files."""
        return self.logs if self.base is None else (self.base, *self.logs)

    @property
    def num_bytes(self) -> int:
        """Total size of the files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class HFileSource:
    """An HFile with values of the Avro ``schema``."""

    reader: HFileReader
    schema: str


@dataclass(frozen=True, slots=True)
class DeleteSource:
    """Deleted keys, as text."""

    keys: pa.Array


Source = HFileSource | DeleteSource


class StorageRanges:
    """Ranges of a file in a storage, each read separately."""

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._storage, self._path, self._size = storage, path, size

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self._size

    def read_range(self, offset: int, length: int) -> memoryview:
        """Read a range. Returns fewer bytes than requested only at the end of the file."""
        return memoryview(self._storage.read_range(self._path, offset, length))


class _ContentRanges:
    """Ranges of the content of a log block."""

    def __init__(self, block: LogBlock) -> None:
        self._block = block

    @property
    def size(self) -> int:
        """Size of the content in bytes."""
        return self._block.content_length

    def read_range(self, offset: int, length: int) -> memoryview:
        """Read a range. Returns fewer bytes than requested only at the end of the content."""
        length = max(0, min(length, self.size - offset))
        return self._block.source.read_range(self._block.content_offset + offset, length)


def slice_sources(
    storage: Storage, file_slice: MetadataSlice, view: BlockView, cache: ByteBoundedCache = CACHE
) -> Iterator[Source]:
    """Yield the sources of a file slice in merge order, read through ``cache``.

    Raises:
        FormatError: A file is corrupt, or has blocks that metadata tables do not use.
        StorageError: A file cannot be read.
    """
    if file_slice.base is not None:
        yield _base(storage, file_slice.base, cache)
    blocks: list[LogBlock] = []
    file_of_block: dict[int, SliceFile] = {}
    for file in file_slice.logs:
        for block in _log(storage, file, cache):
            file_of_block[id(block)] = file
            blocks.append(block)
    for block in valid_blocks(blocks, view):
        yield _block(storage, block, file_of_block[id(block)], cache)


def _base(storage: Storage, file: SliceFile, cache: ByteBoundedCache) -> HFileSource:
    key = (storage.root, *file)

    def make() -> tuple[HFileSource, int]:
        is_small = file.size <= _ONE_REQUEST_BYTES
        data = _whole(storage, file) if is_small else StorageRanges(storage, file.path, file.size)
        reader = HFileReader(data, cache=cache, name=key)
        return _with_schema(reader, reader.schema, file.path), _READER_BYTES + (file.size if is_small else 0)

    source: HFileSource = cache.get(key, make)
    return source


def _whole(storage: Storage, file: SliceFile) -> bytes:
    """Return the content of a file, which is read in one request."""
    data = storage.read_range(file.path, 0, file.size)
    if len(data) != file.size:
        raise FormatError(f"{file.path} has {len(data)} of {file.size} bytes")
    return data


def _log(storage: Storage, file: SliceFile, cache: ByteBoundedCache) -> list[LogBlock]:
    path, size = file.path, file.size

    def make() -> tuple[list[LogBlock], int]:
        is_whole = size <= _WHOLE_BYTES
        data = _whole(storage, file) if is_whole else StorageRanges(storage, path, size)
        log_blocks = list(scan_blocks(data, with_corrupt=True))
        if any(block.type is BlockType.CORRUPT for block in log_blocks):
            raise FormatError(f"{path} is corrupt: it has bytes that are not a block")
        return log_blocks, size if is_whole else _READER_BYTES

    blocks: list[LogBlock] = cache.get((storage.root, *file, "log"), make)
    return blocks


def _block(storage: Storage, block: LogBlock, file: SliceFile, cache: ByteBoundedCache) -> Source:
    key = (storage.root, *file, block.offset)

    def make() -> tuple[Source, int]:
        if block.type is BlockType.DELETE:
            deleted_keys = decode_deletes(block, pa.schema([]))[RECORD_KEY]
            keys = deleted_keys.combine_chunks() if deleted_keys.num_chunks else pa.array([], pa.string())
            return DeleteSource(keys), keys.nbytes
        if block.type is not BlockType.HFILE_DATA:
            raise FormatError(f"{file.path} has a block of type {block.type.name}, which metadata tables do not use")
        content = block.content() if block.content_length <= _WHOLE_BYTES else _ContentRanges(block)
        reader = HFileReader(content, cache=cache, name=key)
        return _with_schema(reader, block.schema or reader.schema, file.path), _READER_BYTES

    source: Source = cache.get(key, make)
    return source


def _with_schema(reader: HFileReader, schema: str | None, path: str) -> HFileSource:
    if schema is None:
        raise FormatError(f"{path} lacks the schema of its values")
    return HFileSource(reader, schema)
