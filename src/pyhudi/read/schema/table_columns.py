"""Columns of a table as of an instant."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.keygen.partition_value_extractor import as_formatted, partition_fields
from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.schema.meta_columns import add_meta_columns, remove_meta_columns
from pyhudi.schema.meta_fields import OPERATION
from pyhudi.schema.table_types import as_nullable
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.schema_history import LATEST_SCHEMA
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.latest_schema import newest_columns


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Columns of a table, and whether it has a schema history (see :mod:`pyhudi.table.schema_history`). ``recorded`` is
    the schema text of the write that recorded them; None: the table was created with them."""

    schema: pa.Schema
    has_history: bool = False
    recorded: str | None = None


def resolve_table_schema(table: TableSnapshot, as_of: str | None = None) -> TableSchema | None:
    """Return the table's columns, meta columns first, as recorded by its newest write up to ``as_of``.

    A table without a write has the schema with which it was created, or None. Partition columns that files do not hold
    come last, as text.
    """
    latest = newest_columns(table.active, as_of)
    if latest is not None:
        metadata = latest[1]
        assert metadata.schema_json is not None
        schema = _complete(table, from_avro(metadata.schema_json))
        return TableSchema(schema, has_history=bool(metadata.extra.get(LATEST_SCHEMA)), recorded=metadata.schema_json)
    text = table.config.create_schema
    return TableSchema(_complete(table, from_avro(text))) if text else None


def path_columns(table: TableSnapshot, schema: pa.Schema, *, partitions_from_path: bool) -> tuple[str, ...]:
    """Return the columns whose values must come from paths, because files do not hold them or the query asks for it."""
    if not table.config.drop_partition_columns and not partitions_from_path:
        return ()
    return tuple(f.name for f in partition_fields(table.config) if f.name in schema.names)


def query_columns(table: TableSnapshot, schema: pa.Schema, *, partitions_from_path: bool) -> pa.Schema:
    """Return the columns of a query, all nullable; that of a timestamp generator is a text if it is taken from paths.

    Args:
        table: The table.
        schema: Its columns (`resolve_table_schema`).
        partitions_from_path: The query takes partition columns from paths although files have them.
    """
    schema = as_nullable(schema)
    if table.config.keygen is KeyGenType.TIMESTAMP and path_columns(
        table, schema, partitions_from_path=partitions_from_path
    ):
        return as_formatted(table.config, schema)
    return schema


def stored_columns(table: TableSnapshot, purpose: str, instant: str | None) -> tuple[pa.Schema, pa.Schema]:
    """Return the columns that files store, with and without meta columns; ``purpose`` is a verb for messages.

    Files have the schema that applied at the ``instant`` in their names, if the table has a schema history; otherwise
    the current columns of the table.

    Raises:
        UnsupportedTableError: The table has no columns yet.
    """
    current = resolve_table_schema(table)
    if current is not None and current.has_history and instant:
        current = resolve_table_schema(table, instant)
    if current is None:
        raise UnsupportedTableError(
            f"the table at {table.storage.root} has no schema yet, so there is nothing to {purpose}"
        )
    config = table.config
    dropped = {f.name for f in config.partition_fields} if config.drop_partition_columns else set()
    stored = pa.schema([f for f in current.schema if f.name not in dropped])
    return stored, remove_meta_columns(stored)


def schema_after(table: TableSnapshot, metadata: CommitMetadata) -> pa.Schema:
    """Return the table's columns, all nullable, after a write with this commit metadata."""
    current = resolve_table_schema(table)
    before = pa.schema([]) if current is None else current.schema
    if metadata.schema_json is None:
        return as_nullable(before)
    written = add_meta_columns(remove_meta_columns(from_avro(metadata.schema_json)))
    return as_nullable(pa.schema([*written, *(field for field in before if field.name not in written.names)]))


def _complete(table: TableSnapshot, recorded: pa.Schema) -> pa.Schema:
    config = table.config
    schema = remove_meta_columns(recorded)
    if config.drop_partition_columns:
        for field in config.partition_fields:
            if field.name not in schema.names:
                schema = schema.append(pa.field(field.name, pa.string()))
    if not config.populate_meta_fields:
        return schema
    return add_meta_columns(schema, with_operation=OPERATION in recorded.names)


def project(schema: pa.Schema, columns: list[str] | None) -> pa.Schema:
    """Return the schema with only those top-level columns, in the requested order.

    Raises:
        QueryError: A column is unknown or requested twice.
    """
    if columns is None:
        return schema
    unknown = [c for c in columns if c not in schema.names]
    if unknown:
        raise QueryError(f"no column {unknown[0]!r}; the table has {', '.join(schema.names)}")
    if len(set(columns)) != len(columns):
        raise QueryError(f"a column is requested twice: {', '.join(columns)}")
    return pa.schema([schema.field(c) for c in columns])
