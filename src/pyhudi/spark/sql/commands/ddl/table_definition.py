"""Definition of a table that a statement creates: its columns, its options and its properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.config import Options, options
from pyhudi.errors import SchemaMismatchError
from pyhudi.keygen.key_spec import check_generator_registered
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.spark.column_names import quoted
from pyhudi.spark.dml.assignments.column_assignments import column_of, column_path
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.sql.catalog import CatalogTable, default_location, find_table
from pyhudi.spark.sql.commands.command_target import own_schema, without_meta_columns
from pyhudi.spark.sql.commands.ddl.declared_columns import declared_schema
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.spark_statements import columns_text
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.spark.write.write_input import check_types
from pyhudi.sql.statements import CreateTable, Name
from pyhudi.sql.table_properties import refuse_misspelled_properties, table_options, with_columns
from pyhudi.table.config.table_config import TableConfig
from pyhudi.transaction.locks.lock_factory import check_lock_provider


def defined_table(spark: SparkSession, name: Name, statement: CreateTable, old: CatalogTable | None) -> CatalogTable:
    """Return the table that a statement defines. Without a location it is managed, at the location of the
    managed table of that name, or the default one."""
    managed_location = old.location if old is not None and old.managed else default_location(spark, name)
    location = statement.location or managed_location
    return CatalogTable(name, location, dict(statement.properties), managed=statement.location is None)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table that a statement defines: its columns, partition columns last, and the options that create it."""

    table: CatalogTable
    schema: StructType
    creation_options: Mapping[str, str]
    config: TableConfig


def checked_definition(
    spark: SparkSession, table: CatalogTable, statement: CreateTable, schema: StructType
) -> TableDefinition:
    """Return the definition of a table with these columns.

    Raises:
        SchemaMismatchError: The statement, or the session, names columns that the table does not have, or a column has
            no type.
        ConfigError: They name a lock provider that is not supported, which the first write would refuse.
        UnsupportedTableError: They name a key generator that is not registered.
    """
    refuse_misspelled_properties(statement.properties)
    table, statement = with_spelling_of_schema(spark, table, statement, schema)
    creation_options = options_of_new_table(spark, table, statement)
    check_lock_provider(creation_options)
    schema = _partitions_last(schema, statement.partitioned_by)
    config = TableConfig.for_new_table(Options.parse(creation_options))
    check_generator_registered(config)
    _check_columns(config, schema)
    return TableDefinition(table, schema, creation_options, config)


def with_spelling_of_schema(
    spark: SparkSession, table: CatalogTable, statement: CreateTable, schema: StructType
) -> tuple[CatalogTable, CreateTable]:
    """Return a table and its definition with the columns of keys, ordering and partitions in the spelling of its
    schema.

    Raises:
        SchemaMismatchError: There is no such column.
    """
    sensitive = is_case_sensitive(spark)

    def spelled(name: str) -> str:
        return ".".join(column_path(name, schema, case_sensitive=sensitive))

    partitions = tuple(column_of(name, schema, case_sensitive=sensitive) for name in statement.partitioned_by)
    properties = with_columns(statement.properties, spelled)
    changed = replace(statement, properties=properties, partitioned_by=partitions)
    return replace(table, properties=with_columns(table.properties, spelled)), changed


def _check_columns(config: TableConfig, schema: StructType) -> None:
    """Refuse a definition whose options name columns that the table does not have.

    Raises:
        SchemaMismatchError: The message has one of them, columns whose names differ only in case, or one without a
            type, as of NULL in a query.
    """
    spelled: dict[str, str] = {}
    for name in schema.names:
        if spelled.setdefault(name.lower(), name) != name:
            raise SchemaMismatchError(
                f"the columns {spelled[name.lower()]!r} and {name!r} differ only in case, which tables cannot have"
            )
    for name in (*config.record_keys, *config.ordering_fields, *(field.name for field in config.partition_fields)):
        column_path(name, schema, case_sensitive=True)
    check_types(from_spark_json(schema.json()))


def options_of_new_table(spark: SparkSession, table: CatalogTable, statement: CreateTable) -> dict[str, str]:
    """Return the options with which a statement creates a table: those of the session, and its own."""
    creation_options = {
        **session_settings(spark, table.location),
        options.HIVE_STYLE_PARTITIONING.key: "true",
        **session_options(spark),
        **table_options(statement.properties),
    }
    creation_options.setdefault(options.TABLE_NAME.key, table.name[1])
    creation_options.setdefault(options.DATABASE_NAME.key, table.name[0])
    if statement.partitioned_by:
        creation_options[options.PARTITIONPATH_FIELD.key] = ",".join(statement.partitioned_by)
    return creation_options


def declared_columns(spark: SparkSession, statement: CreateTable) -> StructType:
    """Return the columns that a statement lists, without meta columns; empty if it lists none."""
    if not statement.columns:
        return StructType([])
    return without_meta_columns(declared_schema(spark, statement.columns))


def _partitions_last(schema: StructType, partitions: tuple[str, ...]) -> StructType:
    last = [schema[name] for name in partitions]
    return StructType([*(field for field in schema.fields if field not in last), *last])


def resolve_like(spark: SparkSession, statement: CreateTable) -> CreateTable:
    """Return CREATE TABLE … LIKE as a statement that lists the columns of the other table; of a Hudi table also its
    partition columns and properties."""
    assert statement.like is not None
    source = find_table(spark, statement.like)
    if source is None:
        shape = spark_sql(spark, f"SELECT * FROM {quoted(statement.like)} LIMIT 0").schema
        return replace(statement, columns=columns_text(without_meta_columns(shape)), like=None)
    partitions = tuple(field.name for field in SqlTable.from_catalog(spark, source).config.partition_fields)
    return replace(
        statement,
        columns=columns_text(own_schema(spark, source)),
        partitioned_by=partitions,
        properties={**source.properties, **statement.properties},
        like=None,
    )
