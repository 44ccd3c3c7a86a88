"""Hudi tables as ``spark.catalog``, SHOW VIEWS and SHOW TABLE EXTENDED list them: as managed or external tables with
their partition columns, although the catalog keeps them as views (ADR 18)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.catalog import Column, Table

from pyhudi.errors import HudiError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.catalog import (
    EXTERNAL_TYPE,
    LOCATION,
    MANAGED,
    MANAGED_TYPE,
    SESSION_CATALOG,
    find_table,
    properties_in_details,
)
from pyhudi.spark.sql.spark_statements import collect_statement, result_frame
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import Name
from pyhudi.sql.table_properties import MARK

_SCHEMA = "\nSchema: root"
_IS_HUDI = re.compile(rf"\b{re.escape(LOCATION)}=")
_IS_MANAGED = re.compile(rf"\b{re.escape(MANAGED)}=true\b")


def listed_tables(spark: SparkSession, tables: list[Table]) -> list[Table]:
    """Return tables of one database, as Spark lists them, with the types of Hudi tables.

    Runs one more statement if there are any views.
    """
    database = next((_database(table) for table in tables if table.namespace and _is_kept_view(table)), None)
    if database is None:
        return tables
    types = _types(spark, database)
    return [
        table._replace(tableType=types[table.name]) if _is_kept_view(table) and table.name in types else table
        for table in tables
    ]


def _types(spark: SparkSession, database: Name) -> dict[str, str]:
    """Return the types of the Hudi tables of a database that are views in the catalog."""
    try:
        rows = collect_statement(spark, f"SHOW TABLE EXTENDED IN {quoted(database)} LIKE '*'")
    except PySparkException:  # one of the tables cannot be shown, or no table of its catalog
        return {}
    return {name: _type(information) for _, name, _, information in rows if _IS_HUDI.search(information)}


def without_hudi_tables(spark: SparkSession, views: DataFrame) -> DataFrame:
    """Return the views of SHOW VIEWS that are no Hudi tables.

    Args:
        spark: The session.
        views: Namespace, name, and whether it is temporary.
    """
    database = next((database for database, _, temporary in views.collect() if database and not temporary), None)
    types = {} if database is None else _types(spark, (database,))
    return views.where(F.col("isTemporary") | ~F.col("viewName").isin(*types)) if types else views


def with_details_of_hudi_tables(spark: SparkSession, database: Name | None, tables: DataFrame) -> DataFrame:
    """Return the tables of SHOW TABLE EXTENDED, Hudi tables with what is shown of a table.

    Args:
        spark: The session.
        database: The database; None: the current one.
        tables: Database, name, whether it is temporary, and details; or one JSON text of all.
    """
    rows = [tuple(row) for row in tables.collect()]
    if len(tables.columns) == 1:
        listed = [json.loads(text) for (text,) in rows]
        if any(table.get("type") == "VIEW" for one in listed for table in one["tables"]):
            types = _types(spark, database or (str(spark.catalog.currentDatabase()),))
            for table in (table for one in listed for table in one["tables"] if not table["isTemporary"]):
                table["type"] = types.get(table["name"], table["type"])
            return result_frame(spark, tables.schema, [(json.dumps(one, separators=(",", ":")),) for one in listed])
        return tables
    shown = [(*row[:-1], row[-1] if row[2] else _table_details(row[-1])) for row in rows]
    return tables if shown == rows else result_frame(spark, tables.schema, shown)


def _table_details(information: str) -> str:
    """Return the details of a view, as those of a table if it is a Hudi table."""
    properties = properties_in_details(information)
    if properties is None:
        return information
    head, _, rest = information.partition("\nView Text: ")
    schema = rest[rest.index(_SCHEMA) :] if _SCHEMA in rest else "\n"
    lines = [head.replace("\nType: VIEW", f"\nType: {_type_of(properties)}\nProvider: hudi", 1)]
    shown = ", ".join(f"{key}={value}" for key, value in properties.items() if not key.startswith(MARK))
    lines += [f"Table Properties: [{shown}]"] if shown else []
    return "\n".join([*lines, f"Location: {properties[LOCATION]}"]) + schema


def _type_of(properties: Mapping[str, str]) -> str:
    return MANAGED_TYPE if properties.get(MANAGED) == "true" else EXTERNAL_TYPE


def _type(information: str) -> str:
    return MANAGED_TYPE if _IS_MANAGED.search(information) else EXTERNAL_TYPE


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
    return table if entry is None else table._replace(tableType=entry.catalog_type)


def listed_columns(spark: SparkSession, name: Name, columns: list[Column]) -> list[Column]:
    """Return the columns of a table, as Spark lists them, with the partition columns of a Hudi table marked."""
    entry = find_table(spark, name)
    if entry is None:
        return columns
    try:
        partitions = {field.name for field in SqlTable.from_catalog(spark, entry).config.partition_fields}
    except HudiError:  # its files are gone, for instance
        return columns
    return [column._replace(isPartition=column.isPartition or column.name in partitions) for column in columns]
