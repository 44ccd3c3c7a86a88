"""Procedure that shows the properties of a table."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows


def show_table_properties(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the properties of the table."""
    return arguments.limited(arguments.client(spark).config.properties.items())


PROCEDURES: dict[str, Procedure] = {"show_table_properties": show_table_properties}
