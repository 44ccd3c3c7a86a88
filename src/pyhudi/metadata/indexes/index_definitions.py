"""``.hoodie/.index_defs/index.json``: what is indexed by the partitions of the metadata table, from version 8 on."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyhudi.errors import CorruptTableError, NotFoundError
from pyhudi.metadata.metadata_layout import COLUMN_STATS
from pyhudi.timeline.encoding.jackson_json import pretty

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig

PATH_KEY = "hoodie.table.index.defs.path"
DEFAULT_PATH = ".hoodie/.index_defs/index.json"
_ALL = "indexDefinitions"

Definitions = Mapping[str, Mapping[str, Any]]
"""Definitions by the name of the metadata table's partition, with the keys of the file."""


def load_definitions(storage: Storage, config: TableConfig) -> dict[str, dict[str, Any]]:
    """The definitions of a table; none without a file.

    Raises:
        CorruptTableError: the file is no such JSON.
    """
    path = config.index_defs_path or DEFAULT_PATH
    try:
        data = storage.read(path)
    except NotFoundError:
        return {}
    try:
        found = json.loads(data)[_ALL] if data.strip() else {}
        return {str(name): dict(definition) for name, definition in (found or {}).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise CorruptTableError(
            f"{storage.uri(path)} is no file of index definitions ({e!r}); restore it, or delete it together with the "
            "property hoodie.table.metadata.partitions, and the next write builds the metadata table anew"
        ) from e


def store_definitions(storage: Storage, config: TableConfig, definitions: Definitions) -> None:
    """Replace the stored definitions, in the form of Apache Hudi's Jackson."""
    text = pretty({_ALL: {name: dict(definition) for name, definition in definitions.items()}})
    storage.write(config.index_defs_path or DEFAULT_PATH, text.encode())


def column_stats_definition(columns: Sequence[str], version: int) -> dict[str, Any]:
    """The definition of the column statistics of these columns."""
    found: dict[str, Any] = {
        "indexName": COLUMN_STATS,
        "indexType": COLUMN_STATS,
        "indexFunction": COLUMN_STATS,
        "sourceFields": list(columns),
        "indexOptions": {},
    }
    return found | ({"version": "V2"} if version >= 9 else {})


def drop_definitions(storage: Storage, config: TableConfig, names: Collection[str]) -> None:
    """Take definitions out, if they are there."""
    definitions = load_definitions(storage, config)
    kept = {name: definition for name, definition in definitions.items() if name not in names}
    if kept != definitions:
        store_definitions(storage, config, kept)
