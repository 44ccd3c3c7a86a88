"""Secondary indexes: definitions and content.

A secondary index maps the values of one column to the record keys of their rows; docs/format/metadata.md, section 2.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.metadata.indexes.index_definitions import index_definition, is_supported_version, load_definitions
from pyhudi.metadata.records.metadata_keys import secondary_key
from pyhudi.metadata.records.metadata_record import RecordType, encode
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig

SECONDARY = "secondary_index"
"""Type of the index, and prefix of the names of its partitions."""
_IDENTITY = "identity"


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    """A secondary index: its ``partition`` of the metadata table, and the indexed ``column``."""

    partition: str
    column: str


def secondary_partition(name: str) -> str:
    """Return the partition of the metadata table for the secondary index with that name."""
    return f"{SECONDARY}_{name}"


def is_secondary(partition: str) -> bool:
    """Return True if a partition of the metadata table is a secondary index."""
    return partition.startswith(f"{SECONDARY}_")


def secondary_indexes(storage: Storage, config: TableConfig, *, include_building: bool = False) -> list[SecondaryIndex]:
    """Return the secondary indexes in use whose definition is supported. ``include_building`` adds those being built,
    which writes maintain, too."""
    names = config.metadata_partitions_kept if include_building else config.metadata_partitions
    declared = [name for name in names if is_secondary(name)]
    if not declared:
        return []
    definitions = load_definitions(storage, config)
    indexes = [parse_secondary_index(name, definitions.get(name, {}), config.version) for name in declared]
    return [index for index in indexes if index is not None]


def parse_secondary_index(partition: str, definition: Mapping[str, Any], version: int) -> SecondaryIndex | None:
    """Return the secondary index of a definition; None if its form is not supported."""
    columns = definition.get("sourceFields") or []
    is_supported = definition.get("indexType") == SECONDARY and is_supported_version(definition, version)
    return SecondaryIndex(partition, columns[0]) if is_supported and len(columns) == 1 else None


def secondary_definition(partition: str, column: str, version: int) -> dict[str, Any]:
    """Return the definition of a secondary index of a column."""
    return index_definition(partition, SECONDARY, _IDENTITY, [column], options={}, version=version)


def can_be_indexed(data_type: pa.DataType) -> bool:
    """Return True if values of a type have the same text form in pyhudi and in Apache Hudi."""
    return bool(pa.types.is_string(data_type) or pa.types.is_signed_integer(data_type) or _is_count(data_type))


def _is_count(data_type: pa.DataType) -> bool:
    """Return True if values of a type are days or microseconds since 1970, whose text is the number."""
    return bool(pa.types.is_date32(data_type) or (pa.types.is_timestamp(data_type) and data_type.unit == "us"))


def index_texts(values: pa.Array) -> pa.Array:
    """Return the values of an indexed column in the text form of the index."""
    if _is_count(values.type):
        values = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    return values if values.type == pa.string() else values.cast(pa.string())


def entry_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """Return the index keys of rows with these values and record keys."""
    return secondary_key(index_texts(values), record_keys)


def entry_value(version: int) -> pa.Scalar:
    """Return the value of every entry of a secondary index."""
    payload = pa.StructArray.from_arrays([pa.array([False])], names=["isDeleted"])
    return encode(RecordType.SECONDARY_INDEX, payload, version)[0]
