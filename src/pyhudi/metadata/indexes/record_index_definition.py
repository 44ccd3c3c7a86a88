"""Definition of the record index, which tables have from version 9 on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig

_PARTITIONED = "isPartitioned"


def record_index_definition(*, partitioned: bool) -> dict[str, Any]:
    return {
        "indexName": RECORD_INDEX,
        "indexType": RECORD_INDEX,
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {_PARTITIONED: str(partitioned).lower()},
        "version": "V1",
    }


def is_partitioned(definitions: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return True if the definitions of a table have a record index that knows keys by partition."""
    options = definitions.get(RECORD_INDEX, {}).get("indexOptions") or {}
    return str(options.get(_PARTITIONED, "false")).lower() == "true"


def has_partitioned_record_index(storage: Storage, config: TableConfig) -> bool:
    """Return True if the record index of a table knows keys by partition."""
    return is_partitioned(load_definitions(storage, config))
