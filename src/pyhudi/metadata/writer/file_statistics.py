"""Statistics of single files for the metadata table: column bounds and bloom filters, read from the files.

Write tasks report bounds in their statuses; here they are read from files of other writers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError, NotFoundError
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.base_file.column_bounds import BoundsRecorder, bounds_type, parquet_bounds, unknown_columns
from pyhudi.format.file_names import LOG
from pyhudi.format.log import DATA_BLOCKS, LogBlock, decode_records, scan_blocks
from pyhudi.merge.skeleton_file import SkeletonFile, open_skeleton
from pyhudi.schema.name_resolution import top_column
from pyhudi.schema.timestamp_units import with_actual_types
from pyhudi.schema.type_conversion import convert
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.bootstrap_index import is_skeleton

BOUNDS = "bounds"
"""Additional column of WRITE_STAT_SCHEMA: the bounds of a file from write statuses."""

_BATCH_ROWS = 65_536
_log = logging.getLogger(__name__)
_WITHOUT_NAN = "parquet-cpp"
"""Writers that omit NaN from the bounds in a footer. pyhudi records NaN there, and omits bounds."""


def read_file_bounds(storage: Storage, path: str, columns: pa.Schema) -> pa.StructArray:
    """Return the bounds of a base file (one row of `pyhudi.format.base_file.column_bounds.bounds_type`) from its
    footer, or else from its rows.

    Raises:
        FormatError: The file is corrupt.
        NotFoundError: The file no longer exists.
    """
    if is_skeleton(path):
        with open_skeleton(storage, path) as file:
            return skeleton_bounds(file, columns)
    with storage.open_input(path) as source:
        if path.endswith(".orc"):
            return _row_statistics(orc.read_batches(source, _top_level(columns)), columns)
        return _parquet_statistics(source, columns)


def _parquet_statistics(source: Any, columns: pa.Schema) -> pa.StructArray:
    file = parquet.open_file(source, pre_buffer=False)
    metadata = file.metadata
    noted, is_known_writer = parquet.nan_columns(metadata), _leaves_nan_out(metadata)
    bounds = parquet_bounds(metadata, columns, stored=file.schema_arrow)
    unreliable = set(unknown_columns(bounds))
    if noted is not None and is_known_writer:
        unreliable |= noted.intersection(columns.names)
    elif is_known_writer or noted is not None:  # A program that rewrites a file may copy the footer entry.
        unreliable |= {field.name for field in columns if pa.types.is_floating(field.type)}
    if not unreliable:
        return bounds
    rest = pa.schema([field for field in columns if field.name in unreliable])
    return _merge_bounds(columns, [(rest, _row_statistics(_parquet_rows(file, rest), rest)), (columns, bounds)])


def skeleton_bounds(file: SkeletonFile, columns: pa.Schema) -> pa.StructArray:
    """Return the bounds of the columns of a skeleton file and its source from their footers, and those of columns in
    its path from its rows.

    Raises:
        CorruptTableError: The source no longer exists or has changed.
        FormatError: A file is corrupt.
    """
    parts = []
    for footer, source in (file.footer, file.own), (file.source_footer, file.source_file):
        stored = pa.schema([f for f in columns if f.name.partition(".")[0] in footer.schema.names])
        if stored.names and footer.metadata is not None:
            parts.append((stored, _parquet_statistics(source, stored)))
    found_names = {name for stored, _ in parts for name in stored.names}
    rest = pa.schema([f for f in columns if f.name not in found_names])
    if rest.names:
        parts.append((rest, _row_statistics(file.batches(_top_schema(rest), _BATCH_ROWS), rest)))
    return _merge_bounds(columns, parts)


def _merge_bounds(columns: pa.Schema, parts: Sequence[tuple[pa.Schema, pa.StructArray]]) -> pa.StructArray:
    """Return the bounds of columns, each from the first part that has it."""
    children = [next(of.field(s.get_field_index(f.name)) for s, of in parts if f.name in s.names) for f in columns]
    return pa.StructArray.from_arrays(children, fields=list(bounds_type(columns)))


def _leaves_nan_out(metadata: Any) -> bool:
    return str(metadata.created_by or "").startswith(_WITHOUT_NAN)


def log_bounds(storage: Storage, path: str, columns: pa.Schema) -> pa.StructArray:
    """Return the bounds of the records in a log file, including rolled-back ones.

    Raises:
        FormatError: The file is corrupt.
        NotFoundError: The file no longer exists.
    """
    recorder = BoundsRecorder(columns)
    with storage.open_input(path) as source:
        for block in scan_blocks(source):
            if block.type in DATA_BLOCKS:
                for rows in _log_rows(block, columns):
                    recorder.add(_aligned(rows, columns))
    return recorder.finish()


def rows_of_file(
    storage: Storage, path: str, kind: str, columns: pa.Schema, invalid_text: InvalidText = InvalidText.FAIL
) -> Iterator[pa.Table]:
    """Return the rows of a base file, or the records of a log file, including rolled-back ones, with these columns and
    types; missing columns are null. ``invalid_text`` determines the treatment of text that is not valid UTF-8.

    Raises:
        FormatError: The file is corrupt, or has invalid text that is refused.
        NotFoundError: The file no longer exists.
        SchemaMismatchError: Values cannot be converted to the type.
    """
    with ExitStack() as stack:
        source: Any = (
            stack.enter_context(open_skeleton(storage, path, invalid_text))
            if is_skeleton(path) and kind != LOG
            else stack.enter_context(storage.open_input(path))
        )
        for rows in _rows_in(source, path, kind, columns, invalid_text):
            file_columns = set(rows.schema.names)
            arrays = [
                pa.chunked_array([convert(c, f.type, f.name) for c in _chunks(rows[f.name])], f.type)
                if f.name in file_columns
                else pa.nulls(rows.num_rows, f.type)
                for f in columns
            ]
            yield pa.Table.from_arrays(arrays, schema=columns)


def _rows_in(
    source: Any, path: str, kind: str, columns: pa.Schema, invalid_text: InvalidText
) -> Iterator[pa.RecordBatch | pa.Table]:
    names = columns.names
    if isinstance(source, SkeletonFile):
        yield from source.batches(columns, _BATCH_ROWS)
    elif kind == LOG:
        for block in scan_blocks(source):
            if block.type in DATA_BLOCKS:
                yield from _log_rows(block, columns, invalid_text)
    elif path.endswith(".orc"):
        yield from orc.read_batches(source, names, invalid_text=invalid_text)
    else:
        yield from _parquet_rows(parquet.open_file(source, pre_buffer=False), columns, invalid_text)


def _log_rows(
    block: LogBlock, columns: pa.Schema, invalid_text: InvalidText = InvalidText.FAIL
) -> Iterator[pa.RecordBatch | pa.Table]:
    records = decode_records(block, columns=_top_level(columns), invalid_text=invalid_text)
    if not records.num_columns:  # Batches without columns have no number of rows.
        yield records
        return
    yield from (with_actual_types(batch, columns) for batch in records.combine_chunks().to_batches())


def _parquet_rows(
    file: pq.ParquetFile, columns: pa.Schema, invalid_text: InvalidText = InvalidText.FAIL
) -> Iterator[pa.RecordBatch]:
    batches = parquet.read_batches(file, _top_level(columns), invalid_text=invalid_text)
    if parquet.has_int96(file.metadata):
        return batches
    return (with_actual_types(batch, columns) for batch in batches)


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def bounds_of_files(storage: Storage, files: pa.Table, columns: pa.Schema) -> pa.StructArray:
    """Return the bounds of many files (columns ``path`` and ``kind``), one row each; read on threads.

    A file that is missing or corrupt, or has text that is not valid UTF-8, has none (null): queries of the file report
    the error.
    """

    def read_file(row: tuple[str, str]) -> pa.StructArray:
        try:
            return (log_bounds if row[1] == LOG else read_file_bounds)(storage, row[0], columns)
        except (FormatError, NotFoundError) as failure:
            _log.warning("no statistics of %s: %s", storage.uri(row[0]), failure)
            return pa.nulls(1, bounds_type(columns))

    return pa.concat_arrays(
        [bounds_type_array(columns), *_on_threads(read_file, files["path"].to_pylist(), files["kind"].to_pylist())]
    )


def blooms_of_files(storage: Storage, paths: Sequence[str]) -> pa.Table:
    """Return the bloom filters of base files from their footers: columns ``type`` and ``text``, null without one."""

    def read_file(row: tuple[str]) -> tuple[str | None, str | None]:
        with storage.open_input(row[0]) as source:
            footer = orc.read_footer(source) if row[0].endswith(".orc") else parquet.read_footer(source)
        text = None if footer.bloom_text is None else footer.bloom_text.decode("ascii", "replace")
        return footer.bloom_type, text

    filters = _on_threads(read_file, paths)
    return pa.table({"type": pa.array([f[0] for f in filters], pa.string()), "text": [f[1] for f in filters]})


def bounds_type_array(columns: pa.Schema) -> pa.StructArray:
    """Return empty bounds of the right type."""
    return pa.array([], bounds_type(columns))


def _on_threads(read_file: Any, *columns: Sequence[str]) -> list[Any]:
    return concurrent_map(read_file, zip(*columns, strict=True))


def _row_statistics(batches: Any, columns: pa.Schema) -> pa.StructArray:
    recorder = BoundsRecorder(columns)
    for batch in batches:
        recorder.add(_aligned(batch, columns))
    return recorder.finish()


def _top_schema(columns: pa.Schema) -> pa.Schema:
    """Return the top-level columns, with types only for those that are requested as a whole."""
    types = {field.name: field.type for field in columns}
    return pa.schema([(name, types.get(name, pa.null())) for name in _top_level(columns)])


def _top_level(columns: pa.Schema) -> list[str]:
    return list(dict.fromkeys(name.partition(".")[0] for name in columns.names))


def _aligned(rows: pa.RecordBatch | pa.Table, columns: pa.Schema) -> pa.Table:
    """Return rows of a file with another schema; missing columns are null."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    names = set(table.column_names)
    for field in columns:
        if field.name in names and table.schema.field(field.name).type != field.type:
            at = table.schema.get_field_index(field.name)
            table = table.set_column(at, field, _cast(table[field.name], field.type))
        elif top_column(field.name, names) not in names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table


def _cast(column: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_floating(column.type):
        return pa.chunked_array([convert(chunk, data_type) for chunk in column.chunks], data_type)
    return pc.cast(column, data_type, safe=False) if not pa.types.is_dictionary(column.type) else column
