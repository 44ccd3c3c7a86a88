"""Services of the metadata table itself: compaction, and the deletion of slices that nobody reads any more."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pyhudi.config import Options, options
from pyhudi.metadata.clean import clean
from pyhudi.metadata.deltas import begin, publish, write_group_base
from pyhudi.metadata.fold import fold_versions
from pyhudi.metadata.home import FILES, metadata_timeline
from pyhudi.metadata.slices import MetadataSlice, current_slices, read_slice
from pyhudi.metadata.visible import Visible
from pyhudi.timeline.instants import Action, State
from pyhudi.timeline.plans import encode_record

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig
    from pyhudi.timeline.active import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline

COMPACTION_SUFFIX = "001"
"""Of compaction instants in metadata tables of version 6."""
_PLAN_VERSION = 2
_THREADS = 4

_log = logging.getLogger(__name__)


def serve(
    storage: Storage, config: TableConfig, opts: Options, data: ActiveTimeline, completion: Callable[[], str]
) -> None:
    """Run the services that are due after a commit. The caller holds the table's lock.

    ``data`` is the table's timeline with the commit; ``completion`` gives a new time (from version 8 on).
    """
    if FILES not in config.metadata_partitions:
        return
    active = metadata_timeline(storage, config.version)
    due = opts.get_typed(options.METADATA_COMPACT_MAX_DELTA_COMMITS)
    if deltas_since_compaction(active.timeline, config.version) < due:
        return
    if compact(storage, config, active, data.timeline, completion):
        clean(storage, config, active, completion)


def deltas_since_compaction(metadata: Timeline, version: int) -> int:
    """How many delta commits were completed since the last compaction."""
    done = metadata.completed()
    last = done.of_actions(Action.COMMIT).last
    deltas = [i for i in done if i.action == Action.DELTA_COMMIT]
    if last is None:
        return len(deltas)
    after = last.requested
    return sum((i.order_time if version >= 8 else i.requested) > after for i in deltas)


def compact(
    storage: Storage,
    config: TableConfig,
    active: ActiveTimeline,
    data: Timeline,
    completion: Callable[[], str],
) -> bool:
    """Merge the log files of every file group into its next base file; False if it cannot be done now.

    In version 6, what is pending on the table may still write to the slices, so nothing may be. From version 8 on a
    log file belongs to a slice by its completion time; only a delta commit that was completed and waits for its
    instant on the table would be passed over.
    """
    version = config.version
    pending = data.pending()
    if version < 8 and pending:
        return False
    if any(active.timeline.is_completed(i.requested) for i in pending):
        return False
    if version >= 8:
        instant = completion()
    else:
        last = active.timeline.completed().of_actions(Action.DELTA_COMMIT).last
        assert last is not None
        instant = f"{last.requested[:17]}{COMPACTION_SUFFIX}"
        if instant in active.timeline:
            return False
    visible = Visible.of(active.timeline, data)
    slices = [
        one
        for partition in sorted({*config.metadata_partitions, *config.metadata_partitions_inflight})
        for one in current_slices(storage, partition, visible, version)
    ]
    slices = [one for one in slices if one.logs]
    plan = encode_record(Action.COMPACTION, State.REQUESTED, _plan(slices, version), version)
    entry = begin(active, instant, Action.COMPACTION, plan)

    def work(one: MetadataSlice) -> dict[str, Any]:
        records = fold_versions(one.partition, read_slice(storage, one, visible), version)
        return write_group_base(
            storage, one.partition, one.file_id, instant, version, records, previous=one.base_instant
        )

    with ThreadPoolExecutor(_THREADS) as pool:
        stats = list(pool.map(work, slices))
    done = completion() if version >= 8 else None
    publish(active, entry, stats, version, done, operation="COMPACT", compacted=True)
    _log.info("compacted the metadata table of %s: %d file groups", storage.root, len(stats))
    return True


def _plan(slices: list[MetadataSlice], version: int) -> dict[str, Any]:
    operations = [
        {
            "baseInstantTime": one.base_instant,
            "deltaFilePaths": list(one.logs),
            "dataFilePath": one.base,
            "fileId": one.file_id,
            "partitionPath": one.partition,
            "metrics": {"TOTAL_LOG_FILES": float(len(one.logs))},
            "bootstrapFilePath": None,
        }
        for one in slices
    ]
    plan: dict[str, Any] = {
        "operations": operations,
        "extraMetadata": {} if version >= 8 else None,
        "version": _PLAN_VERSION,
        "strategy": None,
        "preserveHoodieMetadata": False,
    }
    return plan | ({"missingSchedulePartitions": []} if version >= 8 else {})
