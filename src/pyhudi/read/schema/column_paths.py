"""Columns of a schema by name, or by dotted path into structs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi.errors import QueryError
from pyhudi.schema.name_resolution import resolve_path


def resolve_column(column: str, schema: pa.Schema) -> list[str]:
    """Return the path of a column: its name, or the steps of a dotted path, in the case of the schema.

    Raises:
        QueryError: The schema has no such column.
    """
    path = resolve_path(column, schema, case_sensitive=True)
    if path is None:
        raise QueryError(f"no column {column!r}; the table has {', '.join(schema.names)}")
    return path


def type_at(path: list[str], schema: pa.Schema) -> pa.DataType:
    """Return the type of a column by its path."""
    data_type: Any = schema
    for step in path:
        data_type = data_type.field(step).type
    return data_type
