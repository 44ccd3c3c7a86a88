"""CREATE TABLE at the location of an existing Hudi table, which is registered in the catalog."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.errors import ConfigError, SchemaMismatchError, TableExistsError
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.commands.ddl.drop_table import register_instead
from pyhudi.spark.sql.commands.ddl.table_definition import declared_columns, with_spelling_of_schema
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import CreateTable
from pyhudi.sql.table_properties import refuse_misspelled_properties, registered_properties, table_options


def refuse_unrelated_table(existing: SqlTable, table: CatalogTable) -> None:
    """Refuse to register a table as the managed table of a name, unless it was created with this name and has no
    commits. It may belong to another entry, such as that of a renamed table, and DROP TABLE would delete its files.

    Raises:
        TableExistsError: The message has the cure.
    """
    name = existing.config.name
    if name.lower() == table.name[1].lower() and not existing.inspect.commits().num_rows:
        return
    raise TableExistsError(
        f"there is a Hudi table at {table.location!r} already, where {table.sql} belongs; its name is {name!r}. Give "
        "the new table a LOCATION of its own, register the one that is there with LOCATION, or delete it"
    )


def register_existing(
    spark: SparkSession, table: CatalogTable, statement: CreateTable, replaced: CatalogTable | None
) -> None:
    """Register an existing table in the catalog, replacing an entry with its name, if any. The statement must match the
    table.

    Raises:
        TableConfigConflictError: A property has another value.
        SchemaMismatchError: A column is missing or of another type.
    """
    handle = SqlTable.from_catalog(spark, table)
    config = handle.config
    refuse_misspelled_properties(statement.properties)
    schema = handle.load_sql_schema()
    if schema.fields:
        table, statement = with_spelling_of_schema(spark, table, statement, schema)
    config.validate_against(Options.parse(table_options(statement.properties)))
    fields_by_name = {field.name.lower(): field for field in schema.fields}
    for field in declared_columns(spark, statement).fields:
        existing = fields_by_name.get(field.name.lower())
        if existing is None or existing.dataType != field.dataType:
            kind = "missing" if existing is None else f"of type {existing.dataType.simpleString()}"
            raise SchemaMismatchError(
                f"the column {field.name} {field.dataType.simpleString()} is {kind} in the Hudi table at "
                f"{table.location!r}; leave the columns out to take the table's"
            )
    fields = tuple(field.name for field in config.partition_fields)
    if statement.partitioned_by and statement.partitioned_by != fields:
        raise ConfigError(f"the Hudi table at {table.location!r} is partitioned by ({', '.join(fields)})")
    recorded = registered_properties(config.record_keys, config.ordering_fields, config.table_type)
    registered = replace(table, properties={**recorded, **table.properties})
    register_instead(spark, replaced, registered, schema, statement.comment)
