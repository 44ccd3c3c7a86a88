"""Services of the metadata table itself: compaction, the deletion of slices that nobody reads any more, archival."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.config import options
from pyhudi.errors import FormatError, MetadataTableError, NotFoundError
from pyhudi.format.hfile import ENTRY_SCHEMA
from pyhudi.metadata.archive import archive_old
from pyhudi.metadata.clean import clean
from pyhudi.metadata.deltas import GroupFiles, Stat, begin, publish
from pyhudi.metadata.detach import detach_metadata_table
from pyhudi.metadata.fold import Version, fold_versions
from pyhudi.metadata.home import FILES
from pyhudi.metadata.slices import block_view, current_slices
from pyhudi.metadata.sources import NO_CACHE, DeleteSource, slice_sources
from pyhudi.timeline.instants import Action, State
from pyhudi.timeline.plans import encode_record

if TYPE_CHECKING:
    from pyhudi.merge.logscan import BlockView
    from pyhudi.metadata.upkeep import Upkeep
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig
    from pyhudi.timeline.active import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline

COMPACTION_SUFFIX = "001"
"""Of compaction instants in metadata tables of version 6."""
_PLAN_VERSION = 2
_THREADS = 4

_log = logging.getLogger(__name__)


def serve(upkeep: Upkeep, config: TableConfig) -> None:
    """Run the services that are due after a commit, which is on the table's timeline.

    A metadata table that turns out to be broken is taken out of use; the next write builds it anew.
    """
    if FILES not in config.metadata_partitions:
        return
    active = upkeep.own_timeline(config)
    due = upkeep.opts.get_typed(options.METADATA_COMPACT_MAX_DELTA_COMMITS)
    if deltas_since_compaction(active.timeline, config.version) < due:
        return
    try:
        done = compact(upkeep, config, active)
    except (FormatError, MetadataTableError, NotFoundError) as failure:
        _log.warning("the metadata table of %s is taken out of use, it is broken: %s", upkeep.storage.root, failure)
        detach_metadata_table(upkeep.storage, config)
        return
    if done:
        clean(upkeep.storage, config, active, upkeep.completion)
        archive_old(upkeep.storage, upkeep.opts, upkeep.data, active, timezone=config.timezone)


def deltas_since_compaction(metadata: Timeline, version: int) -> int:
    """How many delta commits were completed since the last compaction."""
    done = metadata.completed()
    last = done.of_actions(Action.COMMIT).last
    deltas = [i for i in done if i.action == Action.DELTA_COMMIT]
    if last is None:
        return len(deltas)
    after = last.requested
    return sum((i.order_time if version >= 8 else i.requested) > after for i in deltas)


def compact(upkeep: Upkeep, config: TableConfig, active: ActiveTimeline) -> bool:
    """Merge the log files of every file group into its next base file; False if it cannot be done now.

    In version 6, what is pending on the table may still write to the slices, so nothing may be. From version 8 on a
    log file belongs to a slice by its completion time; only a delta commit that was completed and waits for its
    instant on the table would be passed over.

    Raises:
        FormatError, MetadataTableError: files are damaged or missing.
    """
    version, storage, timeline = config.version, upkeep.storage, active.timeline
    pending = upkeep.data.timeline.pending()
    if version < 8 and pending:
        return False
    if any(timeline.is_completed(i.requested) for i in pending):
        return False
    if version >= 8:
        instant = upkeep.completion()
    else:
        last = timeline.completed().of_actions(Action.DELTA_COMMIT).last
        assert last is not None
        instant = f"{last.requested[:17]}{COMPACTION_SUFFIX}"
        if instant in timeline:
            return False
    # what the table waits for has not been completed here, so all that is completed counts; of a partition that is
    # being built the base files are still to come
    slices = [
        _Slice(partition, row)
        for partition in sorted(config.metadata_partitions)
        for row in current_slices(storage, active, timeline, partition, version).to_pylist()
        if row["log_paths"]
    ]
    plan = encode_record(Action.COMPACTION, State.REQUESTED, _plan(slices, version), version)
    entry = begin(active, instant, Action.COMPACTION, plan)
    view = block_view(timeline, version)

    def work(one: _Slice) -> Stat:
        records = fold_versions(one.partition, _versions(storage, one, view), version)
        files = GroupFiles(storage, one.partition, instant, version)
        return files.write_base(one.row["file_id"], records, previous=one.row["base_instant"])

    with ThreadPoolExecutor(_THREADS) as pool:
        stats = list(pool.map(work, slices))
    done = upkeep.completed_at(version)
    publish(active, entry, stats, version, done, operation="COMPACT", compacted=True)
    _log.info("compacted the metadata table of %s: %d file groups", storage.root, len(stats))
    return True


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice (a row of `SLICE_SCHEMA`) of a partition of the metadata table."""

    partition: str
    row: Mapping[str, Any]


def _versions(storage: Storage, one: _Slice, view: BlockView) -> list[Version]:
    """All that counts of a slice, the oldest first."""
    found = []
    for source in slice_sources(storage, one.row, view, NO_CACHE):
        if isinstance(source, DeleteSource):
            found.append(Version(deletes=source.keys.cast(pa.string())))
            continue
        entries = pa.Table.from_batches(source.reader.batches(), ENTRY_SCHEMA)
        found.append(Version(entries["key"].cast(pa.string()), entries["value"], source.schema))
    return found


def _plan(slices: list[_Slice], version: int) -> dict[str, Any]:
    operations = [
        {
            "baseInstantTime": one.row["base_instant"],
            "deltaFilePaths": [_name(path) for path in one.row["log_paths"]],
            "dataFilePath": None if one.row["base_path"] is None else _name(one.row["base_path"]),
            "fileId": one.row["file_id"],
            "partitionPath": one.partition,
            "metrics": {"TOTAL_LOG_FILES": float(len(one.row["log_paths"]))},
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


def _name(path: str) -> str:
    return path.rpartition("/")[2]
