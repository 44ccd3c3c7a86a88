"""Resolution of column names.

Spark compares names by their lower-case forms, unless ``spark.sql.caseSensitive`` is set, and so does pyhudi. Unicode's
case folding is another relation: it equates ``ß`` and ``ss``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, TypeVar

import pyarrow as pa

T = TypeVar("T")


def matches_ignoring_case(name: str, names: Iterable[str]) -> list[str]:
    """Return those of the names that differ from a name at most in case."""
    lower = name.lower()
    return [other for other in names if other.lower() == lower]


def resolve_name(name: str, names: Iterable[str], *, case_sensitive: bool = False) -> str | None:
    """Return the name to which a name resolves: the same, or else the only one that differs in case alone.

    Returns:
        None if there is none, or if several differ in case alone.
    """
    candidates = list(names)
    if name in candidates:
        return name
    near = [] if case_sensitive else matches_ignoring_case(name, candidates)
    return near[0] if len(near) == 1 else None


def top_column(name: str, names: Container[str]) -> str:
    """Return the top-level column of a field: the name itself if it is one of the columns, which may have dots, else
    the first step of the dotted path into structs."""
    return name if name in names else name.partition(".")[0]


def resolve_path(name: str, schema: pa.Schema, *, case_sensitive: bool = False) -> list[str] | None:
    """Return the path to a column: its name, which may have dots, or the steps of a dotted path into structs.

    Returns:
        None if the schema has no such column.
    """
    return resolve_nested(name, pa.struct(list(schema)), _struct_fields, case_sensitive=case_sensitive)


def field_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    """Return the type of a column by its name, which may have dots, or of a field by its dotted path into structs.

    Returns:
        None if the schema has no such column.
    """
    if name in schema.names:
        return schema.field(name).type
    first, _, rest = name.partition(".")
    if not rest or first not in schema.names or not pa.types.is_struct(schema.field(first).type):
        return None
    return field_type(pa.schema(list(schema.field(first).type)), rest)


def resolve_nested(
    name: str, struct: T, fields: Callable[[T], Mapping[str, T]], *, case_sensitive: bool
) -> list[str] | None:
    """Return the path to a column like `resolve_path`, for the types of any library.

    Args:
        name: Name of the column, or dotted path into structs.
        struct: The columns, as a struct.
        fields: Function that returns the fields of a struct by name; empty for all other types.
        case_sensitive: If true, names that differ in case are different.

    Returns:
        None if there is no such column.
    """
    column = resolve_name(name, fields(struct), case_sensitive=case_sensitive)
    if column is not None:
        return [column]
    path: list[str] = []
    for step in name.split("."):
        inner = fields(struct)
        field = resolve_name(step, inner, case_sensitive=case_sensitive)
        if field is None:
            return None
        path.append(field)
        struct = inner[field]
    return path


def _struct_fields(kind: Any) -> Mapping[str, Any]:
    return {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}
