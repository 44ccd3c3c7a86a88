"""Hudi tables as ``spark.catalog`` lists them: as managed or external tables with their partition columns, although the
catalog keeps them as views (ADR 18)."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.catalog import Column, Table

from pyhudi.errors import HudiError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.catalog import LOCATION, MANAGED, SESSION_CATALOG, find_table
from pyhudi.spark.sql.spark_statements import collect_statement
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import Name

_MANAGED_TYPE, _EXTERNAL_TYPE = "MANAGED", "EXTERNAL"
_IS_HUDI = re.compile(rf"\b{re.escape(LOCATION)}=")
_IS_MANAGED = re.compile(rf"\b{re.escape(MANAGED)}=true\b")


def listed_tables(spark: SparkSession, tables: list[Table]) -> list[Table]:
    """Return tables of one database, as Spark lists them, with the types of Hudi tables.

    One more statement is run, if there are views at all.
    """
    database = next((_database(table) for table in tables if table.namespace and _is_kept_view(table)), None)
    if database is None:
        return tables
    try:
        rows = collect_statement(spark, f"SHOW TABLE EXTENDED IN {quoted(database)} LIKE '*'")
    except PySparkException:  # one of the tables cannot be shown, or no table of its catalog
        return tables
    types = {name: _type(information) for _, name, _, information in rows if _IS_HUDI.search(information)}
    return [
        table._replace(tableType=types[table.name]) if _is_kept_view(table) and table.name in types else table
        for table in tables
    ]


def _type(information: str) -> str:
    return _MANAGED_TYPE if _IS_MANAGED.search(information) else _EXTERNAL_TYPE


def _database(table: Table) -> Name:
    """Return the database of a table, with its catalog."""
    return (table.catalog or SESSION_CATALOG, *table.namespace)


def _is_kept_view(table: Table) -> bool:
    return table.tableType == "VIEW" and not table.isTemporary


def shown_table(spark: SparkSession, table: Table) -> Table:
    """Return a table, as Spark shows it, with its type if it is a Hudi table."""
    if not _is_kept_view(table) or not table.namespace:
        return table
    entry = find_table(spark, (*_database(table), table.name))
    if entry is None:
        return table
    return table._replace(tableType=_MANAGED_TYPE if entry.managed else _EXTERNAL_TYPE)


def listed_columns(spark: SparkSession, name: Name, columns: list[Column]) -> list[Column]:
    """Return the columns of a table, as Spark lists them, with the partition columns of a Hudi table marked."""
    entry = find_table(spark, name)
    if entry is None:
        return columns
    try:
        partitions = {field.name for field in SqlTable.of(spark, entry).load_config().partition_fields}
    except HudiError:  # its files are gone, for instance
        return columns
    return [column._replace(isPartition=column.isPartition or column.name in partitions) for column in columns]
