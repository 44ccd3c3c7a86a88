"""``.hoodie/.index_defs/index.json``: definitions of the indexes in the metadata table, from version 8 on."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyhudi.errors import CorruptTableError, NotFoundError
from pyhudi.metadata.metadata_layout import COLUMN_STATS
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import INDEX_DEFINITIONS_FOLDER
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.encoding.jackson_json import pretty

DEFAULT_PATH = f"{INDEX_DEFINITIONS_FOLDER}/index.json"
_ALL = "indexDefinitions"
_INDEX_VERSIONS: Mapping[int, tuple[str | None, ...]] = {8: (None, "V1"), 9: ("V2",)}

Definitions = Mapping[str, Mapping[str, Any]]
"""Definitions by partition of the metadata table, with the keys of the file."""


def load_definitions(storage: Storage, config: TableConfig) -> dict[str, dict[str, Any]]:
    """Return the definitions of a table; empty without a file.

    Raises:
        CorruptTableError: The file is not valid JSON.
    """
    path = config.index_defs_path or DEFAULT_PATH
    try:
        data = storage.read(path)
    except NotFoundError:
        return {}
    try:
        definitions = json.loads(data)[_ALL] if data.strip() else {}
        return {str(name): dict(definition) for name, definition in (definitions or {}).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            f"{storage.uri(path)} is not a valid file of index definitions ({error!r}); restore it, or delete it "
            "together with the property hoodie.table.metadata.partitions, then the next write rebuilds the "
            "metadata table"
        ) from error


def store_definitions(storage: Storage, config: TableConfig, definitions: Definitions) -> None:
    """Replace the stored definitions, in the form of Apache Hudi's Jackson."""
    text = pretty({_ALL: {name: dict(definition) for name, definition in definitions.items()}})
    storage.write(config.index_defs_path or DEFAULT_PATH, text.encode())


def index_definition(
    name: str, kind: str, function: str, columns: Sequence[str], *, options: Mapping[str, str], version: int
) -> dict[str, Any]:
    """Return the definition of an index in the form of a table version, with the keys of the file."""
    definition: dict[str, Any] = {
        "indexName": name,
        "indexType": kind,
        "indexFunction": function,
        "sourceFields": list(columns),
        "indexOptions": dict(options),
    }
    return definition | ({"version": "V2"} if version >= 9 else {})


def is_supported_version(definition: Mapping[str, Any], version: int) -> bool:
    """Return True if pyhudi supports the index version of a definition in a table of that version."""
    return definition.get("version") in _INDEX_VERSIONS.get(version, ())


def column_stats_definition(columns: Sequence[str], version: int) -> dict[str, Any]:
    """Return the definition of the column statistics of these columns."""
    return index_definition(COLUMN_STATS, COLUMN_STATS, COLUMN_STATS, columns, options={}, version=version)


def drop_definitions(storage: Storage, config: TableConfig, names: Collection[str]) -> None:
    """Remove definitions, if they exist."""
    definitions = load_definitions(storage, config)
    kept = {name: definition for name, definition in definitions.items() if name not in names}
    if kept != definitions:
        store_definitions(storage, config, kept)
