"""Updates of the metadata table within every action of the data table.

A write records its changes in a delta commit of the same instant, which is completed, under the lock of the table,
before the write itself. A delta commit whose instant is pending in the table is ignored, so a writer may be killed
between any two steps; the rollback of the write first rolls back its delta commit.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.errors import CorruptTableError, MetadataTableError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.metadata.file_groups.delta_commit_writer import (
    GroupFiles,
    MetadataCommit,
    Stat,
    begin,
    complete_delta_commit,
)
from pyhudi.metadata.file_groups.log_file_groups import write_logs
from pyhudi.metadata.indexes.column_type_changes import retyped_indexes
from pyhudi.metadata.indexes.index_declarations import declare_partitions, drop_partitions, retire_partitions
from pyhudi.metadata.indexes.index_definitions import column_stats_definition, load_definitions
from pyhudi.metadata.indexes.index_delta import IndexDelta, delta_of_current_indexes
from pyhudi.metadata.indexes.indexed_columns import indexed_columns, with_requested_columns
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary, secondary_indexes
from pyhudi.metadata.metadata_layout import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILE_PARTITIONS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from pyhudi.metadata.reader.metadata_timeline import open_timeline
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.writer.clean_records import clean_records
from pyhudi.metadata.writer.commit_records import commit_records
from pyhudi.metadata.writer.concurrent_writes import completed_concurrently, follows_overwrite
from pyhudi.metadata.writer.index_build_state import recover_index_builds
from pyhudi.metadata.writer.initialize_partitions import build_partitions
from pyhudi.metadata.writer.metadata_rollback import delete_instant, delete_unrecorded, drop_unfinished
from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.table.schema_history import LATEST_SCHEMA, SchemaHistory
from pyhudi.timeline.heartbeat import HeartbeatPolicy
from pyhudi.timeline.latest_schema import newest_columns
from pyhudi.timeline.operation_types import COMPACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyhudi.metadata.writer.metadata_write_context import MetadataWriteContext
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.commit_metadata import CommitMetadata

_log = logging.getLogger(__name__)


_NOTHING = IndexDelta()


def is_enabled(opts: Options) -> bool:
    """Return True if writes maintain a metadata table."""
    return opts.get_typed(options.METADATA_ENABLE)


def delete_if_disabled(storage: Storage, config: TableConfig, opts: Options) -> TableConfig:
    """Delete the metadata table if the options disable it."""
    return config if is_enabled(opts) else delete_metadata_table(storage, config)


def update_from_commit(
    metadata_context: MetadataWriteContext,
    config: TableConfig,
    instant: str,
    metadata: CommitMetadata,
    index: IndexDelta = _NOTHING,
) -> TableConfig:
    """Apply a write that is about to be completed to the metadata table. Return the table's configuration.

    A metadata table that is missing or outdated is rebuilt; one that the options disable is deleted. Partitions that
    cannot be maintained are removed. ``instant`` is inflight in the table's timeline.
    """
    storage = metadata_context.storage
    if not is_enabled(metadata_context.opts):
        return delete_metadata_table(storage, config)
    try:
        return _record(metadata_context, config, instant, metadata, index)
    except CorruptTableError as failure:
        _log.warning("rebuilding the metadata table of %s: %s", storage.root, failure)
        config = delete_metadata_table(storage, config)
        return _record(metadata_context, config, instant, metadata, index)


def _record(
    metadata_context: MetadataWriteContext,
    config: TableConfig,
    instant: str,
    metadata: CommitMetadata,
    index: IndexDelta,
) -> TableConfig:
    storage, opts, data = metadata_context.storage, metadata_context.opts, metadata_context.data
    config = recover_index_builds(storage, _delete_if_stale(storage, config, data), data)
    retyped = retyped_indexes(storage, config, data, metadata)
    if retyped:
        config = retire_partitions(storage, config, retyped)
    columns = _indexed_columns(storage, config, opts, data, metadata)
    if not metadata.stats.num_rows and not metadata.replaced:
        # such as a change of the schema, which writes no file: all indexes stay as they are
        index = replace(index, partitions=index.partitions | {*config.metadata_partitions_kept})
    if metadata.operation in COMPACTIONS:
        left = {RECORD_INDEX, *(one.partition for one in secondary_indexes(storage, config, include_building=True))}
        index = replace(index, partitions=index.partitions | left)
    index, listed = delta_of_current_indexes(storage, config, index)
    config = _drop_unmaintained_partitions(storage, config, opts, index)
    if PARTITION_STATS in config.metadata_partitions and follows_overwrite(data, instant):
        config = drop_partitions(storage, config, [PARTITION_STATS])
    config = _build_missing_partitions(metadata_context, config, columns)
    active = metadata_context.own_timeline(config)
    _drop_unfinished(metadata_context, active, config)
    recorded = frozenset(stat["path"] for stat in index.stats)
    if instant in active.timeline:
        # Left behind by an abandoned attempt.
        delete_instant(storage, active, instant, config, recorded)
    delete_unrecorded(storage, instant, config, recorded, listed)
    entry = begin(active, instant)
    alone = not completed_concurrently(data, instant)
    records = commit_records(storage, config, metadata, instant, columns, alone=alone)
    stats = [*write_records(storage, config, active, instant, records), *index.stats]
    acknowledged = [p for p in config.metadata_partitions_inflight if p in {*FILE_PARTITIONS, *index.partitions}]
    commit = MetadataCommit(stats, acknowledged=acknowledged)
    complete_delta_commit(active, entry, commit, config.version, metadata_context.completed_at(config.version))
    return config


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
    storage, data = metadata_context.storage, metadata_context.data
    if FILES not in config.metadata_partitions:
        return config
    try:
        config = recover_index_builds(storage, _delete_if_stale(storage, config, data), data)
        if FILES not in config.metadata_partitions:
            return config
        active = metadata_context.own_timeline(config)
        _drop_unfinished(metadata_context, active, config)
        if instant in active.timeline:
            delete_instant(storage, active, instant, config)
        entry = begin(active, instant)
        columns = columns_to_index(metadata_context, config).names
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
    """Write the log files of a delta commit for the partitions in use. Return their write stats."""
    used = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    stats = []
    for partition, part in sorted(records.items()):
        if partition in used and len(part):
            files = GroupFiles(storage, partition, instant, config.version)
            stats += write_logs(files, active.timeline, part)
    return stats


def build_all(metadata_context: MetadataWriteContext, config: TableConfig, columns: pa.Schema) -> TableConfig:
    """Build the metadata table of a table that has none, without pending instants of the table. Return the table's
    configuration."""
    return _build_missing_partitions(metadata_context, delete_metadata_table(metadata_context.storage, config), columns)


def build_enabled_partitions(
    metadata_context: MetadataWriteContext, config: TableConfig, *, only_if_none: bool = False
) -> TableConfig:
    """Build the missing parts of the metadata table that the options enable, independently of a write. Return the
    table's configuration.

    Pending instants of the table are omitted. ``only_if_none``: do nothing if there is a valid metadata table,
    regardless of its partitions.
    """
    storage, data = metadata_context.storage, metadata_context.data
    config = recover_index_builds(storage, _delete_if_stale(storage, config, data), data)
    if only_if_none and FILES in config.metadata_partitions:
        return config
    return _build_missing_partitions(metadata_context, config, columns_to_index(metadata_context, config))


def columns_to_index(metadata_context: MetadataWriteContext, config: TableConfig) -> pa.Schema:
    """Return the columns with statistics, independently of a write; none before the first write."""
    newest = newest_columns(metadata_context.data)
    if newest is None:
        return pa.schema([])
    return _indexed_columns(metadata_context.storage, config, metadata_context.opts, metadata_context.data, newest[1])


def columns_of(config: TableConfig, opts: Options, metadata: CommitMetadata) -> pa.Schema:
    """Return the columns with statistics after a write; none if it does not record the columns of the table."""
    schema = _stored_columns(config, metadata)
    return pa.schema([]) if schema is None else indexed_columns(schema, config, opts)


def _stored_columns(config: TableConfig, metadata: CommitMetadata) -> pa.Schema | None:
    """Return the columns in files of a write; None if it does not record them."""
    text = metadata.schema_json
    if text is None:
        return None
    dropped = {f.name for f in config.partition_fields} if config.drop_partition_columns else set()
    return pa.schema([f for f in from_avro(text) if f.name not in dropped])


def _indexed_columns(
    storage: Storage, config: TableConfig, opts: Options, data: ActiveTimeline, metadata: CommitMetadata
) -> pa.Schema:
    """Return the columns with statistics, taking existing statistics into account.

    Columns keep their statistics regardless of the options of a single write, because partition statistics that omit a
    write would hide its rows. Columns that another writer has omitted and that the options do not name remain omitted:
    releases differ in supported types, and must not alternate in rebuilding statistics. New columns of the table are
    included.
    """
    columns, stored = columns_of(config, opts, metadata), _stored_columns(config, metadata)
    if stored is not None and (version := metadata.extra.get(LATEST_SCHEMA)):
        stored = _never_renamed_columns(stored, version, config, data)
        columns = pa.schema([field for field in columns if field.name.split(".")[0] in stored.names])
    used = (*config.metadata_partitions, *config.metadata_partitions_inflight)
    if config.version < 8 or COLUMN_STATS not in used or stored is None:
        return columns
    indexed = load_definitions(storage, config).get(COLUMN_STATS, {}).get("sourceFields") or []
    extra = [name for name in columns.names if name not in indexed]
    last = data.timeline.completed().writes().last
    if extra and last is not None and not opts.is_set(options.METADATA_COLUMN_STATS_COLUMNS):
        text = data.commit_metadata(last).schema_json
        before = set() if text is None else set(from_avro(text).names)
        columns = pa.schema([field for field in columns if field.name in indexed or field.name not in before])
    return with_requested_columns(columns, indexed, stored, config)


def _never_renamed_columns(columns: pa.Schema, version: str, config: TableConfig, data: ActiveTimeline) -> pa.Schema:
    """Return the columns that were never renamed, because partition statistics of renamed ones would omit older files.
    ``version`` is the schema recorded by a write."""
    newest = InternalSchema.from_json(json.loads(version))
    history = SchemaHistory.load(data)
    if history is None:  # The write starts it: the files before it have the columns that were recorded until then.
        recorded = newest_columns(data)
        text = config.create_schema if recorded is None else recorded[1].schema_json
        history = SchemaHistory.from_schema(
            InternalSchema.from_arrow(add_meta_columns(from_avro(text))) if text else newest
        )
    unchanged = history.with_version(newest).unchanged()
    return pa.schema([field for field in columns if field.name in unchanged])


def enabled_partitions(config: TableConfig, opts: Options) -> list[str]:
    """Return the partitions of the metadata table that the options enable."""
    enabled = [FILES]
    stats = opts.get_typed(options.METADATA_COLUMN_STATS_ENABLE)
    if config.version < 8:
        # As in the release of that version, statistics must be enabled explicitly.
        stats = stats and opts.is_set(options.METADATA_COLUMN_STATS_ENABLE)
    if stats:
        enabled.append(COLUMN_STATS)
        partitions = opts.get_typed(options.METADATA_PARTITION_STATS_ENABLE)
        if partitions is not False and config.version >= 8 and config.is_partitioned and config.has_stored_values_only:
            enabled.append(PARTITION_STATS)
    if opts.get_typed(options.METADATA_BLOOM_ENABLE):
        enabled.append(BLOOM_FILTERS)
    return enabled


def _delete_if_stale(storage: Storage, config: TableConfig, data: ActiveTimeline) -> TableConfig:
    if FILES not in config.metadata_partitions:
        return delete_metadata_table(storage, config)  # Including leftovers of an early failure.
    try:
        open_timeline(storage, config, data)
    except MetadataTableError as failure:
        _log.warning("rebuilding the metadata table of %s: %s", storage.root, failure)
        return delete_metadata_table(storage, config)
    return config


def _drop_unmaintained_partitions(
    storage: Storage, config: TableConfig, opts: Options, index: IndexDelta
) -> TableConfig:
    """Remove partitions that are not maintained, and those that the options disable."""
    kept = {*FILE_PARTITIONS, *index.partitions}
    if opts.is_set(options.METADATA_COLUMN_STATS_ENABLE) and not opts.get_typed(options.METADATA_COLUMN_STATS_ENABLE):
        kept -= {COLUMN_STATS, PARTITION_STATS}
    if opts.is_set(options.METADATA_BLOOM_ENABLE) and not opts.get_typed(options.METADATA_BLOOM_ENABLE):
        kept.discard(BLOOM_FILTERS)
    if opts.get_typed(options.METADATA_PARTITION_STATS_ENABLE) is False or not config.has_stored_values_only:
        kept.discard(PARTITION_STATS)
    if RECORD_INDEX not in kept.intersection(config.metadata_partitions):
        # Secondary indexes return keys, which must be looked up in the record index.
        kept = {partition for partition in kept if not is_secondary(partition)}
    retired = [p for p in config.metadata_partitions_kept if p not in kept]
    return retire_partitions(storage, config, retired) if retired else config


def _build_missing_partitions(
    metadata_context: MetadataWriteContext, config: TableConfig, columns: pa.Schema
) -> TableConfig:
    """Build and declare the missing partitions, and statistics if other columns are requested now."""
    storage = metadata_context.storage
    declared = set(config.metadata_partitions)
    needed = declared | set(enabled_partitions(config, metadata_context.opts))
    needed -= set(config.metadata_partitions_inflight)  # Another process is building it.
    renewed = set()
    if config.version >= 8 and COLUMN_STATS in needed and columns.names:
        indexed = load_definitions(storage, config).get(COLUMN_STATS, {}).get("sourceFields") or []
        if set(columns.names) != set(indexed):
            renewed = {COLUMN_STATS, PARTITION_STATS} & needed
    missing = [p for p in FILE_PARTITIONS if p in needed and (p not in declared or p in renewed)]
    if not columns.names:
        missing = [p for p in missing if p not in (COLUMN_STATS, PARTITION_STATS)]
    if not missing:
        return config
    if renewed & declared:
        config = drop_partitions(storage, config, sorted(renewed & declared))
    build_partitions(metadata_context, config, missing, columns)
    definitions = {}
    if config.version >= 8 and COLUMN_STATS in missing:
        definitions[COLUMN_STATS] = column_stats_definition(columns.names, config.version)
    return declare_partitions(storage, config, missing, definitions)
