"""Meta columns in Arrow schemas: the five of every record and the optional ``_hoodie_operation``."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.schema.meta_fields import META_COLUMNS, OPERATION

META_FIELDS: tuple[pa.Field, ...] = tuple(pa.field(name, pa.string(), nullable=True) for name in META_COLUMNS)
META_SCHEMA: pa.Schema = pa.schema(META_FIELDS)

RESERVED_PREFIX = "_pyhudi_"
"""Prefix of the names of helper columns in plans, which no column of a table may have."""
_ALL = frozenset((*META_COLUMNS, OPERATION))


def is_meta_column(name: str) -> bool:
    """Return True for a meta column (the five, or ``_hoodie_operation``)."""
    return name in _ALL


def is_reserved(name: str) -> bool:
    """Return True for a name that no column may have, compared as Spark compares names."""
    return name.lower().startswith(RESERVED_PREFIX)


def remove_meta_columns(schema: pa.Schema) -> pa.Schema:
    """Return the schema without meta columns."""
    return pa.schema([field for field in schema if field.name not in _ALL], metadata=schema.metadata)


def add_meta_columns(schema: pa.Schema, *, with_operation: bool = False) -> pa.Schema:
    """Return the schema of a base file: meta columns first, then data columns."""
    data_columns = remove_meta_columns(schema)
    meta = [*META_FIELDS, pa.field(OPERATION, pa.string())] if with_operation else list(META_FIELDS)
    return pa.schema([*meta, *data_columns], metadata=schema.metadata)
