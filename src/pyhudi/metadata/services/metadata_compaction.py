"""Services of the metadata table itself: compaction, cleaning, archival."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.config import options
from pyhudi.errors import FormatError, MetadataTableError, NotFoundError
from pyhudi.format.hfile.hfile_reader import ENTRY_SCHEMA
from pyhudi.metadata.disable_metadata import detach_metadata_table
from pyhudi.metadata.file_groups.delta_files import GroupFiles, Stat, begin, publish
from pyhudi.metadata.file_groups.hfile_sources import NO_CACHE, DeleteSource, slice_sources
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.reader.metadata_slices import block_view, current_slices
from pyhudi.metadata.records.combine_records import Version, fold_versions
from pyhudi.metadata.services.metadata_archival import archive_old
from pyhudi.metadata.services.metadata_cleaning import clean
from pyhudi.timeline.action_metadata import encode_record
from pyhudi.timeline.instant import Action, State

if TYPE_CHECKING:
    from pyhudi.merge.logs.valid_log_blocks import BlockView
    from pyhudi.metadata.writer.metadata_write_context import MetadataWriteContext
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline

COMPACTION_SUFFIX = "001"
"""Suffix of compaction instants in metadata tables of version 6."""
_PLAN_VERSION = 2
_THREADS = 4

_log = logging.getLogger(__name__)


def run_table_services(metadata_context: MetadataWriteContext, config: TableConfig) -> None:
    """Run the services that are due after a commit, which is on the table's timeline.

    A metadata table that turns out to be broken is taken out of use; the next write builds it anew.
    """
    if FILES not in config.metadata_partitions:
        return
    active = metadata_context.own_timeline(config)
    due = metadata_context.opts.get_typed(options.METADATA_COMPACT_MAX_DELTA_COMMITS)
    if deltas_since_compaction(active.timeline, config.version) < due:
        return
    try:
        done = compact(metadata_context, config, active)
    except (FormatError, MetadataTableError, NotFoundError) as failure:
        _log.warning(
            "the metadata table of %s is taken out of use, it is broken: %s", metadata_context.storage.root, failure
        )
        detach_metadata_table(metadata_context.storage, config)
        return
    if done:
        clean(metadata_context.storage, config, active, metadata_context.completion)
        archive_old(
            metadata_context.storage, metadata_context.opts, metadata_context.data, active, timezone=config.timezone
        )


def deltas_since_compaction(metadata: Timeline, version: int) -> int:
    """Return the number of delta commits that were completed since the last compaction."""
    done = metadata.completed()
    last = done.of_actions(Action.COMMIT).last
    deltas = [i for i in done if i.action == Action.DELTA_COMMIT]
    if last is None:
        return len(deltas)
    after = last.requested
    return sum((i.order_time if version >= 8 else i.requested) > after for i in deltas)


def compact(metadata_context: MetadataWriteContext, config: TableConfig, active: ActiveTimeline) -> bool:
    """Merge the log files of every file group into its next base file; False if it cannot be done now.

    In version 6, what is pending on the table may still write to the slices, so nothing may be. From version 8 on a
    log file belongs to a slice by its completion time; only a delta commit that was completed and waits for its
    instant on the table would be passed over.

    Raises:
        FormatError, MetadataTableError: files are damaged or missing.
    """
    version, storage, timeline = config.version, metadata_context.storage, active.timeline
    pending = metadata_context.data.timeline.pending()
    if version < 8 and pending:
        return False
    if any(timeline.is_completed(i.requested) for i in pending):
        return False
    if version >= 8:
        instant = metadata_context.completion()
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
    done = metadata_context.completed_at(version)
    publish(active, entry, stats, version, done, operation="COMPACT", compacted=True)
    _log.info("compacted the metadata table of %s: %d file groups", storage.root, len(stats))
    return True


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice (a row of `SLICE_SCHEMA`) of a partition of the metadata table."""

    partition: str
    row: Mapping[str, Any]


def _versions(storage: Storage, one: _Slice, view: BlockView) -> list[Version]:
    """Versions in a slice that count, the oldest first."""
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
