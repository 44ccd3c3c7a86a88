"""Types in the column list of a statement in a form that a schema of Spark can have: VECTOR, BLOB and VARIANT of Apache
Hudi, and VARCHAR and CHAR."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.schema.logical_types.blobs import BLOB, BLOB_SQL
from pyhudi.schema.logical_types.variants import VARIANT, VARIANT_SQL
from pyhudi.schema.logical_types.vectors import parse_vector
from pyhudi.sql.text_edits import TextEdit, with_edits
from pyhudi.sql.token_cursor import Cursor

_FORMS = {
    pa.list_(pa.float32()): "ARRAY<FLOAT>",
    pa.list_(pa.float64()): "ARRAY<DOUBLE>",
    pa.list_(pa.int8()): "ARRAY<TINYINT>",
}
_CHARACTER_TYPES = frozenset({"VARCHAR", "CHAR", "CHARACTER"})
_OPENING, _CLOSING = {"(": 1, "<": 1}, {")": 1, ">": 1, ">>": 2, ">>>": 3}
Path = tuple[str, ...]
"""Name of a column, and the names of the fields that lead to one inside of it."""


def without_hudi_types(columns: str, *, variants: bool = True) -> tuple[str, dict[Path, pa.DataType]]:
    """Return a list of columns with arrays in place of vectors and structs in place of blobs and variants, and the
    types of these columns by name. Blobs may also be fields of structs.

    Args:
        columns: Names and types as SQL.
        variants: Spark does not have variants; otherwise they are left as they are.

    >>> without_hudi_types("id INT, v VECTOR(3)")[0]
    'id INT, v ARRAY<FLOAT>'

    Raises:
        SchemaError: The type of a vector is not valid.
    """
    cursor = Cursor(columns)
    types: dict[Path, pa.DataType] = {}
    edits: list[TextEdit] = []
    lists = [_FieldList(())]  # Brackets that are open, with the list of columns first.
    while not cursor.done:
        fields, start = lists[-1], cursor.at
        if fields.type_follows and not cursor.sees(":"):
            hudi_type = _taken(cursor, nested=len(lists) > 1, variants=variants)
            if hudi_type is not None:
                types[fields.path], form = hudi_type
                edits.append(TextEdit.of_tokens(cursor.tokens[start], cursor.tokens[cursor.at - 1], form))
                fields.type_follows = False
                continue
        _pass(cursor, lists)
    return with_edits(columns, edits), types


def with_string_types(columns: str) -> str:
    """Return a list of columns with ``STRING`` in place of ``VARCHAR(n)`` and ``CHAR(n)``.

    >>> with_string_types("id INT, n VARCHAR(3)")
    'id INT, n STRING'
    """
    if "CHAR" not in columns.upper():
        return columns
    cursor = Cursor(columns)
    edits: list[TextEdit] = []
    while not cursor.done:
        start = cursor.at
        if cursor.word() in _CHARACTER_TYPES and cursor.word(1) == "(" and cursor.kind(2) == "NUMBER":
            cursor.at += 1
            cursor.parenthesized()
            edits.append(TextEdit.of_tokens(cursor.tokens[start], cursor.tokens[cursor.at - 1], "STRING"))
        else:
            cursor.at += 1
    return with_edits(columns, edits)


@dataclass(slots=True)
class _FieldList:
    """Columns, fields of a struct, or what other brackets enclose.

    Attributes:
        parent: Path of the struct; None: these are no fields that can have types of Apache Hudi.
        path: Path of the current field.
        name_follows: The name of a field comes next.
        type_follows: Its type does.
    """

    parent: Path | None
    path: Path = ()
    name_follows: bool = True
    type_follows: bool = False


def _pass(cursor: Cursor, lists: list[_FieldList]) -> None:
    """Pass a token: a name, a bracket, or a part of another type, constraint or comment."""
    fields, word = lists[-1], cursor.word()
    if fields.parent is not None and fields.name_follows:
        fields.path = (*fields.parent, cursor.tokens[cursor.at].text)
        fields.name_follows, fields.type_follows = False, True
    elif word in _OPENING:
        is_struct = word == "<" and cursor.word(-1) == "STRUCT" and fields.parent is not None
        lists.append(_FieldList(fields.path if is_struct else None))
    elif word in _CLOSING:
        del lists[max(1, len(lists) - _CLOSING[word]) :]
    elif word == ",":
        fields.name_follows = True
    elif word != ":":
        fields.type_follows = False
    cursor.at += 1


def _taken(cursor: Cursor, *, nested: bool, variants: bool) -> tuple[pa.DataType, str] | None:
    """Consume a type of Apache Hudi that comes next; returns it with its form for Spark."""
    if cursor.take("BLOB"):
        return BLOB, BLOB_SQL
    if nested:
        return None
    if cursor.sees("VECTOR", "("):
        start = cursor.at
        cursor.at += 1
        cursor.parenthesized()
        kind = parse_vector(cursor.slice(start, cursor.at))
        assert kind is not None
        return kind, _FORMS[pa.list_(kind.value_type)]
    return (VARIANT, VARIANT_SQL) if variants and cursor.take("VARIANT") else None
