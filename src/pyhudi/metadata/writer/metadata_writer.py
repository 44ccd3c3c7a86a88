"""Updates of the metadata table within every action of the data table.

A write records its changes in a delta commit of the same instant, which is completed, under the lock of the table,
before the write itself. A delta commit whose instant is pending in the table is ignored, so a writer may be killed
between any two steps; the rollback of the write first rolls back its delta commit.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import CorruptTableError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.metadata.file_groups.delta_commit_writer import (
    GroupFiles,
    MetadataCommit,
    Stat,
    begin_delta_commit,
    complete_delta_commit,
)
from pyhudi.metadata.file_groups.log_file_groups import write_logs
from pyhudi.metadata.indexes.column_type_changes import retyped_indexes
from pyhudi.metadata.indexes.index_declarations import drop_partitions, retire_partitions
from pyhudi.metadata.indexes.index_delta import IndexDelta, delta_of_current_indexes
from pyhudi.metadata.indexes.indexed_columns import columns_after_write, columns_to_index
from pyhudi.metadata.indexes.secondary_index_definition import secondary_indexes
from pyhudi.metadata.metadata_layout import (
    FILE_PARTITIONS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
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
from pyhudi.metadata.writer.rollback.instant_deletion import delete_instant, delete_unrecorded, drop_unfinished
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.timeline.heartbeat import HeartbeatPolicy
from pyhudi.timeline.operation_types import COMPACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyhudi.metadata.writer.metadata_write_context import MetadataWriteContext
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.commit_metadata import CommitMetadata

_log = logging.getLogger(__name__)


def update_from_commit(
    metadata_context: MetadataWriteContext,
    config: TableConfig,
    instant: str,
    metadata: CommitMetadata,
    index: IndexDelta,
) -> TableConfig:
    """Apply a write that is about to be completed to the metadata table. Return the table's configuration.

    A metadata table that is missing or outdated is rebuilt; one that the options disable is deleted. Partitions that
    cannot be maintained are removed. ``instant`` is inflight in the table's timeline.
    """
    storage = metadata_context.storage
    if not is_metadata_enabled(metadata_context.opts):
        return delete_metadata_table(storage, config)
    try:
        return _apply_commit(metadata_context, config, instant, metadata, index)
    except CorruptTableError as failure:
        _log.warning("rebuilding the metadata table of %s: %s", storage.root, failure)
        config = delete_metadata_table(storage, config)
        return _apply_commit(metadata_context, config, instant, metadata, index)


def _apply_commit(
    metadata_context: MetadataWriteContext,
    config: TableConfig,
    instant: str,
    metadata: CommitMetadata,
    index: IndexDelta,
) -> TableConfig:
    storage = metadata_context.storage
    config = recover_metadata_table(metadata_context, config)
    retyped = retyped_indexes(metadata_context.snapshot(config), metadata)
    if retyped:
        config = retire_partitions(storage, config, retyped)
    columns = columns_after_write(metadata_context.snapshot(config), metadata_context.opts, metadata)
    index, listed = delta_of_current_indexes(
        storage, config, _with_unaffected_indexes(storage, config, metadata, index)
    )
    config = _bring_partitions_up_to_date(metadata_context, config, instant, columns, index)
    active = metadata_context.own_timeline(config)
    _remove_leftovers(metadata_context, config, active, instant, index=index, listed=listed)
    entry = begin_delta_commit(active, instant)
    alone = not completed_concurrently(metadata_context.data, instant)
    records = commit_records(storage, config, metadata, instant, columns, alone=alone)
    stats = [*write_records(storage, config, active, instant, records), *index.stats]
    acknowledged = [p for p in config.metadata_partitions_inflight if p in {*FILE_PARTITIONS, *index.partitions}]
    commit = MetadataCommit(stats, acknowledged=acknowledged)
    complete_delta_commit(active, entry, commit, config.version, metadata_context.completed_at(config.version))
    return config


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
    metadata_context: MetadataWriteContext, config: TableConfig, instant: str, columns: pa.Schema, index: IndexDelta
) -> TableConfig:
    """Remove partitions that a write does not maintain, and build those that are missing."""
    storage = metadata_context.storage
    config = drop_unmaintained_partitions(storage, config, metadata_context.opts, index)
    if PARTITION_STATS in config.metadata_partitions and has_later_overwrite(metadata_context.data, instant):
        config = drop_partitions(storage, config, [PARTITION_STATS])
    return build_missing_partitions(metadata_context, config, columns)


def _remove_leftovers(
    metadata_context: MetadataWriteContext,
    config: TableConfig,
    active: ActiveTimeline,
    instant: str,
    *,
    index: IndexDelta,
    listed: Mapping[str, pa.Array],
) -> None:
    """Remove delta commits of dead writers, and what an abandoned attempt at this write left behind."""
    _drop_unfinished(metadata_context, active, config)
    recorded = frozenset(stat["path"] for stat in index.stats)
    if instant in active.timeline:
        delete_instant(metadata_context.storage, active, instant, config, recorded)
    delete_unrecorded(metadata_context.storage, instant, config, recorded, listed)


def _drop_unfinished(metadata_context: MetadataWriteContext, active: ActiveTimeline, config: TableConfig) -> None:
    pending = [i.requested for i in metadata_context.data.timeline.pending()]
    heartbeats = HeartbeatPolicy.from_options(metadata_context.opts)
    drop_unfinished(metadata_context.storage, active, pending, config, heartbeats)


def update_from_clean(
    metadata_context: MetadataWriteContext, config: TableConfig, instant: str, deleted: pa.Table, dropped: Sequence[str]
) -> TableConfig:
    """Record files deleted by a clean in the metadata table. Return the table's configuration.

    Args:
        metadata_context: The table, whose lock is held.
        config: The table's configuration.
        instant: The clean, which is inflight in the table's timeline.
        deleted: The files (`pyhudi.metadata.records.record_factory.FILE_COLUMNS`; sizes are ignored).
        dropped: Partitions without files.
    """
    storage = metadata_context.storage
    if FILES not in config.metadata_partitions:
        return config
    try:
        config = recover_metadata_table(metadata_context, config)
        if FILES not in config.metadata_partitions:
            return config
        active = metadata_context.own_timeline(config)
        _drop_unfinished(metadata_context, active, config)
        if instant in active.timeline:
            delete_instant(storage, active, instant, config)
        entry = begin_delta_commit(active, instant)
        columns = columns_to_index(metadata_context.snapshot(config), metadata_context.opts).names
        records = clean_records(storage, config, deleted, dropped, columns)
        stats = write_records(storage, config, active, instant, records)
        commit = MetadataCommit(stats, acknowledged=config.metadata_partitions_inflight)
        complete_delta_commit(active, entry, commit, config.version, metadata_context.completed_at(config.version))
    except CorruptTableError as failure:
        _log.warning("deleting the metadata table of %s: %s", storage.root, failure)
        return delete_metadata_table(storage, config)
    return config


def write_records(
    storage: Storage, config: TableConfig, active: ActiveTimeline, instant: str, records: dict[str, RecordChanges]
) -> list[Stat]:
    """Write the log files of a delta commit for the partitions in use, on threads, because other writers wait for the
    lock meanwhile. Return their write stats."""
    used = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    timeline = active.timeline

    def write(partition: str) -> list[Stat]:
        return write_logs(GroupFiles(storage, partition, instant, config.version), timeline, records[partition])

    partitions = sorted(partition for partition, part in records.items() if partition in used and len(part))
    return [stat for stats in concurrent_map(write, partitions) for stat in stats]
