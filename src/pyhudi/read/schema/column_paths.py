"""Columns of a schema by name, or by dotted path into structs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi.errors import QueryError


def resolve_column(column: str, schema: pa.Schema) -> list[str]:
    """Return the path of a column: its name, or the steps of a dotted path.

    Raises:
        QueryError: The schema has no such column.
    """
    if column in schema.names:
        return [column]
    steps = column.split(".")
    kind: Any = schema
    for step in steps:
        names = (
            kind.names if isinstance(kind, pa.Schema) else [f.name for f in kind] if pa.types.is_struct(kind) else []
        )
        if step not in names:
            raise QueryError(f"no column {column!r}; the table has {', '.join(schema.names)}")
        kind = kind.field(step).type
    return steps


def type_of(path: list[str], schema: pa.Schema) -> pa.DataType:
    """Return the type of a column by its path."""
    kind: Any = schema
    for step in path:
        kind = kind.field(step).type
    return kind
