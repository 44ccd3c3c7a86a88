"""Fields of the footer of a Parquet file, in Thrift's compact protocol.

Field numbers are those of parquet.thrift of Apache Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyhudi.format.base_file.thrift_footer.thrift_compact import (
    Struct,
    ThriftList,
    ThriftType,
    Value,
    from_int,
    read_struct,
    to_int,
    write_struct,
)

# file metadata
SCHEMA, NUM_ROWS, ROW_GROUPS, ENTRIES, CREATED_BY, COLUMN_ORDERS, ENCRYPTION = 2, 3, 4, 5, 6, 7, 8
# schema element
TYPE, LENGTH, REPETITION, NAME, CHILDREN, CONVERTED, SCALE, PRECISION, LOGICAL = 1, 2, 3, 4, 5, 6, 7, 8, 10
PHYSICAL = (TYPE, LENGTH, REPETITION, NAME, CHILDREN, CONVERTED, SCALE, PRECISION)
BYTE_ARRAY, OPTIONAL = 6, 1
# row group
COLUMNS, GROUP_PLAIN, GROUP_ROWS, SORTING_COLUMNS, GROUP_OFFSET, GROUP_SIZE, ORDINAL = 1, 2, 3, 4, 5, 6, 7
# column chunk
CHUNK_OFFSET, META_DATA, OFFSET_INDEX, COLUMN_INDEX, CRYPTO = 2, 3, (4, 5), (6, 7), (8, 9)
# column metadata
PATH, PLAIN_SIZE, SIZE, DATA_OFFSET, INDEX_OFFSET, DICTIONARY_OFFSET, BLOOM = 3, 6, 7, 9, 10, 11, (14, 15)
PAGE_OFFSETS = (DATA_OFFSET, INDEX_OFFSET, DICTIONARY_OFFSET)
# offset index
PAGES, PAGE_OFFSET = 1, 1
_MAX_ORDINALS = 0x7FFF

ColumnPath = tuple[bytes, ...]
"""Names from a top-level column to the leaf."""


def column_path(chunk: Struct) -> ColumnPath:
    """Return the path of the column of a chunk."""
    return tuple(chunk[META_DATA].data[PATH].data.values)


def schema_columns(footer: Struct) -> tuple[list[Struct], Value | None]:
    """Return the columns of a schema and their order; the name of the schema itself differs between writers."""
    return footer[SCHEMA].data.values[1:], footer.get(COLUMN_ORDERS)


def key_value_entries(footer: Struct) -> dict[bytes, bytes]:
    """Return the entries of a footer that writers add, without those that have no value."""
    entries = footer[ENTRIES].data.values if ENTRIES in footer else ()
    return {one[1].data: one[2].data for one in entries if 2 in one}


def column_chunks(footer: Struct) -> Iterator[Struct]:
    """Yield the column chunks of all row groups."""
    for group in footer[ROW_GROUPS].data.values:
        yield from group[COLUMNS].data.values


def chunk_span(chunk: Struct) -> tuple[int, int]:
    """Return start and end of a chunk."""
    meta: Struct = chunk[META_DATA].data
    start = min(offset for field in PAGE_OFFSETS if (offset := number_of(meta, field)))
    return start, start + to_int(meta[SIZE])


def index_spans(chunk: Struct) -> Iterator[tuple[int, int]]:
    """Yield offset and length of the page indexes of a chunk."""
    for offset, length in (COLUMN_INDEX, OFFSET_INDEX):
        if offset in chunk and length in chunk:
            yield to_int(chunk[offset]), to_int(chunk[length])


def moved_pages(data: bytes, delta: int) -> bytes:
    """Return an offset index with shifted pages."""
    index = read_struct(data)
    pages = index[PAGES].data
    moved = [{**p, PAGE_OFFSET: from_int(ThriftType.I64, to_int(p[PAGE_OFFSET]) + delta)} for p in pages.values]
    return encoded({**index, PAGES: Value(ThriftType.LIST, ThriftList(pages.kind, moved))})


def top_level_elements(schema: list[Struct]) -> Iterator[tuple[bytes, list[Struct]]]:
    """Yield the top-level columns of a schema, which is a list of tree nodes in pre-order, each with its own nodes."""
    at = 1
    while at < len(schema):
        begin, open_nodes = at, 1
        while open_nodes:
            open_nodes += (number_of(schema[at], CHILDREN) or 0) - 1
            at += 1
        yield schema[begin][NAME].data, schema[begin:at]


def number_of(fields: Struct, field: int) -> int | None:
    """Return a number; None: the field is missing."""
    return to_int(fields[field]) if field in fields else None


def text_of(fields: Struct, field: int) -> str:
    """Return a text, empty if the field is missing."""
    return fields[field].data.decode() if field in fields else ""


def encoded(fields: Struct) -> bytes:
    """Return the bytes of a struct, whose fields are written in the order of their numbers."""
    return write_struct(dict(sorted(fields.items())))


def have_same_form(one: Struct, other: Struct) -> bool:
    """Return True if two elements of schemas describe the same bytes. Old writers omit the logical type."""
    names = (*PHYSICAL, *((LOGICAL,) if LOGICAL in one and LOGICAL in other else ()))
    return all(one.get(name) == other.get(name) for name in names)


def with_ordinal(group: Struct, number: int) -> Struct:
    """Return the entry of a row group with its number in the file, which has two bytes."""
    if number > _MAX_ORDINALS:
        return {field: value for field, value in group.items() if field != ORDINAL}
    return {**group, ORDINAL: from_int(ThriftType.I16, number)}


def is_encrypted(footer: Struct) -> bool:
    """Return True if columns of a file are encrypted."""
    return ENCRYPTION in footer or any(set(CRYPTO) & chunk.keys() for chunk in column_chunks(footer))
