"""Bootstrap index: the source file of each skeleton file.

It consists of two HFiles in ``.hoodie/.aux/.bootstrap``, as written by Apache Hudi's ``HFileBootstrapIndex``: one by
partition, one by file group. Both are written before the bootstrap is committed, and never change.
"""

from __future__ import annotations

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
from pyhudi.format.hfile.hfile_writer import HFileContext, write_hfile
from pyhudi.storage import Storage
from pyhudi.storage.clock import now_ms
from pyhudi.storage.table_paths import AUX_FOLDER

METADATA_BOOTSTRAP = "00000000000001"
"""Instant of skeleton files, which no other write has."""
FULL_BOOTSTRAP = "00000000000002"
"""Instant of base files that a full-record bootstrap has written."""
BOOTSTRAP_INSTANTS = (METADATA_BOOTSTRAP, FULL_BOOTSTRAP)
"""Instants that every attempt at a bootstrap has, and that do not tell its time."""

_NAME = f"00000000-0000-0000-0000-000000000000-0_1-0-1_{METADATA_BOOTSTRAP}.hfile"
BY_PARTITION = f"{AUX_FOLDER}/.bootstrap/.partitions/{_NAME}"
BY_FILE_ID = f"{AUX_FOLDER}/.bootstrap/.fileids/{_NAME}"

_INFO = "INDEX_INFO"
_BLOCK_SIZE = 32 * 1024 * 1024
"""Block size of the file system as recorded in the index; readers ignore it."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """Source of a skeleton file: its file group, and the bootstrapped partition and file.

    ``uri`` is literal, as in Hadoop. ``size`` (bytes) and ``mtime_ms`` are those at the time of the bootstrap; None if
    the index lacks them.
    """

    partition: str
    file_id: str
    source_partition: str
    uri: str
    size: int | None = None
    mtime_ms: int | None = None

    def is_of_time(self, mtime_ms: int) -> bool:
        """Return True if the file with this modification time (epoch milliseconds) may be the one that was
        bootstrapped.

        Some storages, and older Java versions on local files, have a resolution of seconds.
        """
        recorded = self.mtime_ms
        if not recorded or not mtime_ms:
            return True
        if recorded % 1000 and mtime_ms % 1000:
            return recorded == mtime_ms
        return recorded // 1000 == mtime_ms // 1000


def is_skeleton(path: str) -> bool:
    """Return True if the path is that of a skeleton file, whose other columns are in a source file."""
    return instant_of(path) == METADATA_BOOTSTRAP


@dataclass(frozen=True, slots=True)
class BootstrapIndex:
    """Bootstrap index of a table. Files are opened for each call."""

    storage: Storage

    def exists(self) -> bool:
        """True if the table has an index."""
        return self.storage.exists(BY_FILE_ID)

    def source_of(self, partition: str, file_id: str) -> SourceFile:
        """Return the source of a file group's skeleton file.

        Raises:
            CorruptTableError: The index is missing, or lacks the file group.
            FormatError: The index is corrupt.
        """
        entry = self._open(BY_FILE_ID).lookup(pa.array([_file_key(partition, file_id).encode()], pa.binary()))
        if not entry.num_rows:
            raise CorruptTableError(
                f"file group {file_id!r} of partition {partition!r} has a skeleton file, but the bootstrap index "
                f"{self.storage.uri(BY_FILE_ID)} lacks its source; restore the index"
            )
        return _source(partition, file_id, _record(entry["value"][0].as_py()))

    def sources(self) -> Iterator[SourceFile]:
        """Return all sources, ordered by partition and file id.

        Raises:
            CorruptTableError: There is no index.
            FormatError: The index is corrupt.
        """
        for batch in self._open(BY_FILE_ID).batches():
            for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
                partition, _, file_id = key.decode().removeprefix("part=").rpartition(";fileid=")
                yield _source(partition, file_id, _record(value))

    def partitions(self) -> list[str]:
        """Return the partitions with skeleton files, sorted. Raises the same errors as `sources`."""
        keys = (key for batch in self._open(BY_PARTITION).batches() for key in batch.column("key").to_pylist())
        return [key.decode().removeprefix("part=") for key in keys]

    def source_base_path(self) -> str:
        """Return the root of the bootstrapped files. Raises the same errors as `sources`."""
        info = self._open(BY_FILE_ID).file_info.get(_INFO)
        return "" if info is None else str(_record(info)["bootstrapBasePath"])

    def write(self, base_path: str, sources: Iterable[SourceFile]) -> None:
        """Write the index for a bootstrap of ``base_path`` that is not committed yet."""
        ordered = sorted(sources, key=lambda s: _file_key(s.partition, s.file_id).encode())
        by_partition = sorted(
            ((p, list(files)) for p, files in groupby(ordered, attrgetter("partition"))), key=lambda e: e[0].encode()
        )
        partitions = {
            f"part={p}": _container("HoodieBootstrapPartitionMetadata", _partition_record(p, f))
            for p, f in by_partition
        }
        files = {
            _file_key(s.partition, s.file_id): _container("HoodieBootstrapFilePartitionInfo", _source_file_record(s))
            for s in ordered
        }
        for path, entries in ((BY_PARTITION, partitions), (BY_FILE_ID, files)):
            self.storage.write(path, _hfile(base_path, entries))

    def delete(self) -> None:
        """Delete the files of the index that exist."""
        self.storage.delete_many([BY_PARTITION, BY_FILE_ID])

    def _open(self, path: str) -> HFileReader:
        try:
            return HFileReader(self.storage.read(path))
        except NotFoundError as error:
            raise CorruptTableError(
                f"the table has skeleton files, but the bootstrap index {self.storage.uri(path)} with their "
                "sources is missing; restore it"
            ) from error


def _file_key(partition: str, file_id: str) -> str:
    return f"part={partition};fileid={file_id}"


def _record(data: bytes) -> Mapping[str, Any]:
    record: Mapping[str, Any] = read_container(data)[1][0]
    return record


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


def _partition_record(partition: str, files: list[SourceFile]) -> dict[str, Any]:
    return {
        "bootstrapPartitionPath": files[0].source_partition,
        "partitionPath": partition,
        "fileIdToBootstrapFile": {file.file_id: _status(file) for file in files},
    }


def _source_file_record(file: SourceFile) -> dict[str, Any]:
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
    now = now_ms()
    info = {"bootstrapBasePath": base_path, "createdTimestamp": now, "numKeys": len(entries)}
    return write_hfile(
        pa.array(list(entries), pa.string()),
        pa.array(list(entries.values()), pa.binary()),
        schema='"bytes"',
        info={_INFO: _container("HoodieBootstrapIndexInfo", info)},
        context=HFileContext(codec=Codec.NONE),
    )
