"""CREATE, ALTER, DROP and RENAME of views."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.catalog import CatalogTable, find_table, full_name
from pyhudi.spark.sql.commands import cache_commands
from pyhudi.spark.sql.queries.query_rewriting import reads_hudi_tables, rewrite_query
from pyhudi.spark.sql.queries.view_refresh import view_definition
from pyhudi.spark.sql.queries.view_registry import forget_view, global_name, is_temporary, remember_view, rename_view
from pyhudi.spark.sql.statement_call import StatementCall
from pyhudi.sql.rewriting.blob_calls import READ_BLOB, with_blob_calls
from pyhudi.sql.statements import ChangeView, CreateView, Name
from pyhudi.sql.table_query_shorthand import expand_table_statements
from pyhudi.sql.table_references import find_references
from pyhudi.sql.token_cursor import Cursor

_CLAUSES_OF_SPARK = {
    "DEFAULT COLLATION": "leave it out, and write COLLATE into the query",
    "SCHEMA EVOLUTION": "leave WITH SCHEMA EVOLUTION out, and replace the view when it should have other columns",
}
"""Clauses of permanent views that Spark evaluates with their queries, and what to do without them."""


def create_view(call: StatementCall, statement: CreateView) -> DataFrame:
    """Run CREATE VIEW or CREATE TEMPORARY VIEW.

    Raises:
        QueryError: The name is that of a Hudi table, or the query of a permanent view depends on pyhudi.
    """
    spark = call.spark
    if statement.temporary:
        name = statement.name[-1:]
        if "GLOBAL" in statement.head.upper().split():
            name = global_name(spark, name[0])
        return _create_temporary_view(call, name, statement)
    # by its full name, because temporary views with that name are not in the catalog
    name = statement.name if len(statement.name) > 2 else full_name(spark, statement.name)
    table = find_table(spark, name) if statement.replace else None
    if table is not None:
        raise no_view(table, "use DROP TABLE first, or choose another name for the view")
    _check_permanent_view(spark, statement)
    return call.run_on_spark()  # its query is rewritten whenever it is used


def alter_view(call: StatementCall, statement: ChangeView, query: str) -> DataFrame:
    """Run ALTER VIEW … AS a query.

    Raises:
        QueryError: The query of a permanent view depends on pyhudi.
    """
    name = statement.name
    view = CreateView(name, statement.head, query, temporary=is_temporary(call.spark, name), replace=True)
    if view.temporary:
        return _create_temporary_view(call, name, view)
    _check_permanent_view(call.spark, view)
    return call.run_on_spark()


def drop_view(call: StatementCall, name: Name) -> DataFrame:
    """Run DROP VIEW."""
    rows = call.run_on_spark()
    forget_view(call.spark, name)
    return rows


def rename(call: StatementCall, name: Name, to: Name) -> DataFrame:
    """Run ALTER VIEW or ALTER TABLE … RENAME TO of anything but a Hudi table. A cached view stays cached."""
    cached = cache_commands.is_cached_view(call.spark, name)
    rows = call.run_on_spark()
    rename_view(call.spark, name, to)
    if cached:
        cache_commands.rename_view(call.spark, name, to)
    return rows


def no_view(table: CatalogTable, instead: str) -> QueryError:
    """Return the error of a statement on a view, of which the name is that of a Hudi table."""
    return QueryError(f"{table.sql} is a Hudi table, and no view, although Spark lists it as one; {instead}")


def _create_temporary_view(call: StatementCall, name: Name, statement: CreateView) -> DataFrame:
    spark = call.spark
    if statement.query is None:
        rows = call.run_on_spark()
        forget_view(spark, name)
        return rows
    prepared = rewrite_query(spark, statement.query, persistent=True, args=call.args)
    view = view_definition(spark, statement, prepared, call.args)  # first: it may have the name of one of its tables
    rows = call.run_rewritten(statement.head, prepared)
    if view is None:
        forget_view(spark, name)
    else:
        remember_view(spark, name, view)
    return rows


def _check_permanent_view(spark: SparkSession, statement: CreateView) -> None:
    """Refuse a permanent view whose query only a session with pyhudi could check.

    Raises:
        QueryError: The query depends on pyhudi; the message has the reason.
    """
    query = expand_table_statements(statement.query or "")
    if with_blob_calls(query, lambda _: "NULL") != query:
        raise _no_permanent_view(statement, f"the function {READ_BLOB}")
    for reference in find_references(query) or ():
        what = None
        if reference.arguments is not None:
            what = f"the table function {reference.name[0]}"
        elif (table := find_table(spark, reference.name)) is not None:
            if reference.time_travel is not None:
                what = f"time travel of {table.sql}"
            elif table.is_path:
                what = f"{table.sql}, which is a path and no table of the catalog"
        if what is not None:
            raise _no_permanent_view(statement, what)
    check_clauses(spark, statement.name, statement.clauses, query)


def check_clauses(spark: SparkSession, name: Name, clauses: str, query: str) -> None:
    """Refuse clauses of a permanent view that Spark evaluates with its query, if that reads Hudi tables.

    Raises:
        QueryError: The clauses have one of them.
    """
    clause = next((words for words in _CLAUSES_OF_SPARK if _has_words(clauses, words)), None)
    if clause is not None and reads_hudi_tables(spark, query):
        cure = _CLAUSES_OF_SPARK[clause]
        raise QueryError(f"the permanent view {quoted(name)} of Hudi tables cannot have {clause}: {cure}")


def _has_words(text: str, words: str) -> bool:
    """Return True if a text has these words, one after the other, outside of strings."""
    cursor = Cursor(text)
    while not cursor.done and not cursor.sees(*words.split()):
        cursor.at += 1
    return not cursor.done


def _no_permanent_view(statement: CreateView, what: str) -> QueryError:
    name = quoted(statement.name)
    return QueryError(f"the permanent view {name} cannot have {what}; use CREATE TEMPORARY VIEW, or a table")
