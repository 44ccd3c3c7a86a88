"""Bootstrap index: the source file of each skeleton file.

It consists of two HFiles in ``.hoodie/.aux/.bootstrap``, as written by Apache Hudi's ``HFileBootstrapIndex``: one by
partition, one by file group. Both are written before the bootstrap is committed, and never change.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.errors import CorruptTableError, NotFoundError
from pyhudi.format.avro.container import (
    containers_of,
    load_schema,
    read_container,
    schema_json,
    with_java_strings,
    write_container,
)
from pyhudi.format.avro.encoder import RecordEncoder
from pyhudi.format.avro.type_tree import Record, record_type
from pyhudi.format.file_names import instant_of
from pyhudi.format.hfile.block_codecs import Codec
from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.hfile.hfile_writer import HFileContext, HFileWriter
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
_BATCH_ROWS = 10_000
"""Entries that are encoded at a time; each repeats its schema, two kilobytes."""


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


SOURCE_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("source_partition", pa.string()),
        ("uri", pa.string()),
        ("size", pa.int64()),
        ("mtime_ms", pa.int64()),
    ]
)
"""Sources of skeleton files as a table: one row per `SourceFile`."""


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
        key = f"part={partition};fileid={file_id}".encode()
        entry = self._open(BY_FILE_ID).lookup(pa.array([key], pa.binary()))
        if not entry.num_rows:
            raise CorruptTableError(
                f"file group {file_id!r} of partition {partition!r} has a skeleton file, but the bootstrap index "
                f"{self.storage.uri(BY_FILE_ID)} lacks its source; restore the index"
            )
        return _source(partition, file_id, _only_record(entry["value"][0].as_py()))

    def sources(self) -> Iterator[SourceFile]:
        """Return all sources, ordered by partition and file id.

        Raises:
            CorruptTableError: There is no index.
            FormatError: The index is corrupt.
        """
        for batch in self._open(BY_FILE_ID).batches():
            for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
                partition, _, file_id = key.decode().removeprefix("part=").rpartition(";fileid=")
                yield _source(partition, file_id, _only_record(value))

    def partitions(self) -> list[str]:
        """Return the partitions with skeleton files, sorted. Raises the same errors as `sources`."""
        keys = (key for batch in self._open(BY_PARTITION).batches() for key in batch.column("key").to_pylist())
        return [key.decode().removeprefix("part=") for key in keys]

    def source_base_path(self) -> str:
        """Return the root of the bootstrapped files. Raises the same errors as `sources`."""
        info = self._open(BY_FILE_ID).file_info.get(_INFO)
        return "" if info is None else str(_only_record(info)["bootstrapBasePath"])

    def write(self, base_path: str, sources: pa.Table) -> None:
        """Write the index for a bootstrap of ``base_path`` that is not committed yet; ``sources`` has
        `SOURCE_SCHEMA`."""
        partitions = pc.count_distinct(sources["partition"]).as_py()
        self.storage.write(BY_PARTITION, _hfile(base_path, partitions, _by_partition(sources)))
        self.storage.write(BY_FILE_ID, _hfile(base_path, sources.num_rows, _by_file_id(sources)))

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


def _only_record(data: bytes) -> Mapping[str, Any]:
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


def _by_file_id(sources: pa.Table) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield keys and values of the index by file group."""
    keys = pc.binary_join_element_wise(sources["partition"], sources["file_id"], ";fileid=")
    keys = pc.binary_join_element_wise("part=", keys, "")
    order = pc.sort_indices(keys)
    for start in range(0, len(order), _BATCH_ROWS):
        some = order.slice(start, _BATCH_ROWS)
        rows = sources.take(some)
        members = {
            "bootstrapPartitionPath": rows["source_partition"],
            "bootstrapFileStatus": _statuses(rows),
            "partitionPath": rows["partition"],
        }
        yield contiguous(keys.take(some)), _containers("HoodieBootstrapFilePartitionInfo", members, rows.num_rows)


def _by_partition(sources: pa.Table) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield keys and values of the index by partition."""
    rows = sources.sort_by([("partition", "ascending"), ("file_id", "ascending")]).combine_chunks()
    encoded = contiguous(rows["partition"]).dictionary_encode()
    partitions, counts = encoded.dictionary, np.bincount(encoded.indices.to_numpy())
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    members = {
        "bootstrapPartitionPath": rows["source_partition"].take(offsets[:-1]),
        "partitionPath": partitions,
        "fileIdToBootstrapFile": pa.MapArray.from_arrays(offsets, contiguous(rows["file_id"]), _statuses(rows)),
    }
    keys = pc.binary_join_element_wise("part=", partitions, "")
    yield keys, _containers("HoodieBootstrapPartitionMetadata", members, len(partitions))


def _statuses(sources: pa.Table) -> pa.StructArray:
    """Return the status of each source file, as Apache Hudi records it."""
    _, record = _schema("HoodieBootstrapFilePartitionInfo")
    status = record.arrow.field("bootstrapFileStatus").type
    members = {
        "path": _record(status.field("path").type, {"uri": sources["uri"]}, sources.num_rows),
        "length": sources["size"],
        "isDir": False,
        "blockReplication": 1,
        "blockSize": _BLOCK_SIZE,
        "modificationTime": sources["mtime_ms"],
        "accessTime": sources["mtime_ms"],
    }
    return _record(status, members, sources.num_rows)


def _record(data_type: pa.StructType, members: Mapping[str, Any], count: int) -> pa.StructArray:
    """Return records of version 1 with these members, arrays or constants; others are null."""
    values = {"version": 1, **members}
    columns = [_column(values.get(field.name), field.type, count) for field in data_type]
    return pa.StructArray.from_arrays(columns, [field.name for field in data_type])


def _column(value: Any, data_type: pa.DataType, count: int) -> pa.Array:
    is_column = isinstance(value, pa.Array | pa.ChunkedArray)
    return contiguous(value) if is_column else pa.repeat(pa.scalar(value, data_type), count)


def _containers(name: str, members: Mapping[str, Any], count: int) -> pa.Array:
    """Return a container for each of ``count`` records with these members."""
    text, record = _schema(name)
    encoder = RecordEncoder(count)
    encoder.value(record, _record(record.arrow, members, count), name)
    return containers_of(text, encoder.rows.joined())


@functools.cache
def _schema(name: str) -> tuple[str, Record]:
    text = schema_json(with_java_strings(load_schema(name)))
    return text, record_type(text)


def _hfile(base_path: str, count: int, entries: Iterable[tuple[pa.Array, pa.Array]]) -> bytes:
    info = {"bootstrapBasePath": base_path, "createdTimestamp": now_ms(), "numKeys": count}
    record = write_container(_schema("HoodieBootstrapIndexInfo")[0], [info])
    parts: list[bytes] = []
    writer = HFileWriter(parts.append, schema='"bytes"', info={_INFO: record}, context=HFileContext(codec=Codec.NONE))
    for keys, values in entries:
        writer.add(keys, values)
    writer.finish()
    return b"".join(parts)
