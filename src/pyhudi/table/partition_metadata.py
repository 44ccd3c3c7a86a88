"""``.hoodie_partition_metadata``: the file that marks a folder as a partition.

It holds the write that created the folder and the depth of the folder below the root. The usual form is Java properties
text. Tables with ``hoodie.partition.metafile.use.base.format`` have an empty Parquet or ORC file instead, with the same
two properties in the footer.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.config.enums import FileFormat
from pyhudi.errors import AlreadyExistsError, CorruptTableError, FormatError, NotFoundError
from pyhudi.format.base_file import orc
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import META_FOLDER, PARTITION_METADATA
from pyhudi.table.config.properties_text import format_properties, parse_properties

_EXTENSIONS = ("", ".parquet", ".orc")
_NAMES = tuple(PARTITION_METADATA + extension for extension in _EXTENSIONS)
_COMMIT_TIME = "commitTime"
_DEPTH = "partitionDepth"
# The only column in Apache Hudi's empty base file.
_EMPTY_COLUMN = "_hoodie_record_key"


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """``commit_time`` is the instant of the write that created the folder; ``depth`` the number of folders below the
    root, 0 without partitions."""

    commit_time: str
    depth: int


def depth_of(partition: str) -> int:
    """Return the number of path segments of a partition."""
    return len(partition.split("/")) if partition else 0


def write_partition_metadata(
    storage: Storage, partition: str, instant: str, *, base_format: FileFormat | None = None
) -> bool:
    """Mark *partition* as a partition, unless it is one. Return whether the file was created.

    With *base_format* PARQUET the file is a base file; otherwise it is the text form, which every reader tries first.
    Of concurrent writers the file of the first one is kept.
    """
    depth = depth_of(partition)
    if base_format is FileFormat.PARQUET:
        name, data = PARTITION_METADATA + ".parquet", _parquet(instant, depth)
    else:
        properties = {_COMMIT_TIME: instant, _DEPTH: str(depth)}
        name, data = PARTITION_METADATA, format_properties(properties, ("partition metadata",), datetime.now(UTC))
    try:
        storage.create(join_path(partition, name), data)
    except AlreadyExistsError:
        return False
    return True


def read_partition_metadata(storage: Storage, partition: str) -> PartitionMetadata | None:
    """Read the partition's metadata file in either form; ``None`` if the folder is not a partition.

    Raises CorruptTableError if the file is invalid.
    """
    for name in _NAMES:
        path = join_path(partition, name)
        try:
            data = storage.read(path)
        except NotFoundError:
            continue
        try:
            properties = _properties(name, data)
            return PartitionMetadata(properties[_COMMIT_TIME], int(properties[_DEPTH]))
        except (FormatError, KeyError, ValueError, OSError, pa.ArrowException) as error:
            raise CorruptTableError(
                f"{storage.uri(path)} is not valid partition metadata ({error}); write {_COMMIT_TIME}=<instant> and "
                f"{_DEPTH}={depth_of(partition)} into it"
            ) from error
    return None


def partition_metadata_ms(storage: Storage, partition: str) -> int | None:
    """Return when the partition's metadata file was written (epoch milliseconds); None if the folder is not a
    partition."""
    for name in _NAMES:
        stat = storage.stat(join_path(partition, name))
        if stat is not None:
            return stat.mtime_ms
    return None


def partitions_in(paths: pa.Array | pa.ChunkedArray) -> list[str]:
    """Return the partitions among listed *paths* (relative to the root), sorted; ``""`` is the root itself.

    Paths under ``.hoodie`` are ignored.
    """
    flags = pc.and_(
        pc.match_substring_regex(paths, r"(^|/)\.hoodie_partition_metadata(\.parquet|\.orc)?$"),
        pc.invert(pc.starts_with(paths, f"{META_FOLDER}/")),
    )
    marks: list[str] = pc.filter(paths, flags).to_pylist()
    return sorted({path.rpartition("/")[0] for path in marks})


def list_partitions(storage: Storage) -> list[str]:
    """List all partitions, with one listing of the whole table."""
    return partitions_in(storage.list("", recursive=True)["path"])


def _parquet(instant: str, depth: int) -> bytes:
    schema = pa.schema([(_EMPTY_COLUMN, pa.string())])
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        writer.add_key_value_metadata({_COMMIT_TIME: instant, _DEPTH: str(depth)})
    return sink.getvalue()


def _properties(name: str, data: bytes) -> dict[str, str]:
    if name == PARTITION_METADATA:
        return parse_properties(data)
    source = pa.BufferReader(data)
    raw = (pq.read_metadata(source).metadata or {}) if name.endswith(".parquet") else orc.user_metadata(source)
    return {key.decode(): value.decode() for key, value in raw.items()}
