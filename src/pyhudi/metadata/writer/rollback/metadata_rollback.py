"""Rollback of a write's changes to the metadata table.

From version 8 on the write's log files and its delta commit are deleted, under a rollback instant of the same time as
that of the table. Before, command blocks roll back the blocks, and a delta commit records the log files that the
rollback of the table has written. See docs/format/metadata.md, section 1.7.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyhudi.metadata.file_groups.delta_commit_writer import begin_delta_commit
from pyhudi.metadata.metadata_layout import FILES, load_metadata_timeline
from pyhudi.metadata.writer.rollback.instant_deletion import delete_instant, file_names_by_partition
from pyhudi.metadata.writer.rollback.rollback_command_blocks import append_rollback_blocks
from pyhudi.metadata.writer.rollback.table_rollback import TableRollback, metadata_uri
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action
from pyhudi.timeline.plans.rollback_plan import RollbackMetadata, RollbackPlan, RollbackRequest, RolledBackPartition


def apply_rollback(
    storage: Storage, config: TableConfig, rollback: TableRollback, completion: Callable[[], str]
) -> None:
    """Roll back the changes of a write to the metadata table. Must be called before the write is removed from the
    table's timeline, and can be repeated after a crash.

    Args:
        storage: Storage of the table.
        config: Configuration of the table.
        rollback: Rollback of the table.
        completion: Returns a new completion time (used from version 8 on).
    """
    if FILES not in config.metadata_partitions:
        return
    active = load_metadata_timeline(storage, config.version)
    if config.version < 8:
        append_rollback_blocks(active, config, rollback)
    else:
        _delete_files(active, config, rollback, completion)


def _delete_files(
    active: ActiveTimeline, config: TableConfig, rollback: TableRollback, completion: Callable[[], str]
) -> None:
    """Roll back from version 8 on: the files of the write are deleted."""
    storage = active.storage
    target, instant = rollback.target, rollback.instant
    delta_commit = active.timeline.find(target, Action.DELTA_COMMIT)
    metadata_rollback = active.timeline.find(instant, Action.ROLLBACK)
    if delta_commit is None and (metadata_rollback is None or metadata_rollback.is_completed):
        # Tasks write log files of indexes before the delta commit begins. A plan is run again under the same instant,
        # which would make them valid.
        delete_instant(active, config, target)
        return
    started = time.monotonic()
    paths = file_names_by_partition(storage, config, target)
    plan = RollbackPlan(
        target,
        Action.DELTA_COMMIT,
        tuple(
            RollbackRequest(p, files=(metadata_uri(storage, p, name),)) for p, names in paths.items() for name in names
        ),
    )
    inflight = begin_delta_commit(active, instant, Action.ROLLBACK, plan.encode())
    delete_instant(active, config, target)
    partitions = {
        partition: RolledBackPartition(deleted=tuple(metadata_uri(storage, partition, name) for name in names))
        for partition, names in paths.items()
    }
    done = RollbackMetadata(instant, int((time.monotonic() - started) * 1000), target, Action.DELTA_COMMIT, partitions)
    active.complete(inflight, done.encode(), completion())
