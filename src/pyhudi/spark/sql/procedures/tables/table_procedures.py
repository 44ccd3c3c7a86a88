"""Procedures that show the properties of a table and delete its rows by partitions."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows


def show_table_properties(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the properties of the table."""
    return arguments.limited(arguments.client(spark).config.properties.items())


def drop_partition(spark: SparkSession, arguments: Arguments) -> Rows:
    """Drop partitions, given by path with commas between."""
    arguments.table(spark).delete_matching_partitions(spark, str(arguments.text("partition")))
    return [("Success",)]


def truncate_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Delete all rows, or those of partitions."""
    begun = time.monotonic()
    table, partitions = arguments.table(spark), arguments.text("partitions")
    if partitions is not None:  # an empty text, as of a variable that is not set, does not mean all
        table.delete_matching_partitions(spark, partitions)
    else:
        table.delete_all(spark)
    return [("Success", int((time.monotonic() - begun) * 1000))]


PROCEDURES: dict[str, Procedure] = {
    "drop_partition": drop_partition,
    "show_table_properties": show_table_properties,
    "truncate_table": truncate_table,
}
