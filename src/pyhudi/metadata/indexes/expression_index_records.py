"""Records of expression indexes; docs/format/metadata.md, section 2.5."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import BASE
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.records.record_factory import (
    bloom_records,
    column_stats_records,
    merged_records,
    partition_stats_records,
)


def expression_bloom_records(files: pa.Table, filters: pa.StructArray, version: int, instant: str) -> RecordChanges:
    """Return the index records of base files with bloom filters; log files have none.

    Args:
        files: FILE_COLUMNS and ``kind``; the files are not empty.
        filters: Bloom filter of each file (``type``, ``text``).
        version: Version of the data table.
        instant: Instant of the files.
    """
    files = files.combine_chunks()
    base = _are_base(files)
    files, filters = files.filter(base), filters.filter(base)
    return bloom_records(files, filters.field("text"), filters.field("type"), instant, version)


def expression_stats_records(
    column: str,
    files: pa.Table,
    bounds: pa.StructArray,
    version: int,
    *,
    logs_have_statistics: bool,
    is_initial: bool,
) -> RecordChanges:
    """Return the index records of files with statistics, and of their partitions. All of them have the type of the
    expression, because Apache Hudi 1.2.0 merges those of one partition only if their types are equal.

    Args:
        column: Column of the expression.
        files: FILE_COLUMNS and ``kind``; the files are not empty.
        bounds: Bounds of the values of each file (a column of `pyhudi.format.base_file.column_bounds.bounds_type`).
        version: Version of the data table.
        logs_have_statistics: Log files have statistics of their own
            (`pyhudi.metadata.writer.file_records.logs_have_statistics`).
        is_initial: These are all files, so partition statistics are exact.
    """
    files = files.combine_chunks()
    of_column = _column_struct(column, _as_stored(bounds, files["size"].combine_chunks()))
    partitions = files["partition"].combine_chunks()
    exact = pc.unique(partitions).to_pylist() if is_initial else ()
    of_partitions = partition_stats_records(partitions, of_column, version, tight=exact, dropped=(), of_expression=True)
    if not logs_have_statistics:
        base = _are_base(files)
        files, of_column = files.filter(base), of_column.filter(base)
    of_files = column_stats_records(files, of_column, version, typed=True)
    return merged_records([{column: of_files}, {column: of_partitions}])[column]


def _are_base(files: pa.Table) -> pa.BooleanArray:
    return pc.equal(files["kind"], BASE).combine_chunks()


def _column_struct(name: str, bounds: pa.StructArray) -> pa.StructArray:
    return pa.StructArray.from_arrays([bounds], fields=[pa.field(name, bounds.type)])


def _as_stored(bounds: pa.StructArray, sizes: pa.Array) -> pa.StructArray:
    """Return bounds in the form of Apache Hudi: nulls are not counted among values, and the sizes of the column, which
    no file has, are the size of the file and twice that."""
    values = pc.subtract(bounds.field("values"), bounds.field("nulls"))
    replaced_fields = {"values": values, "size": sizes, "plain": pc.multiply(sizes, 2)}
    columns = [replaced_fields.get(field.name, bounds.field(i)) for i, field in enumerate(bounds.type)]
    return pa.StructArray.from_arrays(columns, fields=list(bounds.type))
