"""Repair of partitions without ``.hoodie_partition_metadata``, which a listing of the table does not recognise."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import InstantNotFoundError
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.partition_metadata import partitions_in, write_partition_metadata
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import WRITE_ACTIONS

REPAIR_SCHEMA = pa.schema([("partition", pa.string()), ("is_present", pa.bool_()), ("is_repaired", pa.bool_())])
"""One row per partition with files: whether it has its metadata file, and whether it was written by this call."""


def repair_partition_metadata(client: TableMetaClient, *, dry_run: bool = True) -> pa.Table:
    """Find the partitions without a metadata file, and write it.

    Partitions are those that completed writes record and that still have files. Concurrent writers are not affected: a
    file that one of them creates is kept.

    Args:
        client: The table.
        dry_run: Write nothing.

    Returns:
        The partitions (`REPAIR_SCHEMA`), sorted by path.

    Raises:
        InstantNotFoundError: The active timeline has no completed write.
        CorruptInstantError: A commit cannot be parsed.
    """
    storage, config = client.storage, client.config
    active = client.active_timeline()
    last = active.timeline.completed().writes().last
    if last is None:
        raise InstantNotFoundError(f"the active timeline of the table at {storage.uri()} has no completed write")
    rows = []
    for partition in sorted(_written_partitions(client, active)):
        paths = storage.list(partition)["path"]
        if not len(paths):
            continue
        is_present = partition in partitions_in(paths)
        is_repaired = False
        if not is_present and not dry_run:
            is_repaired = write_partition_metadata(
                storage, partition, last.requested, base_format=config.partition_metadata_format
            )
        rows.append({"partition": partition, "is_present": is_present, "is_repaired": is_repaired})
    return pa.Table.from_pylist(rows, schema=REPAIR_SCHEMA)


def _written_partitions(client: TableMetaClient, active: ActiveTimeline) -> set[str]:
    """Return the partitions that completed writes have written to."""
    partitions: set[str] = set()
    for instant in active.timeline.completed().writes():
        partitions.update(pc.unique(active.commit_metadata(instant).stats["partitionPath"]).to_pylist())
    history = read_archived_timeline(client.storage, client.config.layout)
    for action, data in zip(history["action"].to_pylist(), history["metadata"], strict=True):
        if action in WRITE_ACTIONS and data.is_valid:
            partitions.update(pc.unique(decode_commit(data.as_py()).stats["partitionPath"]).to_pylist())
    return partitions
