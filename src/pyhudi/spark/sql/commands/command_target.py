"""The table that a command changes: its columns, and the options of the write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.config import Options
from pyhudi.config.case_insensitive_options import with_options
from pyhudi.config.misspelled_options import refuse_other_formats
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.table_properties import refuse_misspelled_properties, table_options


def write_options(spark: SparkSession, table: CatalogTable) -> dict[str, str]:
    """Return the options of a write: the session's settings for the object store, the table's properties, the session's
    settings of Apache Hudi over them, and the options of the write over these."""
    settings = {**session_settings(spark, table.location), **table.options, **session_options(spark)}
    return with_options(settings, table.write_options)


def with_write_options(table: CatalogTable, options: Mapping[str, str] | None) -> CatalogTable:
    """Return a table with the options of a write over its properties, and over the settings of the session.

    Args:
        table: The table.
        options: Options of the write; ``path`` is none of them.

    Raises:
        ConfigError: An option is misspelt or belongs to another format, and ignoring it would change the write.
    """
    added = {key: value for key, value in (options or {}).items() if key != "path"}
    refuse_other_formats(added)
    refuse_misspelled_properties(added)
    chosen = table_options(added)
    Options.parse(chosen)  # warns of unknown ones
    return replace(table, write_options=chosen)


def own_schema(spark: SparkSession, table: CatalogTable) -> StructType:
    """Return a table's own columns in the order in which SQL lists them."""
    return without_meta_columns(SqlTable.from_catalog(spark, table).load_sql_schema())


def without_meta_columns(schema: StructType) -> StructType:
    """Return a schema without the meta columns of records."""
    return StructType([field for field in schema.fields if not is_meta_column(field.name)])
