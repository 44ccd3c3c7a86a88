"""DROP TABLE."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.catalog_registration import register, unregister
from pyhudi.spark.sql.commands.ddl.location_checks import table_storage
from pyhudi.spark.sql.queries.table_cache import uncache
from pyhudi.transaction.table_overwrite.table_removal import remove_table


def drop_table(spark: SparkSession, table: CatalogTable, *, purge: bool) -> None:
    """Run DROP TABLE, which also deletes the files of a managed table, and with PURGE those of any table."""
    unregister(spark, table)
    uncache(spark, table.location)
    if table.managed or purge:
        remove_table(table_storage(spark, table))


def drop_replaced(spark: SparkSession, replaced: CatalogTable | None) -> None:
    """Drop the table that is replaced, if any, with its files if it is managed."""
    if replaced is not None:
        drop_table(spark, replaced, purge=replaced.managed)


def register_instead(
    spark: SparkSession, replaced: CatalogTable | None, table: CatalogTable, schema: StructType, comment: str | None
) -> None:
    """Register a table in place of another one, if any, whose files are deleted afterwards if it is managed.

    The name stands for one of them at any time, but for entries of Apache Hudi, of which a view cannot take the place.
    """
    if replaced is None or replaced.foreign:
        drop_replaced(spark, replaced)
        register(spark, table, schema, comment)
        return
    register(spark, table, schema, comment, replace=True)
    uncache(spark, replaced.location)
    if replaced.managed:
        remove_table(table_storage(spark, replaced))
