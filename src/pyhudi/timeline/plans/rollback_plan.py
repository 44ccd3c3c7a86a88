"""Plan and result of a rollback, which every writer must be able to plan and complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyhudi.errors import FormatError
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.instant import Action, State


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Rollback of one partition: files to delete (absolute URIs), or, in version 6, a file group (``file_id``,
    ``base_instant``) whose ``log_blocks`` (log file name → size) are rolled back by a command block."""

    partition: str
    file_id: str | None = None
    base_instant: str | None = None
    files: tuple[str, ...] = ()
    log_blocks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Plan of a rollback: the instant to roll back, and the requests."""

    instant: str
    action: str
    requests: tuple[RollbackRequest, ...] = ()

    def encode(self) -> bytes:
        """Return the content of ``rollback.requested``, which is the same in all table versions."""
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
        """Parse a plan.

        Raises:
            FormatError: The bytes are not a complete rollback plan.
        """
        record = decode_record(Action.ROLLBACK, State.REQUESTED, data)
        target = record["instantToRollback"]
        if target is None:
            raise FormatError("the rollback plan has no instant to roll back")
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
    """Result of a rollback in one partition: absolute URIs of deleted files, written command block files (full path →
    size), log files of the failed commit (name → size)."""

    deleted: tuple[str, ...] = ()
    command_files: Mapping[str, int] = field(default_factory=dict)
    log_files: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """Result of the rollback of one instant."""

    start: str
    millis: int
    instant: str
    action: str
    partitions: Mapping[str, RolledBackPartition]

    def record(self) -> dict[str, Any]:
        """Return the Avro record, which restores embed."""
        return {
            "startRollbackTime": self.start,
            "timeTakenInMillis": self.millis,
            "totalFilesDeleted": sum(len(p.deleted) for p in self.partitions.values()),
            "commitsRollback": [self.instant],
            "partitionMetadata": {
                name: {
                    "partitionPath": name,
                    "successDeleteFiles": list(p.deleted),
                    "failedDeleteFiles": [],
                    "rollbackLogFiles": dict(p.command_files),
                    "logFilesFromFailedCommit": dict(p.log_files),
                }
                for name, p in self.partitions.items()
            },
            "version": 1,
            "instantsRollback": [{"commitTime": self.instant, "action": self.action}],
        }

    def encode(self) -> bytes:
        """Return the content of the completed rollback, which is the same in all table versions."""
        return encode_record(Action.ROLLBACK, State.COMPLETED, self.record(), 9)
