"""Records of expression indexes; docs/format/metadata.md, section 2.5."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import BASE
from pyhudi.metadata.indexes.expression_index_definition import ExpressionIndex
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS
from pyhudi.metadata.records.metadata_keys import expression_partition_keys
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.records.record_factory import (
    bloom_records,
    column_stats_records,
    merged_records,
    partition_stats_records,
)


def expression_records(
    index: ExpressionIndex,
    files: pa.Table,
    summaries: pa.Array,
    version: int,
    instant: str,
    *,
    logs_count: bool,
    first: bool = False,
) -> RecordChanges:
    """Return the index records of files.

    Args:
        files: FILE_COLUMNS and ``kind``; the files are not empty.
        summaries: Index content of each file: a bloom filter (``type``, ``text``), or bounds of its values (a column of
            `pyhudi.format.base_file.column_bounds.bounds_type`).
        instant: Instant of the files.
        logs_count: The values in log files are those of merged rows
            (`pyhudi.metadata.writer.initialize_partitions.log_values_are_final`).
        first: These are all files, so partition statistics are exact.
    """
    files = files.combine_chunks()
    base = pc.equal(files["kind"], BASE).combine_chunks()
    if index.kind == BLOOM_FILTERS:
        files, summaries = files.filter(base), summaries.filter(base)
        return bloom_records(files, summaries.field("text"), summaries.field("type"), instant, version)
    column = index.expression.column
    bounds = _of_column(column, _as_stored(summaries, files["size"].combine_chunks()))
    partitions = files["partition"].combine_chunks()
    exact = pc.unique(partitions).to_pylist() if first else ()
    of_partitions = partition_stats_records(
        partitions, bounds, version, tight=exact, dropped=(), make_keys=expression_partition_keys
    )
    if not logs_count:
        files, bounds = files.filter(base), bounds.filter(base)
    of_files = column_stats_records(files, bounds, version)
    return merged_records([{column: of_files}, {column: of_partitions}])[column]


def _of_column(name: str, bounds: pa.StructArray) -> pa.StructArray:
    return pa.StructArray.from_arrays([bounds], fields=[pa.field(name, bounds.type)])


def _as_stored(bounds: pa.StructArray, sizes: pa.Array) -> pa.StructArray:
    """Return bounds in the form of Apache Hudi: nulls are not counted among values, and the sizes of the column, which
    no file has, are the size of the file and twice that."""
    values = pc.subtract(bounds.field("values"), bounds.field("nulls"))
    given = {"values": values, "size": sizes, "plain": pc.multiply(sizes, 2)}
    columns = [given.get(field.name, bounds.field(i)) for i, field in enumerate(bounds.type)]
    return pa.StructArray.from_arrays(columns, fields=list(bounds.type))
