"""Content of AVRO_DATA and CDC_DATA blocks::

    int32 content version, 1 to 3
    int32 number of records
    per record: int32 length, then that many bytes of Avro binary

Version 0, of releases before 0.5, had no number of records. The records can be decoded as consecutive Avro data in
which every record starts with a fixed field of four bytes, its length, so they need not be split first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.avro.binary_layout import PREFIX_FIELD, record_layout
from pyhudi.format.avro.decoder import RecordProjection, decode_columns, has_fast_decoder
from pyhudi.format.avro.type_tree import is_exact, record_type
from pyhudi.format.binary_gather import gather
from pyhudi.format.log.encoding.data_block_encoder import encode_avro

_INT = struct.Struct(">i")
_HEAD = struct.Struct(">ii")
HEAD_SIZE = _HEAD.size
"""Bytes before the records."""
PREFIX = 4
"""Bytes of the length before each record."""


def records_of(content: memoryview) -> tuple[memoryview, int]:
    """Return the framed records of a block's content and their number.

    Raises:
        FormatError: The content version is unknown, or the number of records is impossible.
    """
    count = count_framed(content)
    body = content[_HEAD.size :]
    if not 0 <= count <= len(body) // PREFIX:
        raise FormatError(f"Avro data block of {len(content)} bytes cannot have {count} records")
    return body, count


def count_framed(content: memoryview) -> int:
    """Return the number of records in the head of a content, of which at least `HEAD_SIZE` bytes are given.

    Raises:
        FormatError: The content version is unknown, or there are too few bytes.
    """
    if len(content) < HEAD_SIZE:
        raise FormatError(f"Avro data block of {len(content)} bytes is too short")
    version, count = _HEAD.unpack_from(content)
    if not 1 <= version <= 3:
        raise FormatError(f"an Avro data block has content version {version}; versions 1 to 3 are supported")
    return int(count)


def avro_datums(content: memoryview) -> Iterator[memoryview]:
    """Yield the Avro-encoded records of a block's content one by one.

    Raises:
        FormatError: The content version is unknown, or a record extends beyond the end.
    """
    body, count = records_of(content)
    pos = 0
    for number in range(count):
        if pos + PREFIX > len(body):
            raise FormatError(f"Avro data block ends before record {number} of {count}")
        (length,) = _INT.unpack_from(body, pos)
        pos += PREFIX
        if length < 0 or pos + length > len(body):
            raise FormatError(f"record {number} of {count} extends beyond the end of its Avro data block")
        yield body[pos : pos + length]
        pos += length


def decode_avro(
    content: memoryview,
    schema: str,
    columns: Sequence[str] | None = None,
    *,
    fast: bool = True,
    trusted: bool = False,
) -> pa.Table:
    """Return the records of a block with the Arrow schema of its Avro schema; ``columns`` selects and orders.

    Decoders do not check everything and may return wrong values for corrupt records. Therefore the records are encoded
    again and compared with the content, whose encoding is unique, unless it is ``trusted`` already.

    Raises:
        FormatError: The content does not match its schema.
    """
    body, count = records_of(content)
    if trusted or not is_exact(record_type(schema)):
        return decode_framed(body, count, schema, columns, fast=fast)
    table = decode_framed(body, count, schema, fast=fast)
    at = 0
    for _, part in encode_avro(table, schema):
        if part != body[at : at + len(part)]:
            raise FormatError(f"the {count} records of an Avro data block are not in canonical Avro encoding")
        at += len(part)
    return table if columns is None else table.select([name for name in columns if name in table.column_names])


@dataclass(frozen=True, slots=True)
class ProbedRecords:
    """Some columns of all records of a block, and where the records are in its content: ``starts`` has one more, where
    the last one ends. See `decode_avro`; the content is trusted."""

    columns: pa.Table
    body: memoryview
    starts: npt.NDArray[np.int64]

    @classmethod
    def from_block(cls, content: memoryview, schema: str, columns: Sequence[str]) -> ProbedRecords:
        """Decode the columns.

        Raises:
            FormatError: The content does not match its schema.
        """
        body, count = records_of(content)
        table, starts = _decode(body, count, schema, columns, fast=True)
        return cls(table, body, starts)

    def decode(self, rows: npt.NDArray[np.int64], schema: str, columns: Sequence[str]) -> pa.Table:
        """Return the records of these ascending numbers.

        Raises:
            FormatError: A record does not match the schema.
        """
        starts = self.starts[rows]
        sizes = self.starts[rows + 1] - starts
        chosen = gather(np.frombuffer(self.body, np.uint8), starts, sizes)
        data = memoryview(chosen.buffers()[2] or b"").cast("B")[: int(sizes.sum())]
        return decode_framed(data, len(rows), schema, columns)


def decode_framed(
    body: memoryview, count: int, schema: str, columns: Sequence[str] | None = None, *, fast: bool = True
) -> pa.Table:
    """Return ``count`` records of which each stands behind its length, without much of a check; see `decode_avro`."""
    return _decode(body, count, schema, columns, fast=fast)[0]


def _decode(
    body: memoryview, count: int, schema: str, columns: Sequence[str] | None, *, fast: bool
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The records, and where in the body they start; the last of the places is where they end."""
    layout = record_layout(schema)
    fields = layout.select_fields(columns)
    fast = fast and layout.is_simple and has_fast_decoder()
    # In polars, float is the cheapest type of four bytes and preserves them.
    prefix: Any = "float" if fast else {"type": "fixed", "name": "prefix", "size": PREFIX}
    projections = {name: RecordProjection(node.raw, node.unwrap) for name, _, node in fields if node is not None}
    projections[PREFIX_FIELD] = RecordProjection(pa.float32() if fast else pa.binary())
    raw = decode_columns(layout.avro(prefix), body, count, projections, fast=fast)
    starts = _starts(body, raw.pop(PREFIX_FIELD))
    arrays = [pa.nulls(count) if node is None else node.restore(raw[name]) for name, _, node in fields]
    if not arrays:
        return pa.table([pa.nulls(count)], [PREFIX_FIELD]).select([]), starts  # has the number of rows
    return pa.Table.from_arrays(arrays, schema=pa.schema([field for _, field, _ in fields])), starts


def _starts(body: memoryview, prefixes: pa.Array) -> npt.NDArray[np.int64]:
    """Return the starts of records, checked against their lengths: a decoder that lost its way has read others.

    ``prefixes`` are the lengths that a decoder has read before each record.

    Raises:
        FormatError: The lengths do not match.
    """
    read = np.frombuffer(prefixes.buffers()[-1] or b"", ">i4", len(prefixes))
    starts = np.zeros(len(read) + 1, np.int64)
    np.cumsum(read.astype(np.int64) + PREFIX, out=starts[1:])
    if (len(read) and int(read.min()) < 0) or int(starts[-1]) != len(body):
        raise FormatError(f"the {len(read)} records of an Avro data block do not fill its {len(body)} bytes")
    stored = np.frombuffer(body, np.uint8)[starts[:-1, None] + np.arange(PREFIX)]
    if not np.array_equal(stored.view(">i4")[:, 0] if len(stored) else read, read):
        raise FormatError(f"one of {len(read)} records of an Avro data block differs from its recorded length")
    return starts
