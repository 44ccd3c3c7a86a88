"""Contents of the indexes of a table, read by our reader, and what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from pyhudi.api.hudi_table import HudiTable
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.records.metadata_keys import split_secondary_key
from pyhudi.metadata.records.metadata_record import RECORD_INDEX_PAYLOAD
from pyhudi.metadata.records.record_locations import decode_locations
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot

Locations = dict[tuple[str, str], str]


def metadata_table(path: str | Path) -> MetadataTable:
    """Open the metadata table of a table."""
    client = TableMetaClient.open(str(path))
    return MetadataTable.open(TableSnapshot.load(client))


def indexed_locations(path: str | Path) -> Locations:
    """Return the file group of every (key, partition), by the record index."""
    found = metadata_table(path).scan("record_index", [RECORD_INDEX_PAYLOAD])
    where = decode_locations(found[RECORD_INDEX_PAYLOAD]).to_pylist()
    keys = found["key"].to_pylist()
    return {(key, row["partition"]): row["file_id"] for key, row in zip(keys, where, strict=True)}


def stored_locations(path: str | Path) -> Locations:
    """Return the file group of every (key, partition), by the meta columns of the rows."""
    columns = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]
    rows = HudiTable.for_path(str(path)).scan(columns=columns).to_arrow().to_pylist()
    return {(row[columns[0]], row[columns[1]]): row[columns[2]].split("_")[0] for row in rows}


def secondary_entries(path: str | Path, name: str = "by_v") -> list[tuple[Any, str]]:
    """Return the (value, record key) pairs of a secondary index, sorted."""
    keys = metadata_table(path).scan(f"secondary_index_{name}", []).combine_chunks()["key"]
    values, records = split_secondary_key(keys.chunk(0) if keys.num_chunks else pa.array([], pa.string()))
    return sorted(zip(values.to_pylist(), records.to_pylist(), strict=True), key=repr)
