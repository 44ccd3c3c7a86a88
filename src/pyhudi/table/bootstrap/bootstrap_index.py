"""The bootstrap index: which source file the rows of a skeleton file are in.

It is two HFiles below ``.hoodie/.aux/.bootstrap``, as Apache Hudi's ``HFileBootstrapIndex`` writes them: one by
partition, one by file group. Both are written before the bootstrap is committed, and never change.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa

from pyhudi.errors import CorruptTableError, NotFoundError
from pyhudi.format.avro.container import load_schema, read_container, with_java_strings, write_container
from pyhudi.format.file_names import instant_of
from pyhudi.format.hfile.block_codecs import Codec
from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.hfile.hfile_writer import write_hfile
from pyhudi.storage import Storage

METADATA_BOOTSTRAP = "00000000000001"
"""Instant of skeleton files: no other write has it."""
FULL_BOOTSTRAP = "00000000000002"
"""Instant of base files that a bootstrap has written whole."""

_NAME = f"00000000-0000-0000-0000-000000000000-0_1-0-1_{METADATA_BOOTSTRAP}.hfile"
BY_PARTITION = f".hoodie/.aux/.bootstrap/.partitions/{_NAME}"
BY_FILE_ID = f".hoodie/.aux/.bootstrap/.fileids/{_NAME}"

_INFO = "INDEX_INFO"
_BLOCK_SIZE = 32 * 1024 * 1024
"""Block size of a file system as the index notes it; nobody reads it."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The source of a skeleton file: its file group, the partition and the file that were bootstrapped.

    ``uri`` is literal, as Hadoop's are; ``size`` (bytes) and ``mtime_ms`` are those of the bootstrap, None where the
    index does not tell.
    """

    partition: str
    file_id: str
    source_partition: str
    uri: str
    size: int | None = None
    mtime_ms: int | None = None

    def is_of_time(self, mtime_ms: int) -> bool:
        """Whether the file may be the one that was bootstrapped, by the time of its last change (epoch milliseconds).

        Whole seconds are what some storages, and older Javas on local files, tell.
        """
        known = self.mtime_ms
        if not known or not mtime_ms:
            return True
        if known % 1000 and mtime_ms % 1000:
            return known == mtime_ms
        return known // 1000 == mtime_ms // 1000


def is_skeleton(path: str) -> bool:
    """True if the path is that of a base file with meta columns only, whose other columns are in a source file."""
    return instant_of(path) == METADATA_BOOTSTRAP


@dataclass(frozen=True, slots=True)
class BootstrapIndex:
    """The index of a table; nothing of it stays open."""

    storage: Storage

    def exists(self) -> bool:
        """True if the table has an index."""
        return self.storage.exists(BY_FILE_ID)

    def source_of(self, partition: str, file_id: str) -> SourceFile:
        """Return the source of a file group's skeleton file.

        Raises:
            CorruptTableError: the index is missing, or does not know the file group.
            FormatError: the index is damaged.
        """
        found = self._open(BY_FILE_ID).lookup(pa.array([_file_key(partition, file_id).encode()], pa.binary()))
        if not found.num_rows:
            raise CorruptTableError(
                f"file group {file_id!r} of partition {partition!r} has a skeleton file, and the bootstrap index "
                f"{self.storage.uri(BY_FILE_ID)} does not know its source"
            )
        return _source(partition, file_id, _record(found["value"][0].as_py()))

    def sources(self) -> Iterator[SourceFile]:
        """All sources, in the order of partitions and file ids.

        Raises:
            CorruptTableError: there is no index.
            FormatError: the index is damaged.
        """
        for batch in self._open(BY_FILE_ID).batches():
            for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
                partition, _, file_id = key.decode().removeprefix("part=").rpartition(";fileid=")
                yield _source(partition, file_id, _record(value))

    def partitions(self) -> list[str]:
        """The partitions with skeleton files, sorted; raises what `sources` does."""
        keys = (key for batch in self._open(BY_PARTITION).batches() for key in batch.column("key").to_pylist())
        return [key.decode().removeprefix("part=") for key in keys]

    def source_base_path(self) -> str:
        """The root of the files that were bootstrapped; raises what `sources` does."""
        info = self._open(BY_FILE_ID).file_info.get(_INFO)
        return "" if info is None else str(_record(info)["bootstrapBasePath"])

    def write(self, base_path: str, sources: Iterable[SourceFile]) -> None:
        """Write the index anew, for a bootstrap of ``base_path`` that is not committed yet."""
        ordered = sorted(sources, key=lambda s: _file_key(s.partition, s.file_id).encode())
        by_partition = sorted(
            ((p, list(files)) for p, files in groupby(ordered, attrgetter("partition"))), key=lambda e: e[0].encode()
        )
        partitions = {f"part={p}": _container("HoodieBootstrapPartitionMetadata", _of(p, f)) for p, f in by_partition}
        files = {
            _file_key(s.partition, s.file_id): _container("HoodieBootstrapFilePartitionInfo", _of_file(s))
            for s in ordered
        }
        for path, entries in ((BY_PARTITION, partitions), (BY_FILE_ID, files)):
            self.storage.write(path, _hfile(base_path, entries))

    def delete(self) -> None:
        """Delete what there is of the index."""
        self.storage.delete_many([BY_PARTITION, BY_FILE_ID])

    def _open(self, path: str) -> HFileReader:
        try:
            return HFileReader(self.storage.read(path))
        except NotFoundError as e:
            raise CorruptTableError(
                f"the table has skeleton files, and no bootstrap index {self.storage.uri(path)} that tells their "
                "sources; restore it"
            ) from e


def _file_key(partition: str, file_id: str) -> str:
    return f"part={partition};fileid={file_id}"


def _record(data: bytes) -> Mapping[str, Any]:
    found: Mapping[str, Any] = read_container(data)[1][0]
    return found


def _source(partition: str, file_id: str, record: Mapping[str, Any]) -> SourceFile:
    status = record["bootstrapFileStatus"]
    return SourceFile(
        partition,
        file_id,
        record["bootstrapPartitionPath"] or "",
        status["path"]["uri"],
        status["length"],
        status["modificationTime"],
    )


def _container(schema: str, record: Mapping[str, Any]) -> bytes:
    return write_container(with_java_strings(load_schema(schema)), [record])


def _of(partition: str, files: list[SourceFile]) -> dict[str, Any]:
    return {
        "bootstrapPartitionPath": files[0].source_partition,
        "partitionPath": partition,
        "fileIdToBootstrapFile": {file.file_id: _status(file) for file in files},
    }


def _of_file(file: SourceFile) -> dict[str, Any]:
    return {
        "bootstrapPartitionPath": file.source_partition,
        "bootstrapFileStatus": _status(file),
        "partitionPath": file.partition,
    }


def _status(file: SourceFile) -> dict[str, Any]:
    return {
        "path": {"uri": file.uri},
        "length": file.size,
        "isDir": False,
        "blockReplication": 1,
        "blockSize": _BLOCK_SIZE,
        "modificationTime": file.mtime_ms,
        "accessTime": file.mtime_ms,
    }


def _hfile(base_path: str, entries: Mapping[str, bytes]) -> bytes:
    now = time.time_ns() // 1_000_000
    info = {"bootstrapBasePath": base_path, "createdTimestamp": now, "numKeys": len(entries)}
    return write_hfile(
        pa.array(list(entries), pa.string()),
        pa.array(list(entries.values()), pa.binary()),
        schema='"bytes"',
        info={_INFO: _container("HoodieBootstrapIndexInfo", info)},
        codec=Codec.NONE,
    )
