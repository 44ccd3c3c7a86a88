"""Lookup of the records that a filter on indexed columns selects, by secondary indexes."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import QueryType, TableType
from pyhudi.errors import QueryError
from pyhudi.metadata.indexes.secondary_index_definition import (
    SecondaryIndex,
    can_be_indexed,
    index_texts,
    is_secondary,
    secondary_indexes,
)
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records import metadata_keys
from pyhudi.metadata.records.metadata_record import SECONDARY_INDEX_PAYLOAD
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.terms import Term, literal
from pyhudi.read.pruning.indexes.record_location_lookup import MAX_KEYS
from pyhudi.read.query.query import Query

_MAX_VALUES = 1_000
_MAY_BE_STALE = "of several secondary indexes of a merge-on-read table, Apache Hudi keeps only one up to date"
"""Apache Hudi 1.1.1 and 1.2.0 take the new log file for the earlier state of the file slice, from the second index on
(docs/format/core.md, section 10), and nothing tells which commits are theirs."""


def secondary_index_keys(
    table: MetadataTable, query: Query, row_filter: RowFilter, schema: pa.Schema, non_file_columns: Collection[str]
) -> tuple[pa.StringArray | None, tuple[str, ...]]:
    """Return the record keys that matching rows must have, None if no secondary index tells them, and lines of the
    report. ``non_file_columns``: columns whose values are not those of the files."""
    if query.type is QueryType.READ_OPTIMIZED:
        return None, ()  # Base files have rows with values that log files have changed.
    indexes = [one for one in secondary_indexes(table.storage, table.config) if one.column not in non_file_columns]
    chosen: list[tuple[SecondaryIndex, pa.StringArray]] = []
    for conjunction in row_filter.anyof if indexes else ():
        named = [(index, _values_of(conjunction, index.column, schema)) for index in indexes]
        usable = [(index, values) for index, values in named if values is not None]
        if not usable:
            return None, ()
        chosen.append(min(usable, key=lambda one: len(one[1])))
    if not chosen:
        return None, ()
    names = ", ".join(sorted({index.partition for index, _ in chosen}))
    known = sum(map(is_secondary, table.config.metadata_partitions_kept))
    if known > 1 and table.config.table_type is TableType.MERGE_ON_READ:
        return None, (f"{names}: not used: {_MAY_BE_STALE}",)
    keys = pc.unique(pa.chunked_array([_record_keys(table, index, values) for index, values in chosen], pa.string()))
    return (keys, (f"{names}: {len(keys)} record keys",)) if len(keys) <= MAX_KEYS else (None, ())


def _record_keys(table: MetadataTable, index: SecondaryIndex, values: pa.StringArray) -> pa.StringArray:
    """Return the record keys of the rows with these values."""
    entries = table.secondary_lookup(index.partition, metadata_keys.secondary_prefix(values), [SECONDARY_INDEX_PAYLOAD])
    live = pc.invert(pc.fill_null(pc.struct_field(entries[SECONDARY_INDEX_PAYLOAD], "isDeleted"), False))
    return metadata_keys.split_secondary_key(entries[KEY].filter(live).combine_chunks())[1]


def _values_of(conjunction: tuple[Term, ...], column: str, schema: pa.Schema) -> pa.StringArray | None:
    """Return the values, as texts, one of which a column must have; None if the conditions do not determine them."""
    if column not in schema.names or not can_be_indexed(schema.field(column).type):
        return None
    data_type = schema.field(column).type
    for term in conjunction:
        if term.column != column or term.value is None or term.op not in ("=", "==", "in"):
            continue
        try:
            values = [literal(value, data_type, column) for value in term.values]
        except QueryError:
            return None
        # A value of another type is compared in that type, in which other values may be equal.
        if all(value.type == data_type for value in values) and len(values) <= _MAX_VALUES:
            return index_texts(pa.array([value.as_py() for value in values], data_type))
    return None
