"""TRUNCATE TABLE, and ALTER TABLE … DROP PARTITION."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.errors import warn
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.commands.command_target import write_options
from pyhudi.spark.sql.commands.static_partitions import matching_partitions
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import DropPartitions, Truncate


def drop_partitions(spark: SparkSession, table: CatalogTable, statement: DropPartitions) -> None:
    """Run ALTER TABLE … DROP PARTITION. Warns of partitions that do not exist, unless the statement has IF EXISTS."""
    matching = [(spec, matching_partitions(spark, table, spec)) for spec in statement.partitions]
    for spec, paths in matching:
        if not paths and not statement.if_exists:
            values = ", ".join(f"{name} = {value}" for name, value in spec.items())
            warn(f"DROP PARTITION: {table.sql} has no partition with {values}")
    _delete_partitions(spark, table, sorted({path for _, paths in matching for path in paths}))


def _delete_partitions(spark: SparkSession, table: CatalogTable, paths: list[str]) -> None:
    if paths:
        SqlTable.at(spark, table.location, write_options(spark, table)).delete_partitions(spark, paths)


def truncate(spark: SparkSession, table: CatalogTable, statement: Truncate) -> None:
    """Run TRUNCATE TABLE: one commit deletes all rows; the timeline is kept."""
    if statement.partition:
        _delete_partitions(spark, table, matching_partitions(spark, table, statement.partition))
        return
    SqlTable.at(spark, table.location, write_options(spark, table)).delete_all(spark)
