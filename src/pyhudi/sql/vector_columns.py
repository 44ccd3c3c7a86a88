"""Columns of the type VECTOR in the column list of a statement, in a form that Spark's parser knows."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.schema.vectors import parse_vector
from pyhudi.sql.token_cursor import Cursor

_ARRAYS = {pa.float32(): "ARRAY<FLOAT>", pa.float64(): "ARRAY<DOUBLE>", pa.int8(): "ARRAY<TINYINT>"}
_OPENING, _CLOSING = {"(": 1, "<": 1}, {")": 1, ">": 1, ">>": 2}


def without_vectors(columns: str) -> tuple[str, dict[str, pa.DataType]]:
    """Return a list of columns with arrays in place of vectors, and the types of the vectors by column.

    >>> without_vectors("id INT, v VECTOR(3)")[0]
    'id INT, v ARRAY<FLOAT>'

    Raises:
        SchemaError: The type of a vector is not valid.
    """
    cursor = Cursor(columns)
    vectors: dict[str, pa.DataType] = {}
    cuts: list[tuple[int, int, str]] = []
    depth = 0
    while not cursor.done:
        if not depth and cursor.at and cursor.word() == "VECTOR" and cursor.sees("VECTOR", "("):
            start, column = cursor.at, cursor.tokens[cursor.at - 1].text
            cursor.at += 1
            cursor.parenthesized()
            kind = parse_vector(cursor.slice(start, cursor.at))
            assert kind is not None
            vectors[column] = kind
            cuts.append((cursor.tokens[start].start, cursor.tokens[cursor.at - 1].end + 1, _ARRAYS[kind.value_type]))
            continue
        depth += _OPENING.get(cursor.word(), 0) - _CLOSING.get(cursor.word(), 0)
        cursor.at += 1
    for start, end, text in reversed(cuts):
        columns = columns[:start] + text + columns[end:]
    return columns, vectors
