"""The table that a command changes: its columns, and the options of the write."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.sql_table import SqlTable


def write_options(spark: SparkSession, table: CatalogTable) -> dict[str, str]:
    """Return the options of a write: the session's settings for the object store, the table's properties, and the
    session's settings of Apache Hudi over them."""
    return {**session_settings(spark, table.location), **table.options, **session_options(spark)}


def own_schema(spark: SparkSession, table: CatalogTable) -> StructType:
    """Return a table's own columns in the order in which SQL lists them."""
    return without_meta_columns(SqlTable.from_catalog(spark, table).load_sql_schema())


def without_meta_columns(schema: StructType) -> StructType:
    """Return a schema without the meta columns of records."""
    return StructType([field for field in schema.fields if not is_meta_column(field.name)])
