"""ALTER TABLE … ADD COLUMNS at the end of a table, which needs no history of schemas."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from pyhudi.config import options
from pyhudi.errors import OptionWithoutEffectWarning, SchemaMismatchError, warn
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.spark.execution.local_relations import empty_frame
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.catalog_registration import update_columns
from pyhudi.spark.sql.commands.command_target import own_schema, write_options
from pyhudi.spark.sql.commands.ddl.declared_columns import declared_schema
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.sql.statements import AddColumns


def add_columns(spark: SparkSession, table: CatalogTable, statement: AddColumns) -> None:
    """Run ALTER TABLE … ADD COLUMNS: a commit without rows that knows the columns.

    Raises:
        SchemaMismatchError: The column already exists, or has the name of a meta column.
    """
    added = declared_schema(spark, statement.columns)
    schema = own_schema(spark, table)
    existing = {field.name.lower() for field in schema.fields}
    for field in added.fields:
        if is_meta_column(field.name.lower()):
            raise SchemaMismatchError(
                f"the column {field.name!r} is a meta column of Hudi tables, which writes fill; choose another name"
            )
        if field.name.lower() in existing:
            raise SchemaMismatchError(f"the column {field.name!r} already exists in {table.sql}; choose another name")
        if not field.nullable:
            warn_of_not_null(field.name)
    partitions = {field.name for field in SqlTable.from_catalog(spark, table).config.partition_fields}
    data_fields = [field for field in schema.fields if field.name not in partitions]
    partition_fields = [field for field in schema.fields if field.name in partitions]
    wider = StructType(
        [*data_fields, *(StructField(f.name, f.dataType, True, f.metadata) for f in added.fields), *partition_fields]
    )
    opts = {**write_options(spark, table), options.OPERATION.key: "insert", options.ALLOW_EMPTY_COMMIT.key: "true"}
    write(empty_frame(spark, wider), table.location, opts, "append")
    update_columns(spark, table, SqlTable.from_catalog(spark, table).load_sql_schema())


def warn_of_not_null(name: str) -> None:
    """Warn that a new column is nullable despite NOT NULL, as in Apache Hudi."""
    warn(
        f"NOT NULL has no effect on the new column {name!r}: stored rows have no value of it, so it is nullable",
        OptionWithoutEffectWarning,
    )
