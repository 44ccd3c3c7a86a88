"""The metadata table's part in every action of the table that it describes.

A write tells the metadata table what it has done by a delta commit of the same instant, which is completed, under the
table's lock, before the write itself is. Nobody looks at a delta commit whose instant is pending on the table, so a
writer may die between any two steps; who rolls the write back rolls its delta commit back first.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import MergeMode, TableType
from pyhudi.errors import CorruptTableError, MetadataTableError
from pyhudi.metadata.disable_metadata import detach_metadata_table
from pyhudi.metadata.file_groups.delta_files import GroupFiles, Stat, begin, publish
from pyhudi.metadata.file_groups.log_file_groups import write_logs
from pyhudi.metadata.indexes.column_type_changes import retyped_indexes
from pyhudi.metadata.indexes.index_declarations import declare_partitions, drop_partitions, retire_partitions
from pyhudi.metadata.indexes.index_definitions import column_stats_definition, load_definitions
from pyhudi.metadata.indexes.index_delta import IndexDelta, of_indexes_in_use
from pyhudi.metadata.indexes.indexed_columns import indexed_columns, with_columns
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary, secondary_indexes
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from pyhudi.metadata.reader.metadata_timeline import open_timeline
from pyhudi.metadata.records.record_changes import Records
from pyhudi.metadata.writer.async_index import recover_index_builds
from pyhudi.metadata.writer.clean_records import clean_records
from pyhudi.metadata.writer.commit_records import commit_records
from pyhudi.metadata.writer.concurrent_writes import completed_concurrently, follows_overwrite
from pyhudi.metadata.writer.initialize_partitions import build_partitions
from pyhudi.metadata.writer.metadata_rollback import delete_instant, drop_unfinished
from pyhudi.schema.arrow_avro import from_avro
from pyhudi.schema.internal_schema import InternalSchema
from pyhudi.table.schema_history import LATEST_SCHEMA, SchemaHistory
from pyhudi.timeline.heartbeat import HeartbeatPolicy
from pyhudi.timeline.latest_schema import newest_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyhudi.metadata.writer.metadata_write_context import MetadataWriteContext
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.commit_metadata import CommitMetadata

MAINTAINED = (FILES, COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS)
"""Partitions that every write keeps up to date by itself, in the order in which they are built."""

_LEAVING_KEYS = ("COMPACT", "LOG_COMPACT")
"""Operations after which every key is in the file group where it was."""

_log = logging.getLogger(__name__)


_NOTHING = IndexDelta()


def is_enabled(opts: Options) -> bool:
    """Return True if writes maintain a metadata table."""
    return opts.get_typed(options.METADATA_ENABLE)


def without_disabled(storage: Storage, config: TableConfig, opts: Options) -> TableConfig:
    """Take the metadata table away if the options do not want one."""
    return config if is_enabled(opts) else detach_metadata_table(storage, config)


def apply_commit(
    metadata_context: MetadataWriteContext,
    config: TableConfig,
    instant: str,
    metadata: CommitMetadata,
    index: IndexDelta = _NOTHING,
) -> TableConfig:
    """Apply a write that is about to be completed to the metadata table; returns the table's configuration.

    A metadata table that is not there, or does not know what the table holds, is built anew; one that the options do
    not want is taken away. Partitions that nobody keeps up to date here are taken out of use. ``instant`` is inflight
    on the table's timeline.
    """
    storage = metadata_context.storage
    if not is_enabled(metadata_context.opts):
        return detach_metadata_table(storage, config)
    try:
        return _record(metadata_context, config, instant, metadata, index)
    except CorruptTableError as failure:
        _log.warning("the metadata table of %s is built anew: %s", storage.root, failure)
        config = detach_metadata_table(storage, config)
        return _record(metadata_context, config, instant, metadata, index)


def _record(
    metadata_context: MetadataWriteContext,
    config: TableConfig,
    instant: str,
    metadata: CommitMetadata,
    index: IndexDelta,
) -> TableConfig:
    storage, opts, data = metadata_context.storage, metadata_context.opts, metadata_context.data
    config = recover_index_builds(storage, _without_stale(storage, config, data), data)
    retyped = retyped_indexes(storage, config, data, metadata)
    if retyped:
        config = retire_partitions(storage, config, retyped)
    columns = _settled(storage, config, opts, data, metadata)
    if metadata.operation in _LEAVING_KEYS:
        left = {RECORD_INDEX, *(one.partition for one in secondary_indexes(storage, config, kept=True))}
        index = replace(index, partitions=index.partitions | left)
    index = of_indexes_in_use(storage, config, index)
    config = _without_unmaintained(storage, config, opts, index)
    if PARTITION_STATS in config.metadata_partitions and follows_overwrite(data, instant):
        config = drop_partitions(storage, config, [PARTITION_STATS])
    config = _with_all_enabled(metadata_context, config, columns)
    active = metadata_context.own_timeline(config)
    _drop_unfinished(metadata_context, active, config)
    if instant in active.timeline:
        # left by an attempt that was given up
        delete_instant(storage, active, instant, config)
    entry = begin(active, instant)
    alone = not completed_concurrently(data, instant)
    records = commit_records(storage, config, metadata, instant, columns, alone=alone)
    stats = [*write_records(storage, config, active, instant, records), *index.stats]
    acknowledged = [p for p in config.metadata_partitions_inflight if p in {*MAINTAINED, *index.partitions}]
    publish(
        active, entry, stats, config.version, metadata_context.completed_at(config.version), acknowledged=acknowledged
    )
    return config


def _drop_unfinished(metadata_context: MetadataWriteContext, active: ActiveTimeline, config: TableConfig) -> None:
    pending = [i.requested for i in metadata_context.data.timeline.pending()]
    heartbeats = HeartbeatPolicy.of(metadata_context.opts)
    drop_unfinished(metadata_context.storage, active, pending, config, heartbeats)


def record_clean(
    metadata_context: MetadataWriteContext, config: TableConfig, instant: str, deleted: pa.Table, dropped: Sequence[str]
) -> TableConfig:
    """Tell the metadata table of files that a clean has deleted; returns the table's configuration.

    Args:
        metadata_context: the table, whose lock is held.
        config: the table's configuration.
        instant: the clean, which is inflight on the table's timeline.
        deleted: the files (`pyhudi.metadata.records.record_factory.FILE_COLUMNS`; sizes are not looked at).
        dropped: partitions that have no files any more.
    """
    storage, data = metadata_context.storage, metadata_context.data
    if FILES not in config.metadata_partitions:
        return config
    try:
        config = recover_index_builds(storage, _without_stale(storage, config, data), data)
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
        acknowledged = list(config.metadata_partitions_inflight)
        publish(
            active,
            entry,
            stats,
            config.version,
            metadata_context.completed_at(config.version),
            acknowledged=acknowledged,
        )
    except CorruptTableError as failure:
        _log.warning("the metadata table of %s is taken away: %s", storage.root, failure)
        return detach_metadata_table(storage, config)
    return config


def write_records(
    storage: Storage, config: TableConfig, active: ActiveTimeline, instant: str, records: dict[str, Records]
) -> list[Stat]:
    """Write the log files of a delta commit for those partitions that are in use; returns their stats."""
    used = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    stats = []
    for partition, part in sorted(records.items()):
        if partition in used and len(part):
            files = GroupFiles(storage, partition, instant, config.version)
            stats += write_logs(files, active.timeline, part)
    return stats


def build_all(metadata_context: MetadataWriteContext, config: TableConfig, columns: pa.Schema) -> TableConfig:
    """Build the metadata table of a table that has none; returns the table's configuration. What is pending on the
    table's timeline is left out."""
    return _with_all_enabled(metadata_context, detach_metadata_table(metadata_context.storage, config), columns)


def build_enabled_partitions(
    metadata_context: MetadataWriteContext, config: TableConfig, *, only_if_none: bool = False
) -> TableConfig:
    """Build what the options want of a metadata table, and is missing, outside of any write; returns the table's
    configuration. What is pending on the table's timeline is left out. ``only_if_none``: a metadata table that can be
    trusted is enough, whatever it has."""
    storage, data = metadata_context.storage, metadata_context.data
    config = recover_index_builds(storage, _without_stale(storage, config, data), data)
    if only_if_none and FILES in config.metadata_partitions:
        return config
    return _with_all_enabled(metadata_context, config, columns_to_index(metadata_context, config))


def columns_to_index(metadata_context: MetadataWriteContext, config: TableConfig) -> pa.Schema:
    """The columns that statistics are to be kept of, outside of any write; none before the first one."""
    newest = newest_columns(metadata_context.data)
    if newest is None:
        return pa.schema([])
    return _settled(metadata_context.storage, config, metadata_context.opts, metadata_context.data, newest[1])


def columns_of(config: TableConfig, opts: Options, metadata: CommitMetadata) -> pa.Schema:
    """The columns that statistics are kept of after a write; none if it does not say what columns the table has."""
    schema = _stored_columns(config, metadata)
    return pa.schema([]) if schema is None else indexed_columns(schema, config, opts)


def _stored_columns(config: TableConfig, metadata: CommitMetadata) -> pa.Schema | None:
    """The columns that files of a write have; None if it does not say."""
    text = metadata.schema_json
    if text is None:
        return None
    dropped = {f.name for f in config.partition_fields} if config.drop_partition_columns else set()
    return pa.schema([f for f in from_avro(text) if f.name not in dropped])


def _settled(
    storage: Storage, config: TableConfig, opts: Options, data: ActiveTimeline, metadata: CommitMetadata
) -> pa.Schema:
    """The columns that statistics are kept of, with regard to those that others keep them of already.

    Columns with statistics keep them, whatever the options of one write say: statistics of partitions that leave out
    a write would hide its rows. Columns that another writer has left out, of which nobody wants to know by name, stay
    out: releases differ in the types that they keep statistics of, and must not take turns in building them anew.
    Columns that the table did not have before are taken in.
    """
    columns, stored = columns_of(config, opts, metadata), _stored_columns(config, metadata)
    if stored is not None and (version := metadata.extra.get(LATEST_SCHEMA)):
        stored = _with_one_name(stored, version, data)
        columns = pa.schema([field for field in columns if field.name.split(".")[0] in stored.names])
    used = (*config.metadata_partitions, *config.metadata_partitions_inflight)
    if config.version < 8 or COLUMN_STATS not in used or stored is None:
        return columns
    known = load_definitions(storage, config).get(COLUMN_STATS, {}).get("sourceFields") or []
    extra = [name for name in columns.names if name not in known]
    last = data.timeline.completed().writes().last
    if extra and last is not None and not opts.is_set(options.METADATA_COLUMN_STATS_COLUMNS):
        text = data.commit_metadata(last).schema_json
        before = set() if text is None else set(from_avro(text).names)
        columns = pa.schema([field for field in columns if field.name in known or field.name not in before])
    return with_columns(columns, known, stored, config)


def _with_one_name(columns: pa.Schema, version: str, data: ActiveTimeline) -> pa.Schema:
    """The columns that have had one name in all files: by the name of another one, statistics of partitions would leave
    out what older files hold. ``version`` is the schema that a write records."""
    history = SchemaHistory.load(data)
    newest = InternalSchema.from_json(json.loads(version))
    history = SchemaHistory.of(newest) if history is None else history.with_version(newest)
    unchanged = history.unchanged()
    return pa.schema([field for field in columns if field.name in unchanged])


def enabled_partitions(config: TableConfig, opts: Options) -> list[str]:
    """The partitions that a table's metadata table has to have by the options."""
    found = [FILES]
    stats = opts.get_typed(options.METADATA_COLUMN_STATS_ENABLE)
    if config.version < 8:
        # as in the release of that version, statistics are something to ask for
        stats = stats and opts.is_set(options.METADATA_COLUMN_STATS_ENABLE)
    if stats:
        found.append(COLUMN_STATS)
        partitions = opts.get_typed(options.METADATA_PARTITION_STATS_ENABLE)
        if partitions is not False and config.version >= 8 and config.is_partitioned and _known_by_partition(config):
            found.append(PARTITION_STATS)
    if opts.get_typed(options.METADATA_BLOOM_ENABLE):
        found.append(BLOOM_FILTERS)
    return found


def _known_by_partition(config: TableConfig) -> bool:
    """True if the rows of a partition have no other values than its files do: not where a merger makes new ones."""
    return config.table_type is not TableType.MERGE_ON_READ or config.merge_mode is not MergeMode.CUSTOM


def _without_stale(storage: Storage, config: TableConfig, data: ActiveTimeline) -> TableConfig:
    if FILES not in config.metadata_partitions:
        return detach_metadata_table(storage, config)  # also what somebody left who did not get far
    try:
        open_timeline(storage, config, data)
    except MetadataTableError as failure:
        _log.warning("the metadata table of %s is built anew: %s", storage.root, failure)
        return detach_metadata_table(storage, config)
    return config


def _without_unmaintained(storage: Storage, config: TableConfig, opts: Options, index: IndexDelta) -> TableConfig:
    """Take out of use what is not kept up to date, and what the options do not want."""
    kept = {*MAINTAINED, *index.partitions}
    if opts.is_set(options.METADATA_COLUMN_STATS_ENABLE) and not opts.get_typed(options.METADATA_COLUMN_STATS_ENABLE):
        kept -= {COLUMN_STATS, PARTITION_STATS}
    if opts.is_set(options.METADATA_BLOOM_ENABLE) and not opts.get_typed(options.METADATA_BLOOM_ENABLE):
        kept.discard(BLOOM_FILTERS)
    if opts.get_typed(options.METADATA_PARTITION_STATS_ENABLE) is False or not _known_by_partition(config):
        kept.discard(PARTITION_STATS)
    if RECORD_INDEX not in kept.intersection(config.metadata_partitions):
        # what secondary indexes tell is keys, of which nothing would say where they are
        kept = {partition for partition in kept if not is_secondary(partition)}
    gone = [p for p in config.metadata_partitions_kept if p not in kept]
    return retire_partitions(storage, config, gone) if gone else config


def _with_all_enabled(metadata_context: MetadataWriteContext, config: TableConfig, columns: pa.Schema) -> TableConfig:
    """Build and declare the partitions that are missing, and statistics of other columns than are wanted now."""
    storage = metadata_context.storage
    declared = set(config.metadata_partitions)
    needed = declared | set(enabled_partitions(config, metadata_context.opts))
    needed -= set(config.metadata_partitions_inflight)  # somebody is at it
    renewed = set()
    if config.version >= 8 and COLUMN_STATS in needed and columns.names:
        known = load_definitions(storage, config).get(COLUMN_STATS, {}).get("sourceFields") or []
        if set(columns.names) != set(known):
            renewed = {COLUMN_STATS, PARTITION_STATS} & needed
    missing = [p for p in MAINTAINED if p in needed and (p not in declared or p in renewed)]
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
