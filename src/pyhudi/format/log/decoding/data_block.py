"""Records of data blocks as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError, SchemaError
from pyhudi.format.base_file import parquet
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.format.hfile.hfile_reader import KEY_FIELD, HFileReader
from pyhudi.format.hfile.key_values import ENTRY_SCHEMA
from pyhudi.format.log.decoding.avro_block import HEAD_SIZE, ProbedRecords, count_framed, decode_avro, decode_framed
from pyhudi.format.log.decoding.avro_text import avro_table
from pyhudi.format.log.decoding.delete_block import decode_deletes
from pyhudi.format.log.log_block import BlockType, LogBlock
from pyhudi.format.range_reader import read_exactly


def decode_records(
    block: LogBlock, *, columns: Sequence[str] | None = None, invalid_text: InvalidText = InvalidText.FAIL
) -> pa.Table:
    """Return the records of a data block or change data block, in the order of the block.

    The schema is that of the block (its SCHEMA header) in the Arrow types of base files, including meta columns.
    ``columns`` selects and orders top-level columns; missing ones are omitted. ``invalid_text`` determines the
    treatment of text that is not valid UTF-8.

    Raises:
        FormatError: The block holds no records, or its content does not match its type and schema.
    """
    with _decoding(block):
        if block.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
            return _avro(block, columns, invalid_text)
        if block.type is BlockType.PARQUET_DATA:
            return _parquet(pa.py_buffer(block.content()), columns, invalid_text)
        if block.type is BlockType.HFILE_DATA:
            return _hfile(block, columns, invalid_text)
    raise FormatError(f"a block of type {block.type.name} holds no records")


Matches = Callable[[pa.Table], "pa.Array | None"]
"""Takes some columns of a block and gives the numbers of the rows that are wanted, ascending; None: all of them."""


def decode_matching(
    block: LogBlock,
    matches: Matches,
    probe: Sequence[str],
    *,
    columns: Sequence[str],
    invalid_text: InvalidText = InvalidText.FAIL,
) -> pa.Table:
    """Return some records of a data block, in the order of the block; see `decode_records`.

    Of records that do not match, only the ``probe`` columns are decoded if the format allows it.

    Raises:
        FormatError: The block is not a data block, or its content does not match its type and schema.
    """
    with _decoding(block):
        if block.type is BlockType.AVRO_DATA and block.is_sealed and block.schema is not None:
            return _matching_avro(
                block.content(), block.schema, matches, probe=probe, columns=columns, invalid_text=invalid_text
            )
        if block.type is BlockType.PARQUET_DATA:
            return _matching_parquet(pa.py_buffer(block.content()), matches, probe, columns, invalid_text)
    # Without checksums, the whole block must be decoded to detect damage.
    table = decode_records(block, columns=list(dict.fromkeys((*columns, *probe))), invalid_text=invalid_text)
    return _take_matches(table, matches, probe, columns)


def _take_matches(table: pa.Table, matches: Matches, probe: Sequence[str], columns: Sequence[str]) -> pa.Table:
    matching = matches(table.select([name for name in probe if name in table.column_names]))
    table = table.select([name for name in columns if name in table.column_names])
    return _take_rows(table, matching)


def _take_rows(table: pa.Table, matching: pa.Array | None) -> pa.Table:
    """Rows by their numbers, which need not have columns."""
    if matching is None:
        return table
    return table.take(matching) if table.num_columns else table.slice(0, len(matching))


@contextmanager
def _decoding(block: LogBlock) -> Iterator[None]:
    """Context manager for decoding a block: errors name it."""
    try:
        with as_corruption(f"the {block.type.name} block at offset {block.offset} cannot be read"):
            yield
    except SchemaError as error:
        raise FormatError(
            f"the {block.type.name} block at offset {block.offset} has a broken schema: {error}"
        ) from error


def _matching_avro(
    content: memoryview,
    schema: str,
    matches: Matches,
    *,
    probe: Sequence[str],
    columns: Sequence[str],
    invalid_text: InvalidText,
) -> pa.Table:
    """Records of a content that is known to be whole; text that is not UTF-8 matters in those that are wanted."""
    try:
        probed = ProbedRecords.from_block(content, schema, probe)
    except FormatError:  # if it is text that is not UTF-8, it may be replaced
        table = avro_table(lambda text: decode_avro(content, text, trusted=True), schema, invalid_text)
        return _take_matches(table, matches, probe, columns)
    matching = matches(probed.columns)
    if matching is None:
        return avro_table(lambda text: decode_avro(content, text, columns, trusted=True), schema, invalid_text)
    numbers = matching.to_numpy().astype(np.int64)
    return avro_table(lambda text: probed.decode(numbers, text, columns), schema, invalid_text)


def _matching_parquet(
    content: pa.Buffer, matches: Matches, probe: Sequence[str], columns: Sequence[str], invalid_text: InvalidText
) -> pa.Table:
    matching = matches(_parquet(content, probe, invalid_text))
    table = _parquet(content, columns, invalid_text, is_empty=matching is not None and not len(matching))
    return _take_rows(table, matching)


def count_records(block: LogBlock) -> int:
    """Return the number of records or deletes of a block, decoding as little as possible.

    Raises:
        FormatError: The block holds no records, or is corrupt.
    """
    if block.type is BlockType.AVRO_DATA:
        return count_framed(read_exactly(block.source, block.content_offset, min(block.content_length, HEAD_SIZE)))
    if block.type is BlockType.PARQUET_DATA:
        return parquet.row_count(pa.BufferReader(pa.py_buffer(block.content())))
    if block.type is BlockType.DELETE:
        return decode_deletes(block, pa.schema([])).num_rows  # type: ignore[no-any-return]
    return decode_records(block).num_rows  # type: ignore[no-any-return]


def _avro(block: LogBlock, columns: Sequence[str] | None, invalid_text: InvalidText) -> pa.Table:
    if block.schema is None:
        raise FormatError(f"the {block.type.name} block at offset {block.offset} has no schema")
    content = block.content()
    return avro_table(
        lambda text: decode_avro(content, text, columns, trusted=block.is_sealed), block.schema, invalid_text
    )


def _hfile(block: LogBlock, columns: Sequence[str] | None, invalid_text: InvalidText) -> pa.Table:
    """Return the Avro values of an HFile in key order. Writers leave the field ``key`` empty; it is filled here."""
    reader = HFileReader(block.content())
    schema = block.schema or reader.schema
    if schema is None:
        raise FormatError(f"the HFILE_DATA block at offset {block.offset} has no schema")
    entries = pa.Table.from_batches(reader.batches(), ENTRY_SCHEMA).combine_chunks()
    values = contiguous(entries["value"])
    table = avro_table(lambda text: decode_values(values, text, columns), schema, invalid_text)
    if KEY_FIELD in table.column_names and pa.types.is_string(table.schema.field(KEY_FIELD).type):
        at = table.schema.get_field_index(KEY_FIELD)
        table = table.set_column(at, table.schema.field(at), entries["key"].cast(pa.string()))
    return table


def decode_values(values: pa.BinaryArray, schema: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the Avro records in a binary array, in its order; see `decode_records`.

    Raises:
        FormatError: A value is not such a record.
    """
    sizes = pc.binary_length(values).to_numpy().astype(">i4")
    prefixes = pa.Array.from_buffers(
        pa.binary(),
        len(values),
        [None, pa.py_buffer(np.arange(0, 4 * len(values) + 4, 4, dtype=np.int32)), pa.py_buffer(sizes)],
    )
    joined = pc.binary_join_element_wise(prefixes, values, b"")
    data = joined.buffers()[2]
    return decode_framed(memoryview(data or b"").cast("B"), len(values), schema, columns)


def _parquet(
    content: pa.Buffer, columns: Sequence[str] | None, invalid_text: InvalidText, *, is_empty: bool = False
) -> pa.Table:
    """The records of a Parquet file; none of them where ``is_empty``, with its columns."""
    file = parquet.open_file(pa.BufferReader(content), pre_buffer=False)
    schema = parquet.read_schema(file)
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns if name in schema.names])
    if is_empty:
        return schema.empty_table()
    batches = list(parquet.read_batches(file, columns, invalid_text=invalid_text))
    return pa.Table.from_batches([batch.select(schema.names) for batch in batches]) if batches else schema.empty_table()
