"""Content of data blocks: Arrow rows as framed Avro records, as a Parquet file, or as an HFile."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.format.avro.encoder import encode_records
from pyhudi.format.avro.type_tree import record_type
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter, ParquetOptions
from pyhudi.format.hfile.hfile_reader import KEY_FIELD
from pyhudi.format.hfile.hfile_writer import write_hfile
from pyhudi.format.log.block_framing import Buffer
from pyhudi.schema.meta_fields import RECORD_KEY

CONTENT_VERSION = 3
"""Content version of Avro blocks, as written by all releases since 0.10."""
_SLICE_BYTES = 16 * 1024 * 1024
"""Arrow bytes of the rows that are encoded at once, so that intermediate data fit into the processor's caches."""


def encode_avro(
    rows: pa.Table,
    schema: str,
    constants: Mapping[str, str | None] | None = None,
    *,
    slice_bytes: int = _SLICE_BYTES,
) -> Iterator[tuple[int, memoryview]]:
    """Yield framed records with their numbers of rows, in order; `avro_content` combines them to contents.

    ``constants`` are fields with the same text (or null) in every row, which need not be columns of the rows.
    ``slice_bytes`` are approximately the Arrow bytes of the rows that are encoded at once.

    Raises:
        FormatError: The rows do not match the schema.
    """
    record = record_type(schema)
    step = max(1, int(rows.num_rows * slice_bytes / max(1, rows.nbytes)))
    for start in range(0, rows.num_rows, step):
        part = rows.slice(start, step)
        columns = {name: contiguous(part[name]) for name in part.column_names}
        values = encode_records(record, columns, part.num_rows, constants, prefixed=True)
        yield part.num_rows, _data(values)


def avro_content(parts: Sequence[tuple[int, memoryview]]) -> list[Buffer]:
    """Return the content of an AVRO_DATA or CDC_DATA block."""
    count = sum(rows for rows, _ in parts)
    return [struct.pack(">ii", CONTENT_VERSION, count), *(data for _, data in parts)]


def parquet_content(
    rows: pa.Table, schema: str, options: ParquetOptions, constants: Mapping[str, str | None] | None
) -> list[Buffer]:
    """Return the content of a PARQUET_DATA block: a whole Parquet file with the columns of the Avro schema."""
    columns = record_type(schema).arrow
    sink = pa.BufferOutputStream()
    layout = BaseFileSchema(pa.schema(list(columns)), schema, constants or {})
    with ParquetFileWriter(sink, layout, options=options) as writer:
        writer.write(rows)
    return [memoryview(sink.getvalue())]


def hfile_content(rows: pa.Table, schema: str, constants: Mapping[str, str | None] | None) -> list[Buffer]:
    """Return the content of an HFILE_DATA block: Avro records by record key, in key order.

    The key is the record key, or the field ``key`` if records have none (metadata table); that field is stored empty,
    because the key has its text.

    Raises:
        FormatError: Keys are null or not unique.
    """
    record = record_type(schema)
    if KEY_FIELD in rows.column_names and (RECORD_KEY not in rows.column_names or rows[RECORD_KEY].null_count):
        keys = rows[KEY_FIELD]
    else:
        keys = rows[RECORD_KEY]
    # Arrow sorts text by its bytes.
    order = pc.sort_indices(keys.cast(pa.binary()))
    table = rows.take(order)
    columns = {name: contiguous(table[name]) for name in table.column_names}
    if any(name == KEY_FIELD for name, _ in record.fields):
        columns.pop(KEY_FIELD, None)
        constants = {**(constants or {}), KEY_FIELD: ""}
    values = encode_records(record, columns, table.num_rows, constants)
    return [write_hfile(contiguous(keys.take(order)), values, schema=schema)]


def _data(values: pa.BinaryArray) -> memoryview:
    """Return the concatenated bytes of all values."""
    offsets = memoryview(values.buffers()[1]).cast("i")
    data = values.buffers()[2]
    start, end = offsets[values.offset], offsets[values.offset + len(values)]
    return memoryview(data).cast("B")[start:end] if data is not None else memoryview(b"")
