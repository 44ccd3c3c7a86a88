"""Files and instants of the metadata table: the output of a delta commit, or of the initialization of a partition.

Tasks write the files of large partitions (`GroupFiles`); the driver then publishes one delta commit with all of them
(`complete_delta_commit`).
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pyhudi.errors import CorruptInstantError, InstantNotFoundError, TransactionError
from pyhudi.format.file_names import base_file_name, log_file_name, next_log_version, write_token
from pyhudi.format.hfile.hfile_writer import HFileContext, HFileWriter, write_hfile
from pyhudi.format.log.block_framing import Buffer, Frame, frame
from pyhudi.format.log.encoding.delete_block_encoder import delete_content
from pyhudi.format.log.log_block import BlockType, Header
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.metadata.records.metadata_record import record_schema
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat, write_stats
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.timeline.instant import Action, Instant, State

ACKNOWLEDGED_KEY = "pyhudi.acknowledged.partitions"
"""Key in the metadata of delta commits with the partitions under construction that the write has updated completely."""
_OLD_ACKNOWLEDGED_KEY = "pyhudi.told"
"""The key that earlier versions of pyhudi wrote."""
INIT_TOKEN = "0-0-0"
"""Write token of the log files that create file groups."""

_TASK_ATTEMPTS = 8
"""Most attempts at a task of a compaction, more than Spark's default of 4."""
_LOOKUP_FILES = HFileContext(block_size=16 * 1024)
"""Blocks of the record index, of which lookups want single keys all over the file: a quarter of
the usual size decompresses a third of the bytes in most upserts, and takes a quarter more room."""
_NO_KEYS = pa.array([], pa.string())
_NO_TIME = {"totalScanTime": 0, "totalUpsertTime": 0, "totalCreateTime": 0}


def new_token() -> str:
    """Return a unique write token.

    Partitions that are rebuilt and repeated attempts must not reuse a name, because readers cache the content of files
    by name.
    """
    return write_token(0, 0, secrets.randbits(31))


def compaction_tokens(file_id: str, instant: str) -> list[str]:
    """Return the write tokens of the base file of a file group in a compaction, one per attempt at its task.

    They are deterministic, so that another process that removes the compaction of a killed process finds incomplete
    files. The instant is new, so names are unique.
    """
    number = zlib.crc32(f"{file_id}_{instant}".encode()) & 0x7FFFFFFF
    return [write_token(0, attempt, number) for attempt in range(_TASK_ATTEMPTS)]


@dataclass(frozen=True, slots=True)
class GroupSlice:
    """Name of the next log file of a file group. ``base_instant`` and ``log_version`` are used only in tables of
    version 6, where names of log files contain the base instant of their slice."""

    file_id: str
    base_instant: str = ""
    log_version: int = 1

    def log_name(self, instant: str, token: str, version: int) -> str:
        """Return the name of the log file that ``instant`` writes in a table of that version."""
        if version >= 8:
            return log_file_name(self.file_id, instant, 1, token)
        return log_file_name(self.file_id, self.base_instant, self.log_version, token)

    @classmethod
    def after(cls, names: pa.Array, file_id: str, base_instant: str) -> GroupSlice:
        """Return the position after the log files of the slice (version 6) among the names in its folder."""
        return cls(file_id, base_instant, next_log_version(names, file_id, base_instant))


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """Writes files of the file groups of one partition of the metadata table at one of its instants, on the driver or
    in tasks.

    ``storage`` is that of the data table, ``version`` its table version. A ``token`` distinguishes attempts of tasks
    (None: a new one). Results are write stats. The files are not visible before the instant is published.

    ``fence``: log files are written only while it is open, because a task that outlives its attempt at an instant must
    not add files to those of the next attempt (None: written by the process that publishes the instant).
    """

    storage: Storage
    partition: str
    instant: str
    version: int
    fence: WriteFence | None = None

    def write_log(self, where: GroupSlice, records: RecordChanges, *, token: str | None = None) -> WriteStat:
        """Write one log file: an HFile block, and a delete block if there are deletes.

        Raises:
            TransactionError: The fence is closed; there is no file.
        """
        schema = record_schema(self.version)
        headers = {Header.INSTANT_TIME: self.instant, Header.SCHEMA: schema}
        blocks = []
        if len(records.keys) or not len(records.deletes):
            keys, values = records.sorted()
            blocks.append(frame(BlockType.HFILE_DATA, headers, [write_hfile(keys, values, schema=schema)]))
        if len(records.deletes):
            blocks.append(frame(BlockType.DELETE, headers, self._deletes(records.deletes)))
        name = where.log_name(self.instant, token or new_token(), self.version)
        size = self._write_blocks(name, blocks)
        return self._stat(where.file_id, name, len(records.keys), size) | {
            "prevCommit": where.base_instant or self.instant,
            "numUpdateWrites": len(records.keys),
            "numDeletes": len(records.deletes),
            "logVersion": where.log_version,
            "logOffset": 0,
            "baseFile": "",
            "logFiles": [name],
        }

    def write_base(self, file_id: str, records: RecordChanges) -> WriteStat:
        """Write one base file."""
        return self.write_sorted(file_id, [records.sorted()])

    def write_sorted(
        self,
        file_id: str,
        entries: Iterable[tuple[pa.Array, pa.Array]],
        *,
        token: str | None = None,
        previous: str | None = None,
    ) -> WriteStat:
        """Write one base file from keys and values that arrive in HFile order in batches. Memory: one batch.

        Args:
            file_id: The file group.
            entries: Keys and values.
            token: Write token of the file; None: a new one.
            previous: Instant of the base file that it replaces; None: it is the first one of its file group.
        """
        name = base_file_name(file_id, token or new_token(), self.instant, "hfile")
        with self.storage.open_output(self._path(name)) as sink:
            context = _LOOKUP_FILES if self.partition == RECORD_INDEX else HFileContext()
            writer = HFileWriter(sink.write, schema=record_schema(self.version), context=context)
            for keys, values in entries:
                writer.add(keys, values)
            writer.finish()
        stat = self._stat(file_id, name, writer.count, writer.size) | {"numInserts": writer.count}
        return stat if previous is None else stat | {"prevCommit": previous}

    def open_group(self, file_id: str) -> None:
        """Write the log file that creates a file group without records: an empty delete block."""
        block = frame(BlockType.DELETE, {Header.INSTANT_TIME: self.instant}, self._deletes(_NO_KEYS))
        self._write_blocks(log_file_name(file_id, self.instant, 1, INIT_TOKEN), [block])

    def _write_blocks(self, name: str, blocks: Iterable[Frame]) -> int:
        data = b"".join(bytes(part) for block in blocks for part in block.parts)
        if self.fence is not None:
            self.fence.check()
        self.storage.write(self._path(name), data)
        if self.fence is not None:
            self._keep_if_open(self.fence, name)
        return len(data)

    def _keep_if_open(self, fence: WriteFence, name: str) -> None:
        try:
            fence.check()
        except TransactionError:
            self.storage.delete(self._path(name))
            raise

    def _deletes(self, keys: pa.Array) -> list[Buffer]:
        partitions = pa.repeat(pa.scalar(self.partition), len(keys))
        return delete_content(pa.table({RECORD_KEY: keys, PARTITION_PATH: partitions}), pa.schema([]), self.version)

    def _path(self, name: str) -> str:
        return join_path(METADATA_FOLDER, self.partition, name)

    def _stat(self, file_id: str, name: str, writes: int, size: int) -> WriteStat:
        return {
            "fileId": file_id,
            "path": join_path(self.partition, name),
            "partitionPath": self.partition,
            "numWrites": writes,
            "totalWriteBytes": size,
            "fileSizeInBytes": size,
            "runtimeStats": _NO_TIME,
        }


def begin_delta_commit(
    active: ActiveTimeline, instant: str, action: str = Action.DELTA_COMMIT, plan: bytes = b""
) -> Instant:
    """Start an instant of the metadata table, or continue one that an earlier attempt started."""
    existing = active.timeline.find(instant, action)
    if existing is None:
        existing = active.create_requested(action, instant, plan)
    return active.to_inflight(existing) if existing.state is State.REQUESTED else existing


@dataclass(frozen=True, slots=True)
class MetadataCommit:
    """Changes of the metadata table by one instant.

    Attributes:
        stats: Stats of the files that it has written.
        operation: Name of the operation.
        compacted: The instant is a compaction.
        acknowledged: Partitions under construction whose changes by a write are complete with these files, even if
            there are none.
    """

    stats: Sequence[Mapping[str, Any]] | pa.Table
    operation: str = "UPSERT_PREPPED"
    compacted: bool = False
    acknowledged: Collection[str] = ()

    def metadata(self, version: int) -> CommitMetadata:
        """Return the commit metadata for a table version."""
        table = self.stats if isinstance(self.stats, pa.Table) else write_stats(self.stats)
        extra = {"schema": record_schema(version, meta_columns=False)}
        if self.acknowledged:
            extra[ACKNOWLEDGED_KEY] = ",".join(sorted(self.acknowledged))
        return CommitMetadata(self.operation, table, extra, compacted=self.compacted)


def acknowledged_partitions(metadata: CommitMetadata) -> set[str]:
    """Return the partitions under construction that a write has recorded as completely updated, even without
    changes."""
    names = metadata.extra.get(ACKNOWLEDGED_KEY) or metadata.extra.get(_OLD_ACKNOWLEDGED_KEY) or ""
    return set(names.split(",")) - {""}


def complete_delta_commit(
    active: ActiveTimeline, instant: Instant, commit: MetadataCommit, version: int, completion: str | None
) -> Instant:
    """Complete an instant of the metadata table; ``completion`` is its completion time (from version 8 on)."""
    metadata = commit.metadata(version)
    if version < 8:
        metadata = _with_widest_schema(active, metadata)
    content = metadata.encode(version, instant.action)
    return active.complete(instant, content, completion if version >= 8 else None)


def _with_widest_schema(active: ActiveTimeline, metadata: CommitMetadata) -> CommitMetadata:
    """Return the metadata with the schema of the last commit if that has more fields.

    Releases from 1.0 on that write version 6, too, record their own schema, and merge their log blocks by that of the
    last commit: they fail if it has fewer fields than the blocks (seen with 1.2.0).
    """
    last = active.timeline.completed().of_actions(Action.DELTA_COMMIT, Action.COMMIT).last
    recorded = None if last is None else _recorded_schema(active, last)
    if recorded is None or _num_fields(recorded) <= _num_fields(metadata.extra["schema"]):
        return metadata
    return replace(metadata, extra={**metadata.extra, "schema": recorded})


def _recorded_schema(active: ActiveTimeline, instant: Instant) -> str | None:
    """Return the schema that a commit has recorded; None if its metadata, which no write needs, cannot be read, such as
    those in an empty file."""
    try:
        return active.commit_metadata(instant).schema_json
    except (CorruptInstantError, InstantNotFoundError):
        return None


def _num_fields(schema: str) -> int:
    return len(json.loads(schema)["fields"])
