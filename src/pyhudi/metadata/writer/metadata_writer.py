"""Updates of the metadata table within every action of the data table.

A write records its changes in a delta commit of the same instant, which is completed, under the lock of the table,
before the write itself. A delta commit whose instant is pending in the table is ignored, so a writer may be killed
between any two steps; the rollback of the write first rolls back its delta commit.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from pyhudi.errors import CorruptTableError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.metadata.file_groups.delta_commit_writer import (
    GroupFiles,
    MetadataCommit,
    begin_delta_commit,
    complete_delta_commit,
)
from pyhudi.metadata.file_groups.log_file_groups import write_logs
from pyhudi.metadata.indexes.column_type_changes import retyped_indexes
from pyhudi.metadata.indexes.index_declarations import drop_partitions, retire_partitions
from pyhudi.metadata.indexes.index_delta import IndexDelta, delta_of_current_indexes
from pyhudi.metadata.indexes.indexed_columns import columns_after_write, columns_to_index
from pyhudi.metadata.indexes.secondary_index_definition import secondary_indexes
from pyhudi.metadata.metadata_layout import FILE_PARTITIONS, FILES, PARTITION_STATS, RECORD_INDEX
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.writer.clean_records import clean_records
from pyhudi.metadata.writer.commit_records import commit_records
from pyhudi.metadata.writer.concurrent_writes import completed_concurrently, has_later_overwrite
from pyhudi.metadata.writer.enabled_partitions import (
    build_missing_partitions,
    drop_unmaintained_partitions,
    is_metadata_enabled,
    recover_metadata_table,
)
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.metadata.writer.rollback.instant_deletion import delete_instant, delete_unrecorded, drop_unfinished
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat
from pyhudi.timeline.heartbeat import HeartbeatPolicy
from pyhudi.timeline.operation_types import COMPACTIONS

_log = logging.getLogger(__name__)


def update_from_commit(
    table: LockedTable,
    instant: str,
    metadata: CommitMetadata,
    index: IndexDelta,
) -> LockedTable:
    """Apply a write that is about to be completed to the metadata table. Return the table after that.

    A metadata table that is missing or outdated is rebuilt; one that the options disable is deleted. Partitions that
    cannot be maintained are removed. ``instant`` is inflight in the table's timeline.
    """
    if not is_metadata_enabled(table.opts):
        return _without_metadata_table(table)
    try:
        return _apply_commit(table, instant, metadata, index)
    except CorruptTableError as failure:
        _log.warning("rebuilding the metadata table of %s: %s", table.storage.root, failure)
        return _apply_commit(_without_metadata_table(table), instant, metadata, index)


def _without_metadata_table(table: LockedTable) -> LockedTable:
    return table.with_config(delete_metadata_table(table.storage, table.config))


def _apply_commit(
    table: LockedTable,
    instant: str,
    metadata: CommitMetadata,
    index: IndexDelta,
) -> LockedTable:
    storage = table.storage
    table = recover_metadata_table(table)
    retyped = retyped_indexes(table.snapshot, metadata)
    if retyped:
        table = table.with_config(retire_partitions(storage, table.config, retyped))
    columns = columns_after_write(table.snapshot, table.opts, metadata)
    index = _with_unaffected_indexes(storage, table.config, metadata, index)
    index, listed = delta_of_current_indexes(storage, table.config, index)
    table = table.with_config(_bring_partitions_up_to_date(table, instant, columns, index))
    config, active = table.config, table.load_metadata_timeline()
    _remove_leftovers(table, active, instant, index=index, listed=listed)
    delta_commit = begin_delta_commit(active, instant)
    is_only_write = not completed_concurrently(table.active, instant)
    records = commit_records(storage, config, metadata, instant, columns, is_only_write=is_only_write)
    stats = [*write_records(active, config, instant, records), *index.stats]
    acknowledged = [p for p in config.metadata_partitions_inflight if p in {*FILE_PARTITIONS, *index.partitions}]
    commit = MetadataCommit(stats, acknowledged=acknowledged)
    complete_delta_commit(active, delta_commit, commit, config.version, table.completed_at(config.version))
    return table.with_metadata_timeline(active)


def _with_unaffected_indexes(
    storage: Storage, config: TableConfig, metadata: CommitMetadata, index: IndexDelta
) -> IndexDelta:
    """Return the changes of indexes by a write, including those indexes that it leaves as they are."""
    unaffected: set[str] = set()
    if not metadata.stats.num_rows and not metadata.replaced:  # such as a change of the schema, which writes no file
        unaffected.update(config.metadata_partitions_kept)
    if metadata.operation in COMPACTIONS:
        unaffected |= {
            RECORD_INDEX,
            *(one.partition for one in secondary_indexes(storage, config, include_building=True)),
        }
    return replace(index, partitions=index.partitions | unaffected)


def _bring_partitions_up_to_date(
    table: LockedTable, instant: str, columns: pa.Schema, index: IndexDelta
) -> TableConfig:
    """Remove partitions that a write does not maintain, and build those that are missing."""
    storage = table.storage
    config = drop_unmaintained_partitions(storage, table.config, table.opts, index)
    if PARTITION_STATS in config.metadata_partitions and has_later_overwrite(table.active, instant):
        config = drop_partitions(storage, config, [PARTITION_STATS])
    return build_missing_partitions(table.with_config(config), columns)


def _remove_leftovers(
    table: LockedTable,
    active: ActiveTimeline,
    instant: str,
    *,
    index: IndexDelta,
    listed: Mapping[str, pa.Array],
) -> None:
    """Remove delta commits of dead writers, and what an abandoned attempt at this write left behind."""
    storage, config = table.storage, table.config
    _drop_unfinished(table, active)
    recorded = frozenset(stat["path"] for stat in index.stats)
    if instant in active.timeline:
        delete_instant(active, config, instant, recorded)
    delete_unrecorded(storage, config, instant, recorded, listed)


def _drop_unfinished(table: LockedTable, active: ActiveTimeline) -> None:
    pending = table.active.timeline.pending().requested_times
    heartbeats = HeartbeatPolicy.from_options(table.opts)
    drop_unfinished(active, table.config, pending, heartbeats)


def update_from_clean(table: LockedTable, instant: str, deleted: pa.Table, dropped: Sequence[str]) -> LockedTable:
    """Record files deleted by a clean in the metadata table. Return the table after that.

    Args:
        table: The table, whose lock is held.
        instant: The clean, which is inflight in the table's timeline.
        deleted: The files (`pyhudi.metadata.records.record_factory.FILE_COLUMNS`; sizes are ignored).
        dropped: Partitions without files.
    """
    storage = table.storage
    if FILES not in table.config.metadata_partitions:
        return table
    try:
        table = recover_metadata_table(table)
        config = table.config
        if FILES not in config.metadata_partitions:
            return table
        active = table.load_metadata_timeline()
        _drop_unfinished(table, active)
        if instant in active.timeline:
            delete_instant(active, config, instant)
        delta_commit = begin_delta_commit(active, instant)
        columns = columns_to_index(table.snapshot, table.opts).names
        records = clean_records(storage, config, deleted, dropped, columns)
        stats = write_records(active, config, instant, records)
        commit = MetadataCommit(stats, acknowledged=config.metadata_partitions_inflight)
        complete_delta_commit(active, delta_commit, commit, config.version, table.completed_at(config.version))
    except CorruptTableError as failure:
        _log.warning("deleting the metadata table of %s: %s", storage.root, failure)
        return _without_metadata_table(table)
    return table.with_metadata_timeline(active)


def write_records(
    active: ActiveTimeline, config: TableConfig, instant: str, records: dict[str, RecordChanges]
) -> list[WriteStat]:
    """Write the log files of a delta commit for the partitions in use, on threads, because other writers wait for the
    lock meanwhile. Return their write stats."""
    used = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    timeline = active.timeline

    def write(partition: str) -> list[WriteStat]:
        return write_logs(GroupFiles(active.storage, partition, instant, config.version), timeline, records[partition])

    partitions = sorted(partition for partition, part in records.items() if partition in used and len(part))
    return [stat for stats in concurrent_map(write, partitions) for stat in stats]
