"""Columns of the types VECTOR, BLOB and VARIANT in the column list of a statement, in a form that Spark can parse."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.schema.logical_types.blobs import BLOB, BLOB_SQL
from pyhudi.schema.logical_types.variants import VARIANT, VARIANT_SQL
from pyhudi.schema.logical_types.vectors import parse_vector
from pyhudi.sql.token_cursor import Cursor

_FORMS = {
    pa.list_(pa.float32()): "ARRAY<FLOAT>",
    pa.list_(pa.float64()): "ARRAY<DOUBLE>",
    pa.list_(pa.int8()): "ARRAY<TINYINT>",
}
_OPENING, _CLOSING = {"(": 1, "<": 1}, {")": 1, ">": 1, ">>": 2}


def without_hudi_types(columns: str, *, variants: bool = True) -> tuple[str, dict[str, pa.DataType]]:
    """Return a list of columns with arrays in place of vectors and structs in place of blobs and variants, and the
    types of these columns by name.

    Args:
        columns: Names and types as SQL.
        variants: Spark does not have variants; otherwise they are left as they are.

    >>> without_hudi_types("id INT, v VECTOR(3)")[0]
    'id INT, v ARRAY<FLOAT>'

    Raises:
        SchemaError: The type of a vector is not valid.
    """
    cursor = Cursor(columns)
    types: dict[str, pa.DataType] = {}
    cuts: list[tuple[int, int, str]] = []
    depth = 0
    column, begins = "", True  # the column whose type comes next; whether the name of a column does
    while not cursor.done:
        start = cursor.at
        hudi_type = _taken(cursor, variants=variants) if column and not cursor.sees(":") else None
        if hudi_type is not None:
            types[column], form = hudi_type
            cuts.append((cursor.tokens[start].start, cursor.tokens[cursor.at - 1].end + 1, form))
            column = ""
            continue
        if begins or not cursor.sees(":"):
            column = cursor.tokens[start].text if begins else ""
        begins = not depth and cursor.sees(",")
        depth += _OPENING.get(cursor.word(), 0) - _CLOSING.get(cursor.word(), 0)
        cursor.at += 1
    for begin, end, form in reversed(cuts):
        columns = columns[:begin] + form + columns[end:]
    return columns, types


def _taken(cursor: Cursor, *, variants: bool) -> tuple[pa.DataType, str] | None:
    """Consume a type of Apache Hudi that comes next; returns it with its form for Spark."""
    if cursor.sees("VECTOR", "("):
        start = cursor.at
        cursor.at += 1
        cursor.parenthesized()
        kind = parse_vector(cursor.slice(start, cursor.at))
        assert kind is not None
        return kind, _FORMS[pa.list_(kind.value_type)]
    if cursor.take("BLOB"):
        return BLOB, BLOB_SQL
    return (VARIANT, VARIANT_SQL) if variants and cursor.take("VARIANT") else None
