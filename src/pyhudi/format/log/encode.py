"""Contents of data blocks: Arrow rows as framed Avro records, or as a Parquet file."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from pyhudi.format.avroencode import encode_records
from pyhudi.format.avrotypes import record_type
from pyhudi.format.log.avroblock import CONTENT_VERSION
from pyhudi.format.log.frame import Buffer
from pyhudi.format.parquet import BaseFileWriter, ParquetOptions

_SLICE_BYTES = 16 * 1024 * 1024
"""Arrow bytes of the rows that are encoded at once; what is worked on stays in the processor's caches."""


def encode_avro(
    rows: pa.Table,
    schema: str,
    constants: Mapping[str, str | None] | None = None,
    *,
    slice_bytes: int = _SLICE_BYTES,
) -> Iterator[tuple[int, memoryview]]:
    """Yield numbers of rows with their framed records, in order; `avro_content` makes contents of them.

    ``constants`` are fields that have the same text (or null) in every row, and need not be columns of the rows;
    ``slice_bytes`` are about the Arrow bytes of the rows that are encoded at once.

    Raises:
        FormatError: rows and schema do not fit.
    """
    record = record_type(schema)
    step = max(1, int(rows.num_rows * slice_bytes / max(1, rows.nbytes)))
    for start in range(0, rows.num_rows, step):
        part = rows.slice(start, step)
        columns = {name: _flat(part[name]) for name in part.column_names}
        values = encode_records(record, columns, part.num_rows, constants, prefixed=True)
        yield part.num_rows, _data(values)


def avro_content(parts: Sequence[tuple[int, memoryview]]) -> list[Buffer]:
    """Return the content of an AVRO_DATA or CDC_DATA block."""
    count = sum(rows for rows, _ in parts)
    return [struct.pack(">ii", CONTENT_VERSION, count), *(data for _, data in parts)]


def parquet_content(
    rows: pa.Table, schema: str, options: ParquetOptions, constants: Mapping[str, str | None] | None = None
) -> list[Buffer]:
    """Return the content of a PARQUET_DATA block: a whole Parquet file, in the columns of the Avro schema."""
    columns = record_type(schema).arrow
    sink = pa.BufferOutputStream()
    writer = BaseFileWriter(
        sink, pa.schema(list(columns)), avro_schema=schema, options=options, constants=constants, bloom=None
    )
    with writer:
        writer.write(rows)
    return [memoryview(sink.getvalue())]


def _data(values: pa.BinaryArray) -> memoryview:
    """The bytes of all values, one after another."""
    offsets = memoryview(values.buffers()[1]).cast("i")
    data = values.buffers()[2]
    start, end = offsets[values.offset], offsets[values.offset + len(values)]
    return memoryview(data)[start:end] if data is not None else memoryview(b"")


def _flat(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)
