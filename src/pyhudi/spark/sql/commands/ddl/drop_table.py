"""DROP TABLE."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.catalog_registration import unregister
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
