"""Restores in the archived timeline of layout 2: each is archived as one rollback of its writes.

Apache Hudi archives no restores. Its downgrade to version 6 fails on one in the archive, and leaves the table halfway
between the versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyhudi.timeline.action_avro import encode_record
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.restore_plan import rollbacks_of


def rollback_of_restore(restore: Mapping[str, Any]) -> bytes:
    """Return the content of a rollback of the writes that a restore (``HoodieRestoreMetadata``) has undone."""
    rollbacks = rollbacks_of(restore)
    record = {
        "startRollbackTime": restore["startRestoreTime"],
        "timeTakenInMillis": restore["timeTakenInMillis"],
        "totalFilesDeleted": sum(one["totalFilesDeleted"] for one in rollbacks),
        "commitsRollback": list(restore["instantsToRollback"]),
        "partitionMetadata": _merged(part for one in rollbacks for part in one["partitionMetadata"].items()),
        "version": 1,
        "instantsRollback": [undone for one in rollbacks for undone in one["instantsRollback"] or ()],
    }
    return encode_record(Action.ROLLBACK, State.COMPLETED, record, 9)


def _merged(parts: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for partition, part in parts:
        both = merged.setdefault(partition, {"partitionPath": part["partitionPath"]})
        for name in ("successDeleteFiles", "failedDeleteFiles"):
            both[name] = [*both.get(name, ()), *part[name]]
        for name in ("rollbackLogFiles", "logFilesFromFailedCommit"):
            both[name] = both.get(name, {}) | (part[name] or {})
    return merged
