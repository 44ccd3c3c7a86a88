"""Sources of the temporary views that replace Hudi tables in queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import options
from pyhudi.spark.column_names import quoted
from pyhudi.spark.read.load_table import TableQuery
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import CatalogTable, CatalogView
from pyhudi.spark.sql.queries.functions.table_functions import run_table_function
from pyhudi.spark.sql.queries.functions.vector_functions import run_vector_function
from pyhudi.spark.sql.queries.generated_views import show_rows
from pyhudi.spark.sql.queries.table_cache import cached_rows
from pyhudi.spark.sql.queries.view_settings import session_with
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.sql_table import partitions_last
from pyhudi.sql.table_function_calls import VECTOR_FUNCTIONS


@dataclass(frozen=True, slots=True)
class ViewSource:
    """A Hudi table as the source of a view.

    Attributes:
        location: The table's.
        options: Options of the read.
        predicate: Condition that prunes files; the query has it, too.
    """

    location: str
    options: tuple[tuple[str, str], ...]
    predicate: str | None


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A table function as the source of a view.

    Attributes:
        function: Its name.
        arguments: Its arguments; names of tables are qualified.
        locations: Locations of the Hudi tables that it reads.
    """

    function: str
    arguments: tuple[Any, ...]
    locations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuerySource:
    """The query of a permanent view as the source of a view.

    Attributes:
        text: The rewritten query.
        view: The permanent view.
        settings: Settings with which the query is analysed; empty: those of the session.
    """

    text: str
    view: CatalogView
    settings: tuple[tuple[str, str], ...]


Source: TypeAlias = ViewSource | FunctionSource | QuerySource


def show_source(spark: SparkSession, view: str, source: Source, rows_of: Callable[[str], DataFrame]) -> DataFrame:
    """Replace the definition of a global temporary view by the current rows of a source.

    Args:
        spark: The session.
        view: The view's name.
        source: The source.
        rows_of: Returns the rows of a table or view by name or path, for arguments of vector functions.

    Returns:
        The rows.
    """
    match source:
        case ViewSource(location, query_options, predicate):
            cached = (
                None
                if options.AS_OF_INSTANT.key in dict(query_options)
                else _cached(spark, location, dict(query_options))
            )
            if cached is not None:
                return show_rows(cached, view)
            opened = TableQuery.open(spark, location, dict(query_options))
            rows = opened.rows(spark, predicate)
            show_rows(_partitions_last(rows, opened), view)
            return rows
        case FunctionSource(function, arguments) if function in VECTOR_FUNCTIONS:
            return show_rows(run_vector_function(function, arguments, rows_of), view)
        case FunctionSource(function, arguments):
            return show_rows(run_table_function(spark, function, arguments), view)
        case QuerySource():
            with query_rows(spark, source) as rows:
                return show_rows(rows, view)


@contextmanager
def query_rows(spark: SparkSession, source: QuerySource) -> Iterator[DataFrame]:
    """Return a context manager that gives the rows of a permanent view, in a session with the settings of the view."""
    with session_with(spark, dict(source.settings)) as session:
        rows = spark_sql(session, source.text)
        if source.view.query_columns:
            rows = rows.select(*(quoted([name]) for name in source.view.query_columns))
        yield rows.toDF(*source.view.columns)


def table_frame(spark: SparkSession, table: CatalogTable, options: Mapping[str, str] | None) -> DataFrame:
    """Return the current rows of a table, by the session's options and further ones."""
    return _table_rows(spark, table.location, {**read_options(spark, table, None), **(options or {})})


def read_options(spark: SparkSession, table: CatalogTable, session: Mapping[str, str] | None) -> dict[str, str]:
    """Return the options of a read of a table: its properties, overridden by the session's settings (None: the current
    ones)."""
    table_options = table.options if table.properties else {}
    return {**table_options, **(session_options(spark) if session is None else session)}


def _cached(spark: SparkSession, location: str, all_options: dict[str, str]) -> DataFrame | None:
    """Return the rows of a table that is cached; None if it is not."""
    return cached_rows(spark, location, all_options, lambda: _table_rows(spark, location, all_options))


def _table_rows(spark: SparkSession, location: str, all_options: Mapping[str, str]) -> DataFrame:
    opened = TableQuery.open(spark, location, all_options)
    return _partitions_last(opened.rows(spark), opened)


def _partitions_last(rows: DataFrame, opened: TableQuery) -> DataFrame:
    """Return the rows of a table with partition columns last, as the catalog lists columns."""
    names = partitions_last(rows.columns, opened.client.config)
    return rows if names == rows.columns else rows.select(*(quoted([name]) for name in names))
