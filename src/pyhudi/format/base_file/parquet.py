"""Base files in Parquet, read as streams of Arrow batches.

Files of pyhudi (`pyhudi.format.base_file.parquet_writer`) and of other writers are read in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError
from pyhudi.format.base_file import base_file_footer
from pyhudi.format.base_file.base_file_footer import NAN_KEY, Footer
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.format.utf8_validation import valid_text
from pyhudi.schema.logical_types.blobs import BLOB, BLOB_IN_FILES
from pyhudi.schema.logical_types.variants import VARIANT, has_variant_fields
from pyhudi.schema.logical_types.vectors import (
    FOOTER_KEY,
    is_vector,
    parse_vector_columns,
    stored_type,
    vectors_of_bytes,
)
from pyhudi.schema.table_types import with_changed_children
from pyhudi.schema.type_conversion import convert_children, is_like_nested

_INT96 = "INT96"
INT96_UNIT = "us"
"""Unit of 96-bit timestamps as read."""
_INSTANT = pa.timestamp("us", "UTC")


def open_file(
    source: Any,
    *,
    dictionary_columns: Sequence[str] = (),
    pre_buffer: bool = True,
    metadata: pq.FileMetaData | None = None,
) -> pq.ParquetFile:
    """Open a base file (path, buffer or random-access file).

    ``dictionary_columns`` are returned dictionary-encoded. ``metadata``, if known, is not read again.

    Raises:
        FormatError: The file is not a Parquet file, or its footer is corrupt.
    """
    with as_corruption("not a valid Parquet file"):
        file = pq.ParquetFile(
            source,
            metadata=metadata,
            read_dictionary=list(dictionary_columns),
            pre_buffer=pre_buffer,
            coerce_int96_timestamp_unit=INT96_UNIT,
        )
        _ = file.schema_arrow.names  # Decodes the footer.
    return file


def dictionary_encoded_columns(file: pq.ParquetFile) -> frozenset[str]:
    """Return the text columns that take less than a byte per value, which is the case only for few distinct values."""
    metadata = file.metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    columns: set[str] = set()
    for at in range(metadata.num_columns if groups else 0):
        name = metadata.schema.column(at).path
        if name not in file.schema_arrow.names or file.schema_arrow.field(name).type != pa.string():
            continue
        chunks = [group.column(at) for group in groups]
        if all(chunk.total_uncompressed_size <= max(chunk.num_values, 1024) for chunk in chunks):
            columns.add(name)
    return frozenset(columns)


def read_footer(source: Any) -> Footer:
    """Return Hudi's entries in the footer of a base file (path, buffer, random-access file or open ParquetFile)."""
    file = source if isinstance(source, pq.ParquetFile) else open_file(source, pre_buffer=False)
    return footer_of(file.metadata, read_schema(file))


def footer_of(metadata: pq.FileMetaData, schema: pa.Schema) -> Footer:
    """Return the footer of a file with these columns."""
    entries = dict(metadata.metadata or {})
    text = entries.get(base_file_footer.BLOOM_KEY.encode()) or entries.get(base_file_footer.OLD_BLOOM_KEY.encode())
    return Footer(
        num_rows=metadata.num_rows,
        schema=schema,
        avro_schema=base_file_footer.entry_text(entries, base_file_footer.AVRO_SCHEMA_KEY),
        min_key=base_file_footer.entry_text(entries, base_file_footer.MIN_KEY),
        max_key=base_file_footer.entry_text(entries, base_file_footer.MAX_KEY),
        bloom_type=base_file_footer.entry_text(entries, base_file_footer.BLOOM_TYPE_KEY),
        bloom_text=text,
        metadata=metadata,
    )


def nan_columns(metadata: Any) -> frozenset[str] | None:
    """Return the columns with NaN as noted in a footer (``pyarrow.parquet.FileMetaData``); None: unknown."""
    text = (metadata.metadata or {}).get(NAN_KEY.encode())
    try:
        return None if text is None else frozenset(map(str, json.loads(text)))
    except (ValueError, TypeError) as error:
        raise FormatError(f"footer entry {NAN_KEY!r} is not a list: {text!r}") from error


def row_bytes(metadata: pq.FileMetaData, columns: Collection[str]) -> float:
    """Return the average uncompressed bytes per row of these top-level columns. A repeated value counts as often as it
    is stored."""
    places = [i for i in range(metadata.num_columns) if metadata.schema.column(i).path.split(".")[0] in columns]
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    size = sum(group.column(i).total_uncompressed_size for group in groups for i in places)
    return float(size / max(metadata.num_rows, 1))


def has_int96(metadata: pq.FileMetaData) -> bool:
    """Return True if a file has 96-bit timestamps, which Spark's writer uses for all instants of a file."""
    return any(metadata.schema.column(i).physical_type == _INT96 for i in range(metadata.num_columns))


def row_count(source: Any) -> int:
    """Return the number of rows in the footer of a file."""
    return int(open_file(source, pre_buffer=False).metadata.num_rows)


def read_schema(file: pq.ParquetFile) -> pa.Schema:
    """Return the columns of a file as returned by `read_batches`: all nullable, 96-bit timestamps of other writers
    as instants, and vectors as such where the footer names them."""
    return schema_as_read(file.schema_arrow, file.metadata)


def schema_as_read(schema: pa.Schema, metadata: pq.FileMetaData) -> pa.Schema:
    """Return the columns of a file with this Arrow schema, as `read_schema`."""
    leaves: dict[str, list[bool]] = {}
    for i in range(metadata.num_columns):
        leaf = metadata.schema.column(i)
        leaves.setdefault(leaf.path.partition(".")[0], []).append(leaf.physical_type == _INT96)
    vectors = _vector_columns(metadata)
    fields = []
    for field in schema.remove_metadata():
        vector = vectors.get(field.name)
        if vector is not None and field.type == stored_type(vector):
            fields.append(pa.field(field.name, vector))
            continue
        wide = leaves.get(field.name, [])
        data_type = _with_instants(field.type, iter(wide)) if any(wide) else field.type
        fields.append(pa.field(field.name, _with_blobs(data_type)))
    return pa.schema(fields)


def _vector_columns(metadata: pq.FileMetaData) -> dict[str, pa.DataType]:
    text = (metadata.metadata or {}).get(FOOTER_KEY.encode())
    return {} if text is None else parse_vector_columns(text.decode("utf-8", "replace"))


def _with_blobs(data_type: pa.DataType) -> pa.DataType:
    """Return the type with blobs as such, as Arrow takes values of enums for bytes, and variants, whose fields may have
    the other order."""
    if data_type == BLOB_IN_FILES:
        return BLOB
    if has_variant_fields(data_type) and not any(field.nullable for field in data_type):
        return VARIANT
    return with_changed_children(data_type, lambda child: child.with_type(_with_blobs(child.type)))


def _with_instants(data_type: pa.DataType, wide: Iterator[bool]) -> pa.DataType:
    """Return the type with those leaves as instants that are 96-bit timestamps (``wide``, in the order of leaves)."""
    if pa.types.is_struct(data_type):
        return pa.struct(
            [data_type.field(i).with_type(_with_instants(data_type.field(i).type, wide)) for i in range(len(data_type))]
        )
    if pa.types.is_map(data_type):
        key = _with_instants(data_type.key_type, wide)
        return pa.map_(key, data_type.item_field.with_type(_with_instants(data_type.item_type, wide)))
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(_with_instants(data_type.value_type, wide)))
    return _INSTANT if next(wide) else data_type


def read_batches(
    source: Any,
    columns: Sequence[str] | None = None,
    *,
    batch_size: int = 65_536,
    row_groups: Sequence[int] | None = None,
    invalid_text: InvalidText = InvalidText.FAIL,
) -> Iterator[pa.RecordBatch]:
    """Read a base file as a stream of batches in row order. Memory is bounded by a few pages per column.

    ``columns`` are top-level names (None: all); those that the file does not have are omitted. Both list forms of
    Hudi's writers are returned as lists. ``invalid_text`` determines the treatment of text that is not valid UTF-8.

    Raises:
        FormatError: A page is corrupt, or text is not valid UTF-8.
    """
    file = source if isinstance(source, pq.ParquetFile) else open_file(source)
    schema = read_schema(file)
    selected = schema.names if columns is None else [name for name in columns if name in schema.names]
    with as_corruption("cannot read the Parquet file"):
        stored = file.iter_batches(batch_size=batch_size, columns=selected, row_groups=row_groups)
        yield from valid_text((as_read(batch, schema) for batch in stored), invalid_text)


def as_read(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch as read by Arrow with the types of `read_schema`."""
    if not batch.num_columns:
        return batch
    fields = [schema.field(name) for name in batch.schema.names]
    columns = [_cast(column, field) for column, field in zip(batch.columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    return vectors_of_bytes(column, field.type, field.name) if is_vector(field.type) else _as_type(column, field.type)


def _as_type(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    if is_like_nested(column.type, data_type):
        return convert_children(column, data_type, "", lambda child, target, _: _as_type(child, target))
    return column.cast(data_type)
