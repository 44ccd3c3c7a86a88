"""Declarations of the metadata partitions in use: properties of the table list them, definitions describe them.

The order matters to concurrent readers: a partition is declared after all its files exist, and removed from the
property before any of them is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyhudi.config import property_keys
from pyhudi.config.property_keys import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.indexes.index_definitions import (
    DEFAULT_PATH,
    Definitions,
    drop_definitions,
    load_definitions,
    store_definitions,
)
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.table_config import TableConfig

_log = logging.getLogger(__name__)


def declare_partitions(
    storage: Storage, config: TableConfig, built: Sequence[str], definitions: Definitions | None = None
) -> TableConfig:
    """Declare partitions of the metadata table that have been built. Return the table's configuration.

    ``definitions`` are those required by partition (from version 8 on). The partitions are no longer marked as being
    built.
    """
    changed = _store(storage, config, definitions)

    def declare(properties: dict[str, str]) -> None:
        properties[METADATA_PARTITIONS] = ",".join(sorted({*_partition_names(properties, METADATA_PARTITIONS), *built}))
        if METADATA_PARTITIONS_INFLIGHT in properties:
            left = [name for name in _partition_names(properties, METADATA_PARTITIONS_INFLIGHT) if name not in built]
            properties[METADATA_PARTITIONS_INFLIGHT] = ",".join(left)
        properties.update(changed)

    return config.updated(storage, change=declare)


def declare_inflight_partitions(
    storage: Storage, config: TableConfig, partitions: Sequence[str], definitions: Definitions | None
) -> TableConfig:
    """Announce partitions of the metadata table that are being built and whose file groups exist. Return the table's
    configuration.

    From now on writes maintain them; readers ignore them.
    """
    changed = _store(storage, config, definitions)

    def announce(properties: dict[str, str]) -> None:
        named = {*_partition_names(properties, METADATA_PARTITIONS_INFLIGHT), *partitions}
        properties[METADATA_PARTITIONS_INFLIGHT] = ",".join(sorted(named))
        properties.update(changed)

    return config.updated(storage, change=announce)


def define_indexes(storage: Storage, config: TableConfig, definitions: Definitions) -> TableConfig:
    """Store the definitions of indexes that are going to be built. Return the table's configuration."""
    changed = _store(storage, config, definitions)
    return config.updated(storage, set=changed) if changed else config


def drop_inflight_partitions(storage: Storage, config: TableConfig, partitions: Sequence[str]) -> TableConfig:
    """Withdraw announced partitions and delete their files; definitions are kept. Return the table's configuration."""
    if set(partitions) & set(config.metadata_partitions_inflight):

        def remove(properties: dict[str, str]) -> None:
            left = [
                name for name in _partition_names(properties, METADATA_PARTITIONS_INFLIGHT) if name not in partitions
            ]
            properties[METADATA_PARTITIONS_INFLIGHT] = ",".join(left)

        config = config.updated(storage, change=remove)
    for partition in partitions:
        storage.delete_tree(f"{METADATA_FOLDER}/{partition}")
    return config


def retire_partitions(storage: Storage, config: TableConfig, partitions: Sequence[str]) -> TableConfig:
    """Remove partitions that a write cannot maintain. Return the table's configuration.

    Of partitions that are being built and whose type can occur several times, the definitions are kept with their
    plans.
    """
    named = [p for p in partitions if is_secondary(p) or is_expression(p)]
    building = [p for p in named if p not in config.metadata_partitions]
    dropped = [p for p in partitions if p not in building]
    if building:
        _log.info("withdrawing %s, which is being built, from %s", ", ".join(building), storage.root)
        config = drop_inflight_partitions(storage, config, building)
    return drop_partitions(storage, config, dropped) if dropped else config


def drop_partitions(
    storage: Storage, config: TableConfig, partitions: Sequence[str], *, keep_definitions: bool = False
) -> TableConfig:
    """Remove partitions of the metadata table: first from the property, so that nobody reads them any more, then their
    definitions, so that nobody rebuilds them (not with ``keep_definitions``), then their files."""
    _log.info("removing %s from the metadata table of %s", ", ".join(partitions), storage.root)

    def without(properties: dict[str, str]) -> None:
        for key in (METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT):
            named = _partition_names(properties, key)
            if named:
                properties[key] = ",".join(name for name in named if name not in partitions)

    config = config.updated(storage, change=without)
    if config.version >= 8 and not keep_definitions:
        drop_definitions(storage, config, partitions)
    for partition in partitions:
        storage.delete_tree(f"{METADATA_FOLDER}/{partition}")
    return config


def _store(storage: Storage, config: TableConfig, definitions: Definitions | None) -> dict[str, str]:
    """Add definitions. Return the properties that this changes."""
    if not definitions:
        return {}
    store_definitions(storage, config, {**load_definitions(storage, config), **definitions})
    return {property_keys.INDEX_DEFINITIONS_PATH: DEFAULT_PATH} if config.index_defs_path is None else {}


def _partition_names(properties: dict[str, str], key: str) -> list[str]:
    return [name for name in properties.get(key, "").split(",") if name]
