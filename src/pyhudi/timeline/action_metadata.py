"""Plans and results of the actions other than writes: clean, rollback, savepoint, restore, compaction, clustering,
replace and indexing, as Avro records.

All of them are one-record Avro containers in both layouts. The schemas are package data; a file of an older release is
resolved to today's schema by field name, so that callers see one shape. Records are plain dicts under the format's own
field names; rollbacks, which every writer must be able to make and to finish, have dataclasses on top.

Absolute URIs in plans are those of the folder where the table lay when it was planned: only what follows the partition
path (the last segment) counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyhudi.errors import FormatError
from pyhudi.format.avro.container import load_schema, read_container, write_container
from pyhudi.timeline.instant import Action, State

_PLANS = {
    Action.CLEAN: "HoodieCleanerPlan",
    Action.ROLLBACK: "HoodieRollbackPlan",
    Action.RESTORE: "HoodieRestorePlan",
    Action.COMPACTION: "HoodieCompactionPlan",
    Action.LOG_COMPACTION: "HoodieCompactionPlan",
    Action.REPLACE_COMMIT: "HoodieRequestedReplaceMetadata",
    Action.CLUSTERING: "HoodieRequestedReplaceMetadata",
    Action.INDEXING: "HoodieIndexPlan",
}
_RESULTS = {
    Action.CLEAN: "HoodieCleanMetadata",
    Action.ROLLBACK: "HoodieRollbackMetadata",
    Action.RESTORE: "HoodieRestoreMetadata",
    Action.SAVEPOINT: "HoodieSavepointMetadata",
    Action.INDEXING: "HoodieIndexCommitMetadata",
}
_BY_VERSION = frozenset(
    {"HoodieCompactionPlan", "HoodieRequestedReplaceMetadata", "HoodieIndexPlan", "HoodieIndexCommitMetadata"}
)


def schema_name(action: str, state: State, version: int) -> str:
    """The package schema of an action's file: its plan before completion, its result at completion."""
    name = (_RESULTS if state is State.COMPLETED else _PLANS).get(action)
    if name is None:
        raise FormatError(f"a {state.value.lower()} {action} has no plan or result of its own")
    return f"{name}.{'v8-v9' if version >= 8 else 'v6'}" if name in _BY_VERSION else name


def decode_record(action: str, state: State, data: bytes) -> dict[str, Any]:
    """The record of a plan (requested or inflight) or result (completed) file.

    Raises:
        FormatError: empty, half-written or not of that kind.
    """
    _, records = read_container(data, load_schema(schema_name(action, state, 9)))
    if len(records) != 1:
        raise FormatError(f"a {action} file must hold one Avro record, this has {len(records)}")
    record: dict[str, Any] = records[0]
    return record


def encode_record(action: str, state: State, record: Mapping[str, Any], version: int) -> bytes:
    """The bytes of a plan or result file for a table of the given version; missing fields take their defaults."""
    return write_container(load_schema(schema_name(action, state, version)), [record])


def requested_replace(version: int) -> bytes:
    """Content of ``replacecommit.requested`` for insert_overwrite, insert_overwrite_table and delete_partition."""
    record = {"operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": None}
    return encode_record(Action.REPLACE_COMMIT, State.REQUESTED, record, version)


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Request to undo in one place: files to delete (absolute URIs), or, in version 6, a file group (``file_id``,
    ``base_instant``) whose ``log_blocks`` (log file name → size) a command block must void."""

    partition: str
    file_id: str | None = None
    base_instant: str | None = None
    files: tuple[str, ...] = ()
    log_blocks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Plan of a rollback: the instant to undo, and how."""

    instant: str
    action: str
    requests: tuple[RollbackRequest, ...] = ()

    def encode(self) -> bytes:
        """Content of ``rollback.requested``, the same in all table versions."""
        requests = [
            {
                "partitionPath": r.partition,
                "fileId": r.file_id if r.file_id is not None else "",
                "latestBaseInstant": r.base_instant if r.base_instant is not None else "",
                "filesToBeDeleted": list(r.files),
                "logBlocksToBeDeleted": dict(r.log_blocks),
            }
            for r in self.requests
        ]
        record = {
            "instantToRollback": {"commitTime": self.instant, "action": self.action},
            "RollbackRequests": requests,
            "version": 1,
        }
        return encode_record(Action.ROLLBACK, State.REQUESTED, record, 9)

    @classmethod
    def decode(cls, data: bytes) -> RollbackPlan:
        """Raises FormatError when the bytes are no whole rollback plan."""
        record = decode_record(Action.ROLLBACK, State.REQUESTED, data)
        target = record["instantToRollback"]
        if target is None:
            raise FormatError("the rollback plan names no instant to roll back")
        requests = tuple(
            RollbackRequest(
                partition=r["partitionPath"],
                file_id=r["fileId"] or None,
                base_instant=r["latestBaseInstant"] or None,
                files=tuple(r["filesToBeDeleted"]),
                log_blocks=r["logBlocksToBeDeleted"] or {},
            )
            for r in record["RollbackRequests"] or ()
        )
        return cls(target["commitTime"], target["action"], requests)


@dataclass(frozen=True, slots=True)
class RolledBackPartition:
    """Result of a rollback in one partition: absolute URIs deleted and not deleted, command-block files written (full
    path → size), log files of the failed commit (name → size)."""

    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    command_files: Mapping[str, int] = field(default_factory=dict)
    log_files: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """The result of a rollback of one instant."""

    start: str
    millis: int
    instant: str
    action: str
    partitions: Mapping[str, RolledBackPartition] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The Avro record; restores embed it."""
        return {
            "startRollbackTime": self.start,
            "timeTakenInMillis": self.millis,
            "totalFilesDeleted": sum(len(p.deleted) for p in self.partitions.values()),
            "commitsRollback": [self.instant],
            "partitionMetadata": {
                name: {
                    "partitionPath": name,
                    "successDeleteFiles": list(p.deleted),
                    "failedDeleteFiles": list(p.failed),
                    "rollbackLogFiles": dict(p.command_files),
                    "logFilesFromFailedCommit": dict(p.log_files),
                }
                for name, p in self.partitions.items()
            },
            "version": 1,
            "instantsRollback": [{"commitTime": self.instant, "action": self.action}],
        }

    def encode(self) -> bytes:
        """Content of the completed rollback, the same in all table versions."""
        return encode_record(Action.ROLLBACK, State.COMPLETED, self.record(), 9)
