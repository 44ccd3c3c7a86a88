"""Hudi tables by name: finding, opening and reading them (``spark.table``)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config.misspelled_options import refuse_misspelled_query
from pyhudi.config.option_registry import canonical
from pyhudi.errors import NotAHudiTableError, QueryError, SqlSyntaxError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import CatalogTable, find_table
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.queries.query_scope import parse_table_name
from pyhudi.spark.sql.queries.query_sources import table_frame
from pyhudi.spark.sql.session_config import SNAPSHOT_OPTIONS, session_options
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import Name


def parse_name(text: str) -> Name | None:
    """Parse a table name. Return None if the text is not one; Spark reports that itself."""
    try:
        return parse_table_name(text)
    except SqlSyntaxError:
        return None


def table_of_name(spark: SparkSession, text: str) -> CatalogTable | None:
    """Return the Hudi table of a name; None for anything else."""
    name = parse_name(text)
    return None if name is None else find_table(spark, name)


def open_table(spark: SparkSession, text: str, table_options: Mapping[str, object] | None) -> SqlTable:
    """Open a Hudi table by name.

    Args:
        spark: The session.
        text: The table's name.
        table_options: Options, which override the properties of the table.

    Raises:
        SqlSyntaxError: The text is not a name.
        NotAHudiTableError: There is no Hudi table of that name, or none at its location.
    """
    name = parse_name(text)
    if name is None:
        raise SqlSyntaxError(f"{text!r} is not the name of a table; use HudiTable.for_path(path) for a path")
    table = find_table(spark, name)
    if table is None:
        is_other = spark.catalog.tableExists(quoted(name))
        reason = "is a table or view, but not a Hudi table" if is_other else "is not in the catalog of the session"
        raise NotAHudiTableError(
            f"{quoted(name)} {reason}; spark.catalog.listTables() lists the names, and HudiTable.for_path(path) opens "
            "a table by its path"
        )
    return SqlTable.at(spark, table.location, {**table.options, **(table_options or {})})


def read_table(spark: SparkSession, text: str, read_options: Mapping[str, str] | None = None) -> DataFrame | None:
    """Return the rows of a Hudi table, or of a view of Hudi tables, by name; None for anything else."""
    name = parse_name(text)
    if name is None:
        return None
    if read_options and (table := find_table(spark, name)) is not None:
        refuse_misspelled_query(read_options, {**table.options, **session_options(spark)})
        return table_frame(spark, table, read_options).alias(name[-1])
    prepared = rewrite_query(spark, f"SELECT * FROM {quoted(name)}")
    if not prepared.reads_hudi_tables:
        return None
    chosen = [key for key in read_options or {} if canonical(key) in SNAPSHOT_OPTIONS]
    if chosen:
        raise QueryError(f"{quoted(name)} is a view, to which {min(chosen)} does not apply; read its tables with it")
    refuse_misspelled_query(read_options or {})
    return spark_sql(spark, prepared.text)
