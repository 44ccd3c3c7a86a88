"""Which partitions of the metadata table are in use: properties of the table say it, definitions say what they index.

Order matters to whoever looks on: a partition is declared after all that belongs to it is there, and taken out of the
property before anything of it goes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyhudi.metadata.definitions import (
    DEFAULT_PATH,
    PATH_KEY,
    Definitions,
    drop_definitions,
    load_definitions,
    store_definitions,
)
from pyhudi.metadata.detach import METADATA_FOLDER, PARTITIONS, PARTITIONS_INFLIGHT

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig

_log = logging.getLogger(__name__)


def declare_partitions(
    storage: Storage, config: TableConfig, built: Sequence[str], definitions: Definitions | None = None
) -> TableConfig:
    """Put partitions of the metadata table that have been built into use; returns the table's configuration.

    ``definitions`` are those that they need, by partition (from version 8 on). They are no longer being built then.
    """
    changed: dict[str, str] = {}
    if definitions:
        store_definitions(storage, config, {**load_definitions(storage, config), **definitions})
        if config.index_defs_path is None:
            changed[PATH_KEY] = DEFAULT_PATH

    def declare(properties: dict[str, str]) -> None:
        properties[PARTITIONS] = ",".join(sorted({*_named(properties, PARTITIONS), *built}))
        if PARTITIONS_INFLIGHT in properties:
            left = [name for name in _named(properties, PARTITIONS_INFLIGHT) if name not in built]
            properties[PARTITIONS_INFLIGHT] = ",".join(left)
        properties.update(changed)

    return config.updated(storage, change=declare)


def drop_partitions(storage: Storage, config: TableConfig, partitions: Sequence[str]) -> TableConfig:
    """Take partitions of the metadata table out of use: first the property, so that nobody reads them any more, then
    their definitions, so that nobody builds them again, then their files."""
    _log.info("taking %s out of the metadata table of %s", ", ".join(partitions), storage.root)

    def without(properties: dict[str, str]) -> None:
        for key in (PARTITIONS, PARTITIONS_INFLIGHT):
            named = _named(properties, key)
            if named:
                properties[key] = ",".join(name for name in named if name not in partitions)

    config = config.updated(storage, change=without)
    if config.version >= 8:
        drop_definitions(storage, config, partitions)
    for partition in partitions:
        storage.delete_tree(f"{METADATA_FOLDER}/{partition}")
    return config


def _named(properties: dict[str, str], key: str) -> list[str]:
    return [name for name in properties.get(key, "").split(",") if name]
