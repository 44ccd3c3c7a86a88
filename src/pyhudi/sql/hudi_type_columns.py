"""Types in the column list of a statement in a form that a schema of Spark can have: VECTOR, BLOB and VARIANT of Apache
Hudi, and VARCHAR and CHAR."""

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
_CHARACTER_TYPES = frozenset({"VARCHAR", "CHAR", "CHARACTER"})
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


def with_string_types(columns: str) -> str:
    """Return a list of columns with ``STRING`` in place of ``VARCHAR(n)`` and ``CHAR(n)``.

    >>> with_string_types("id INT, n VARCHAR(3)")
    'id INT, n STRING'
    """
    if "CHAR" not in columns.upper():
        return columns
    cursor = Cursor(columns)
    cuts: list[tuple[int, int]] = []
    while not cursor.done:
        start = cursor.at
        if cursor.word() in _CHARACTER_TYPES and cursor.word(1) == "(" and cursor.kind(2) == "NUMBER":
            cursor.at += 1
            cursor.parenthesized()
            cuts.append((cursor.tokens[start].start, cursor.tokens[cursor.at - 1].end + 1))
        else:
            cursor.at += 1
    for begin, end in reversed(cuts):
        columns = f"{columns[:begin]}STRING{columns[end:]}"
    return columns


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
