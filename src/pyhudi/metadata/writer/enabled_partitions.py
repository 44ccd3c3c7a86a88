"""Partitions of the metadata table that writes maintain: which ones options enable, builds of missing ones, and removal
of those that are not maintained."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.errors import MetadataTableError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.metadata.indexes.index_declarations import declare_partitions, drop_partitions, retire_partitions
from pyhudi.metadata.indexes.index_definitions import column_stats_definition, is_supported_version, load_definitions
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.indexes.indexed_columns import columns_to_index
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.metadata.metadata_layout import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILE_PARTITIONS,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
)
from pyhudi.metadata.reader.metadata_timeline import open_timeline
from pyhudi.metadata.writer.index_build_state import delete_undeclared_indexes, recover_index_builds
from pyhudi.metadata.writer.initialize_partitions import build_partitions
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig

_log = logging.getLogger(__name__)


def is_metadata_enabled(opts: Options) -> bool:
    """Return True if writes maintain a metadata table."""
    return opts.get_typed(options.METADATA_ENABLE)


def delete_if_disabled(storage: Storage, config: TableConfig, opts: Options) -> TableConfig:
    """Delete the metadata table if the options disable it."""
    return config if is_metadata_enabled(opts) else delete_metadata_table(storage, config)


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


def recover_metadata_table(table: LockedTable) -> LockedTable:
    """Delete a metadata table that is stale, and complete or remove interrupted builds of indexes. Return the table
    with the metadata table's timeline."""
    table = _delete_if_stale(table)
    return table.with_config(recover_index_builds(table.snapshot))


def _delete_if_stale(table: LockedTable) -> LockedTable:
    """Delete a metadata table that lacks its list of files or cannot be read, so that it is rebuilt."""
    storage, config = table.storage, table.config
    if FILES not in config.metadata_partitions:
        return table.with_config(delete_metadata_table(storage, config))  # Including leftovers of an early failure.
    try:
        return table.with_metadata_timeline(open_timeline(table.snapshot).active)
    except MetadataTableError as failure:
        _log.warning("rebuilding the metadata table of %s: %s", storage.root, failure)
        return table.with_config(delete_metadata_table(storage, config))


def drop_unmaintained_partitions(
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


def build_missing_partitions(table: LockedTable, columns: pa.Schema) -> TableConfig:
    """Build and declare the missing partitions, and statistics if other columns are requested now."""
    storage, config = table.storage, table.config
    declared = set(config.metadata_partitions)
    needed = declared | set(enabled_partitions(config, table.opts))
    needed -= set(config.metadata_partitions_inflight)  # Another process is building it.
    has_definitions = config.version >= 8 and (COLUMN_STATS in needed or config.index_defs_path is not None)
    definitions = load_definitions(storage, config) if has_definitions else {}
    delete_undeclared_indexes(table.snapshot, definitions)
    stats = definitions.get(COLUMN_STATS, {})
    is_renewed = COLUMN_STATS in needed and bool(columns.names) and _are_statistics_outdated(stats, config, columns)
    renewed = {COLUMN_STATS, PARTITION_STATS} & needed if is_renewed else set()
    missing = [p for p in FILE_PARTITIONS if p in needed and (p not in declared or p in renewed)]
    if not columns.names:
        missing = [p for p in missing if p not in (COLUMN_STATS, PARTITION_STATS)]
    if not missing:
        return config
    if renewed & declared:
        config = drop_partitions(storage, config, sorted(renewed & declared))
    build_partitions(table.with_config(config), missing, columns)
    added = {}
    if config.version >= 8 and COLUMN_STATS in missing:
        added[COLUMN_STATS] = column_stats_definition(columns.names, config.version)
    return declare_partitions(storage, config, missing, added)


def _are_statistics_outdated(definition: Mapping[str, Any], config: TableConfig, columns: pa.Schema) -> bool:
    """Return True if statistics must be built again: they are of other columns, or, as those of an upgraded table, in
    an earlier form, because Apache Hudi cannot read a mixture."""
    if config.version < 8:
        return False
    is_outdated = not is_supported_version(definition, config.version)
    return is_outdated or set(columns.names) != set(definition.get("sourceFields") or ())


def build_all(table: LockedTable, columns: pa.Schema) -> TableConfig:
    """Build the metadata table of a table that has none, without pending instants of the table. Return the table's
    configuration."""
    config = delete_metadata_table(table.storage, table.config)
    return build_missing_partitions(table.with_config(config), columns)


def build_enabled_partitions(table: LockedTable, *, only_if_none: bool = False) -> TableConfig:
    """Build the missing parts of the metadata table that the options enable, independently of a write. Return the
    table's configuration.

    Pending instants of the table are omitted. ``only_if_none``: do nothing if there is a valid metadata table,
    regardless of its partitions.
    """
    table = recover_metadata_table(table)
    if only_if_none and FILES in table.config.metadata_partitions:
        return table.config
    columns = columns_to_index(table.snapshot, table.opts)
    return build_missing_partitions(table, columns)
