"""Entries of Hudi tables in Spark's session catalog: their creation, changes and removal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi.errors import QueryError, TableExistsError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import LOCATION, MANAGED, CatalogTable, encoded_properties, find_table, non_hudi_tables
from pyhudi.spark.sql.spark_statements import comment_of, type_text
from pyhudi.sql.statements import Name
from pyhudi.sql.string_literals import string_literal
from pyhudi.sql.table_properties import MARK


def register(
    spark: SparkSession, table: CatalogTable, schema: StructType, comment: str | None = None, *, replace: bool = False
) -> None:
    """Register a table in the catalog.

    Raises:
        TableExistsError: The name is in use.
    """
    if not replace and spark.catalog.tableExists(table.sql):
        raise TableExistsError(f"the table or view {table.sql} already exists; drop it, or choose another name")
    properties = {**table.properties, **_marks(table)}
    properties |= encoded_properties(properties)
    spark_sql(
        spark,
        " ".join(
            [
                "CREATE OR REPLACE VIEW" if replace else "CREATE VIEW",
                table.sql,
                f"({', '.join(_column(f.name, comment_of(f)) for f in schema.fields)})",
                f"COMMENT {string_literal(comment)}" if comment else "",
                f"TBLPROPERTIES ({_pairs(properties)})",
                "AS",
                _body(table, schema),
            ]
        ),
    )
    non_hudi_tables.clear()


def update_columns(spark: SparkSession, table: CatalogTable, schema: StructType) -> None:
    """Update the columns of a table in the catalog."""
    if not table.foreign:
        register(spark, table, schema, spark.catalog.getTable(table.sql).description, replace=True)


def unregister(spark: SparkSession, table: CatalogTable) -> None:
    """Remove a table from the catalog. Its files stay."""
    spark_sql(spark, f"DROP {'TABLE' if table.foreign else 'VIEW'} {table.sql}")
    non_hudi_tables.clear()


def set_properties(
    spark: SparkSession,
    table: CatalogTable,
    changed: Mapping[str, str],
    remove: tuple[str, ...],
    *,
    if_exists: bool,
) -> None:
    """Change properties of a table's entry.

    Args:
        spark: The session.
        table: The table.
        changed: New values.
        remove: Keys of properties to remove.
        if_exists: Properties to remove may be absent.

    Raises:
        QueryError: A property is reserved by the catalog.
        AnalysisException: A property to remove is absent. Spark decides, and its releases differ.
    """
    kind = "TABLE" if table.foreign else "VIEW"
    reserved = [key for key in (*changed, *remove) if key.startswith(MARK)]
    if reserved:
        raise QueryError(f"the property {reserved[0]!r} is kept by the catalog and cannot be changed")
    if not table.foreign:
        properties = {key: value for key, value in {**table.properties, **changed}.items() if key not in remove}
        changed = {**changed, **encoded_properties({**properties, **_marks(table)})}
    if remove:  # first, as it may be refused
        keys = ", ".join(map(string_literal, remove))
        absent = "IF EXISTS " if if_exists else ""
        spark_sql(spark, f"ALTER {kind} {table.sql} UNSET TBLPROPERTIES {absent}({keys})")
    if changed:
        spark_sql(spark, f"ALTER {kind} {table.sql} SET TBLPROPERTIES ({_pairs(changed)})")


def rename(spark: SparkSession, table: CatalogTable, to: Name) -> CatalogTable:
    """Rename the entry of a table, and return it. Spark moves the files of a managed table of Apache Hudi."""
    kind = "TABLE" if table.foreign else "VIEW"
    spark_sql(spark, f"ALTER {kind} {table.sql} RENAME TO {quoted(to)}")
    non_hudi_tables.clear()
    return find_table(spark, to) or replace(table, name=to)


def _pairs(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{string_literal(key)} = {string_literal(value)}" for key, value in properties.items())


def _marks(table: CatalogTable) -> dict[str, str]:
    return {LOCATION: table.location, MANAGED: "true" if table.managed else "false"}


def _column(name: str, comment: str | None) -> str:
    return quoted([name]) + (f" COMMENT {string_literal(comment)}" if comment else "")


def _body(table: CatalogTable, schema: StructType) -> str:
    message = (
        f"{'.'.join(table.name)} is a Hudi table at {table.location}, which this session cannot read: call "
        "pyhudi.activate(spark) first, and name it in spark.sql, spark.table, selectExpr or where, but not in expr()"
    )
    # Columns depend on the error, too. If they were NULL, Spark could conclude that no row satisfies a condition.
    columns = ", ".join(f"CAST(e AS {type_text(f.dataType)}) AS {quoted([f.name])}" for f in schema.fields)
    return f"SELECT {columns} FROM (SELECT raise_error({string_literal(message)}) AS e) WHERE e IS NULL"
