"""Records that remove files from the metadata table; docs/format/metadata.md, sections 2.3 and 2.10."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import BASE, parse_names
from pyhudi.metadata.indexes.expression_index_definition import expression_indexes
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS
from pyhudi.metadata.records.metadata_keys import (
    bloom_filter_keys,
    column_stats_keys,
    expression_partition_keys,
    partition_stats_keys,
)
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.records.record_factory import FILE_COLUMNS, file_records
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig

_NO_KEYS = pa.array([], pa.string())


def clean_records(
    storage: Storage, config: TableConfig, deleted: pa.Table, dropped: Sequence[str], columns: Sequence[str]
) -> dict[str, RecordChanges]:
    """Return the records of a clean, by partition of the metadata table.

    Args:
        storage: Storage of the table.
        config: Configuration of the table, with the partitions of the metadata table in use.
        deleted: The deleted files (FILE_COLUMNS; sizes are ignored).
        dropped: Partitions of the table without files.
        columns: Columns with statistics.
    """
    files = deleted.select(FILE_COLUMNS.names).combine_chunks()
    partitions = pc.unique(files["partition"]).to_pylist()
    records = {
        FILES: file_records(FILE_COLUMNS.empty_table(), partitions, config.version, files, dropped=dropped),
        COLUMN_STATS: RecordChanges(deletes=_column_stats_keys(files, columns)),
        PARTITION_STATS: RecordChanges(deletes=_partition_stats_keys(dropped, columns)),
        BLOOM_FILTERS: RecordChanges(deletes=_bloom_filter_keys(files)),
    }
    for index in expression_indexes(storage, config, include_building=True):
        column = [index.expression.column]
        if index.kind == BLOOM_FILTERS:
            keys = _bloom_filter_keys(files)
        else:
            keys = pa.concat_arrays([_column_stats_keys(files, column), _expression_stats_keys(dropped, column)])
        records[index.partition] = RecordChanges(deletes=keys)
    return records


def _column_stats_keys(files: pa.Table, columns: Sequence[str]) -> pa.Array:
    partitions, names = (files[name].combine_chunks() for name in ("partition", "name"))
    keys = [column_stats_keys(pa.repeat(pa.scalar(name), files.num_rows), partitions, names) for name in columns]
    return pa.concat_arrays([_NO_KEYS, *keys])


def _bloom_filter_keys(files: pa.Table) -> pa.Array:
    base = files.filter(pc.equal(parse_names(files["name"])["kind"], BASE)).combine_chunks()
    return bloom_filter_keys(base["partition"].combine_chunks(), base["name"].combine_chunks())


def _partition_stats_keys(dropped: Sequence[str], columns: Sequence[str]) -> pa.Array:
    names = pa.array(list(columns), pa.string())
    keys = [partition_stats_keys(names, pa.repeat(pa.scalar(p), len(names))) for p in dropped]
    return pa.concat_arrays([_NO_KEYS, *keys])


def _expression_stats_keys(dropped: Sequence[str], columns: Sequence[str]) -> pa.Array:
    names = pa.array(list(columns), pa.string())
    keys = [expression_partition_keys(names, pa.repeat(pa.scalar(p), len(names))) for p in dropped]
    return pa.concat_arrays([_NO_KEYS, *keys])
