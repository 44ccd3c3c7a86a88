"""Deletes slices of the metadata table that no reader has any use for: a clean action on its own timeline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.filenames import BASE, LOG, parse_names, split_paths
from pyhudi.metadata.detach import METADATA_FOLDER
from pyhudi.storage import join_path
from pyhudi.timeline.instants import Action, State
from pyhudi.timeline.plans import encode_record

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig
    from pyhudi.timeline.active import ActiveTimeline

CLEAN_SUFFIX = "002"
"""Of clean instants in metadata tables of version 6."""
RETAINED = 20
"""Delta commits whose slices are kept, as Apache Hudi does."""
_POLICY = "KEEP_LATEST_COMMITS"


def clean(storage: Storage, config: TableConfig, active: ActiveTimeline, completion: Callable[[], str]) -> bool:
    """Delete the files of slices that ended before the last RETAINED delta commits; False if there are none.

    The caller holds the table's lock; ``completion`` gives a new time (from version 8 on).
    """
    version = config.version
    deltas = [i for i in active.timeline.completed().by_completion() if i.action == Action.DELTA_COMMIT]
    if len(deltas) <= RETAINED:
        return False
    earliest, last = deltas[-RETAINED], deltas[-1]
    partitions = sorted({*config.metadata_partitions, *config.metadata_partitions_inflight})
    gone = {p: _old_files(storage, p, active, earliest.order_time, version) for p in partitions}
    gone = {partition: names for partition, names in gone.items() if names}
    if not gone:
        return False
    instant = completion() if version >= 8 else f"{last.requested[:17]}{CLEAN_SUFFIX}"
    if instant in active.timeline:
        return False
    started = time.monotonic()
    plan: dict[str, Any] = {
        "earliestInstantToRetain": {"timestamp": earliest.requested, "action": earliest.action, "state": "COMPLETED"},
        "lastCompletedCommitTimestamp": last.requested,
        "policy": _POLICY,
        "filesToBeDeletedPerPartition": None,
        "version": 2,
        "filePathsToBeDeletedPerPartition": {
            p: [{"filePath": _uri(storage, p, name), "isBootstrapBaseFile": False} for name in names]
            for p, names in gone.items()
        },
        "partitionsToBeDeleted": [],
    }
    content = encode_record(Action.CLEAN, State.REQUESTED, plan, version)
    entry = active.create_requested(Action.CLEAN, instant, content)
    entry = active.to_inflight(entry, content)
    for partition, names in gone.items():
        storage.delete_many(join_path(METADATA_FOLDER, partition, name) for name in names)
    done: dict[str, Any] = {
        "startCleanTime": instant,
        "timeTakenInMillis": int((time.monotonic() - started) * 1000),
        "totalFilesDeleted": sum(len(names) for names in gone.values()),
        "earliestCommitToRetain": earliest.requested,
        "lastCompletedCommitTimestamp": last.requested,
        "partitionMetadata": {p: _result(p, names) for p, names in gone.items()},
        "version": 2,
        "bootstrapPartitionMetadata": {},
    }
    active.complete(
        entry, encode_record(Action.CLEAN, State.COMPLETED, done, version), completion() if version >= 8 else None
    )
    return True


def _result(partition: str, names: list[str]) -> dict[str, Any]:
    return {
        "partitionPath": partition,
        "policy": _POLICY,
        "deletePathPatterns": list(names),
        "successDeleteFiles": list(names),
        "failedDeleteFiles": [],
        "isPartitionDeleted": False,
    }


def _old_files(storage: Storage, partition: str, active: ActiveTimeline, earliest: str, version: int) -> list[str]:
    """Names of the files that come before the newest base file of their group that is older than ``earliest``."""
    names = split_paths(storage.list(join_path(METADATA_FOLDER, partition))["path"])[1]
    files = parse_names(names)
    files = files.filter(pc.is_in(files["kind"], value_set=pa.array([BASE, LOG])))
    timeline = active.timeline
    kept_from: dict[str, str] = {}
    rows = files.to_pylist()
    for file in rows:
        instant = file["instant"]
        if file["kind"] == BASE and instant < earliest and timeline.contains_or_before_start(instant):
            kept_from[file["file_id"]] = max(instant, kept_from.get(file["file_id"], ""))

    def is_old(file: dict[str, Any]) -> bool:
        limit = kept_from.get(file["file_id"], "")
        instant = file["instant"]
        if file["kind"] == LOG and version >= 8:
            return (timeline.completion_of(instant) or instant) < limit and timeline.contains_or_before_start(instant)
        return bool(instant < limit)

    return [file["name"] for file in rows if is_old(file)]


def _uri(storage: Storage, partition: str, name: str) -> str:
    return storage.uri(join_path(METADATA_FOLDER, partition, name))
