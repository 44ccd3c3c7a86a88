"""ALTER TABLE statements on columns that require the schema history: rename, drop, move, change of type, nested
fields."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import SchemaMismatchError, UnsupportedTableError
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.evolution import schema_changes
from pyhudi.schema.evolution.internal_schema import InternalSchema
from pyhudi.schema.evolution.schema_changes import ColumnPosition
from pyhudi.schema.evolution.type_arguments import as_table_type
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.services.alter_schema import alter_schema
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.catalog_registration import update_columns
from pyhudi.spark.sql.commands.command_target import write_options
from pyhudi.spark.sql.commands.ddl.add_columns import warn_of_not_null
from pyhudi.spark.sql.commands.ddl.declared_columns import declared_schema
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import AddColumn, AlterColumns, ChangeColumn, ColumnChange, DropColumn, RenameColumn
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot

_Change = Callable[[InternalSchema], InternalSchema]


def alter_columns(spark: SparkSession, table: CatalogTable, statement: AlterColumns) -> None:
    """Run ALTER TABLE … ADD, DROP, RENAME, ALTER or CHANGE COLUMN by one commit without rows.

    Raises:
        UnsupportedTableError: The table has no schema history, the session does not enable one, and not only comments
            change.
        SchemaMismatchError: The table does not support the change.
    """
    opts = Options.parse(write_options(spark, table))
    client = TableMetaClient.open(table.location, opts)
    resolved = resolve_table_schema(TableSnapshot.load(client))
    evolving = opts.get_typed(options.SCHEMA_EVOLUTION_ENABLE) or (resolved is not None and resolved.has_history)
    if not evolving and not all(isinstance(change, ChangeColumn) for change in statement.changes):
        raise _needs_evolution(table)
    steps = [_step(spark, change) for change in statement.changes]

    def apply(schema: InternalSchema) -> InternalSchema:
        changed = schema
        for step in steps:
            changed = step(changed)
        if not evolving and not schema_changes.differ_in_comments_only(schema, changed):
            raise _needs_evolution(table)
        return changed

    alter_schema(client, opts, apply, keep_history=evolving)
    update_columns(spark, table, SqlTable.from_catalog(spark, table).load_sql_schema())


def _needs_evolution(table: CatalogTable) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"this change of columns of {table.sql} needs schema-on-read evolution, which Apache Hudi's readers have "
        f"to be asked for, too: SET {options.SCHEMA_EVOLUTION_ENABLE.key}=true and run it again"
    )


def _step(spark: SparkSession, change: ColumnChange) -> _Change:
    """Return the change of a schema that a clause requests; types are resolved immediately."""
    match change:
        case AddColumn():
            if change.not_null:
                warn_of_not_null(".".join(change.path))
            return partial(_add, change, _type(spark, change.kind))
        case DropColumn():
            return partial(_drop, change)
        case RenameColumn():
            return lambda schema: schema_changes.rename_column(schema, known_path(schema, change.path), change.to)
        case ChangeColumn():
            return partial(_change, change, None if change.kind is None else _type(spark, change.kind))


def _type(spark: SparkSession, text: str) -> pa.DataType:
    declared = from_spark_json(declared_schema(spark, f"c {text}").json())
    return as_table_type(declared.field(0).type)


def _add(change: AddColumn, data_type: pa.DataType, schema: InternalSchema) -> InternalSchema:
    parent = known_path(schema, change.path[:-1]) if len(change.path) > 1 else ""
    path = f"{parent}.{change.path[-1]}" if parent else change.path[-1]
    position = _position(schema, parent, change.after, first=change.first)
    return schema_changes.add_column(schema, path, data_type, change.comment, position)


def _drop(change: DropColumn, schema: InternalSchema) -> InternalSchema:
    path = known_path(schema, change.path)
    if change.if_exists and path not in schema.paths():
        return schema
    return schema_changes.drop_column(schema, path)


def _change(change: ChangeColumn, data_type: pa.DataType | None, schema: InternalSchema) -> InternalSchema:
    path = known_path(schema, change.path)
    if data_type is not None:
        schema = schema_changes.change_type(schema, path, data_type)
    if change.comment is not None:
        schema = schema_changes.set_comment(schema, path, change.comment)
    if change.first or change.after is not None:
        position = _position(schema, path.rpartition(".")[0], change.after, first=change.first)
        schema = schema_changes.move_column(schema, path, position)
    if change.nullable is False:
        raise SchemaMismatchError(f"column {path!r} cannot become NOT NULL: stored rows may have no value")
    return schema_changes.make_nullable(schema, path) if change.nullable else schema


def _position(schema: InternalSchema, parent: str, after: str | None, *, first: bool) -> ColumnPosition:
    if after is None:
        return ColumnPosition(first=first)
    beside = known_path(schema, (*(parent.split(".") if parent else ()), after))
    return ColumnPosition(after=beside.rpartition(".")[2])


def known_path(schema: InternalSchema, parts: tuple[str, ...]) -> str:
    """Return the path in the table's spelling, ignoring case; unchanged if the table has no such column."""
    path = ".".join(parts)
    return resolve_name(path, schema.paths()) or path
