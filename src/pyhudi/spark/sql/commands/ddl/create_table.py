"""CREATE TABLE, CREATE OR REPLACE TABLE, and both AS SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import QueryError, TableExistsError
from pyhudi.read.query.table_location import refuse_nested_table
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.table_types import as_nullable, to_table_types
from pyhudi.spark.column_names import quoted, select_names
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import (
    CatalogTable,
    check_name,
    default_location,
    find_table,
    full_name,
    qualified_location,
)
from pyhudi.spark.sql.catalog_registration import register
from pyhudi.spark.sql.commands.command_target import without_meta_columns
from pyhudi.spark.sql.commands.ddl.drop_table import drop_replaced, register_instead
from pyhudi.spark.sql.commands.ddl.location_checks import (
    is_location_of,
    refuse_files,
    refuse_overlap,
    table_exists_at,
    table_storage,
)
from pyhudi.spark.sql.commands.ddl.register_table import refuse_unrelated_table, register_existing
from pyhudi.spark.sql.commands.ddl.table_definition import (
    checked_definition,
    declared_columns,
    defined_table,
    resolve_like,
)
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.sql.statements import CreateTable, Name
from pyhudi.sql.table_properties import table_options
from pyhudi.storage import open_sibling, open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.single_writer_locks import in_process_writer_lock
from pyhudi.transaction.table_overwrite.table_removal import remove_after_failure
from pyhudi.write.column_checks import check_dropped_partition_columns, check_storable

_CREATE_SCHEMA = options.CREATE_SCHEMA.key


def create_table(spark: SparkSession, statement: CreateTable) -> None:
    """Run CREATE or REPLACE TABLE. A table that is replaced stays if the new definition is refused.

    Raises:
        TableExistsError: The table already exists.
        QueryError: The statement has neither columns nor a query.
    """
    name = full_name(spark, statement.name)
    if statement.if_not_exists and spark.catalog.tableExists(quoted(name)):
        return  # without waiting for those that write to it
    if statement.location is not None:
        statement = replace(statement, location=qualified_location(spark, name, statement.location))
    location = statement.location or default_location(spark, name)
    with creation_lock(spark, location, statement.properties):
        _create_table(spark, name, statement)


def creation_lock(spark: SparkSession, location: str, properties: Mapping[str, str]) -> AbstractContextManager[None]:
    """Return a context manager that holds the lock of this process to create a table, or to write to it
    (`in_process_writer_lock`): if several threads create a table with the same name, one of them succeeds, and the
    others find the table.

    Args:
        spark: The session.
        location: Location of the table.
        properties: Its properties as spelled in SQL.
    """
    opts = Options.parse({**session_settings(spark, location), **session_options(spark), **table_options(properties)})
    return in_process_writer_lock(open_storage(location, opts), opts)


def _create_table(spark: SparkSession, name: Name, statement: CreateTable) -> None:
    old = None
    if spark.catalog.tableExists(quoted(name)):
        if statement.if_not_exists:
            return
        old = find_table(spark, name)
        if not statement.replace or old is None:
            raise TableExistsError(f"the table or view {quoted(name)} already exists; drop it, or choose another name")
        if statement.query is not None:  # evaluated while the tables that it reads exist
            rows = spark_sql(spark, rewrite_query(spark, statement.query).text)
            replace_table(spark, old, rows, statement)
            return
    if statement.like is not None:
        statement = resolve_like(spark, statement)
    table = defined_table(spark, name, statement, old)
    location = table.location
    refuse_overlap(old, table_storage(spark, table))
    if SqlTable.exists(spark, location, table.options) and not is_location_of(old, table_storage(spark, table)):
        if statement.query is not None:
            raise table_exists_at(location)
        if table.managed:
            refuse_unrelated_table(SqlTable.from_catalog(spark, table), table)
        register_existing(spark, table, statement, old)
        return
    rows = None if statement.query is None else spark_sql(spark, rewrite_query(spark, statement.query).text)
    create_new(spark, table, statement, rows, replaced=old)


def create_new(
    spark: SparkSession,
    table: CatalogTable,
    statement: CreateTable,
    rows: DataFrame | None,
    *,
    replaced: CatalogTable | None = None,
) -> None:
    """Create a table of columns or of rows, and register it in the catalog.

    Args:
        spark: The session.
        table: The table.
        statement: Its definition.
        rows: Its rows; None for an empty table with the columns of the statement.
        replaced: The existing table with that name, which is dropped after all checks and after the rows are written.

    Raises:
        QueryError: There are neither columns nor rows, or the catalog takes no such name.
        TableExistsError: The location has files, or is inside another table.
        SchemaMismatchError: As `checked_definition` and `check_dropped_partition_columns`.
    """
    check_name(table.name)
    schema = declared_columns(spark, statement) if rows is None else without_meta_columns(rows.schema)
    if not schema.fields:
        raise QueryError(
            f"CREATE TABLE {table.sql} has no columns, and there is no Hudi table at {table.location!r}: give the "
            "columns of a new table, or the LOCATION of an existing one"
        )
    definition = checked_definition(spark, table, statement, schema)
    table, schema, creation_options = definition.table, definition.schema, definition.creation_options
    opts = Options.parse(creation_options)
    columns = as_nullable(to_table_types(from_spark_json(schema.json())))
    avro = to_avro(columns, definition.config.name)
    config = TableConfig(MappingProxyType({**definition.config.properties, _CREATE_SCHEMA: avro}))
    config.check_readable()
    config.check_writable()
    check_storable(config, columns)
    check_dropped_partition_columns(config, columns)
    storage = open_storage(table.location, opts)
    refuse_nested_table(storage.root, opts)
    if is_location_of(replaced, storage):
        drop_replaced(spark, replaced)
        replaced = None
    else:
        refuse_files(storage)
    TableMetaClient.create(storage, config, opts)
    if rows is not None:
        table_rows = select_names(rows, schema.names)
        try:
            write(table_rows, table.location, {options.OPERATION.key: "bulk_insert", **creation_options}, "append")
        except BaseException:
            remove_after_failure(storage, opts)
            raise
    schema = SqlTable.from_catalog(spark, table).load_sql_schema()
    register_instead(spark, replaced, table, schema, statement.comment)


def replace_table(spark: SparkSession, old: CatalogTable, rows: DataFrame, statement: CreateTable) -> None:
    """Replace an existing table by a table of rows. It stays until the rows are written. If the statement has another
    location, the new table is created there.

    Raises:
        TableExistsError: The location has another Hudi table.
    """
    table = defined_table(spark, old.name, statement, old)
    storage = table_storage(spark, table)
    refuse_overlap(old, storage)
    if open_sibling(storage, old.location).root != storage.root:
        if SqlTable.exists(spark, table.location, table.options):
            raise table_exists_at(table.location)
        create_new(spark, table, statement, rows, replaced=old)
        return
    definition = checked_definition(spark, table, statement, without_meta_columns(rows.schema))
    table, schema = definition.table, definition.schema
    write_opts = {**definition.creation_options, options.OPERATION.key: "bulk_insert"}
    write(select_names(rows, schema.names), table.location, write_opts, "overwrite")
    register(spark, table, SqlTable.from_catalog(spark, table).load_sql_schema(), statement.comment, replace=True)
