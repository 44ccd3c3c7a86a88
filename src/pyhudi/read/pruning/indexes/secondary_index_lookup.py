"""Lookup of the records that a filter on indexed columns selects, by secondary indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import QueryType
from pyhudi.errors import QueryError
from pyhudi.metadata.indexes.secondary_index_definition import (
    SecondaryIndex,
    can_be_indexed,
    index_texts,
    secondary_indexes,
)
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records import metadata_keys
from pyhudi.metadata.records.metadata_record import SECONDARY_INDEX_PAYLOAD
from pyhudi.read.filters.terms import Term, literal
from pyhudi.read.pruning.indexes.record_location_lookup import MOST_KEYS

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyhudi.read.filters.row_filter import RowFilter
    from pyhudi.read.query.query import Query

_MOST_VALUES = 1_000


def secondary_index_keys(
    table: MetadataTable, query: Query, row_filter: RowFilter, schema: pa.Schema, non_file_columns: Collection[str]
) -> tuple[pa.StringArray, str] | None:
    """Return the record keys that matching rows must have, and a report line; None if no secondary index applies.
    ``non_file_columns``: columns whose values are not those of the files."""
    if query.type is QueryType.READ_OPTIMIZED:
        return None  # Base files have rows with values that log files have changed.
    indexes = [one for one in secondary_indexes(table.storage, table.config) if one.column not in non_file_columns]
    key_sets: list[pa.Array] = []
    used: set[str] = set()
    for conjunction in row_filter.anyof if indexes else ():
        named = [(index, _values_of(conjunction, index.column, schema)) for index in indexes]
        usable = [(index, values) for index, values in named if values is not None]
        if not usable:
            return None
        index, values = min(usable, key=lambda one: len(one[1]))
        used.add(index.partition)
        key_sets.append(_record_keys(table, index, values))
    keys = pc.unique(pa.chunked_array(key_sets, pa.string()))
    if not used or len(keys) > MOST_KEYS:
        return None
    return keys, f"{', '.join(sorted(used))}: {len(keys)} record keys"


def _record_keys(table: MetadataTable, index: SecondaryIndex, values: pa.StringArray) -> pa.StringArray:
    """Return the record keys of the rows with these values."""
    entries = table.secondary_lookup(index.partition, metadata_keys.secondary_prefix(values), [SECONDARY_INDEX_PAYLOAD])
    live = pc.invert(pc.fill_null(pc.struct_field(entries[SECONDARY_INDEX_PAYLOAD], "isDeleted"), False))
    return metadata_keys.split_secondary_key(entries[KEY].filter(live).combine_chunks())[1]


def _values_of(conjunction: tuple[Term, ...], column: str, schema: pa.Schema) -> pa.StringArray | None:
    """Return the values, as texts, one of which a column must have; None if the conditions do not determine them."""
    if column not in schema.names or not can_be_indexed(schema.field(column).type):
        return None
    kind = schema.field(column).type
    for term in conjunction:
        if term.column != column or term.value is None or term.op not in ("=", "==", "in"):
            continue
        try:
            values = [literal(value, kind, column) for value in term.values]
        except QueryError:
            return None
        # A value of another type is compared in that type, in which other values may be equal.
        if all(value.type == kind for value in values) and len(values) <= _MOST_VALUES:
            return index_texts(pa.array([value.as_py() for value in values], kind))
    return None
