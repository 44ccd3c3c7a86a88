"""``spark.sql``: executes statements on Hudi tables; passes all others to Spark unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import get_ident
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import NotAHudiTableError, QueryError, SqlSyntaxError, UnsupportedTableError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import is_connect, quotes_names_by_double_quotes
from pyhudi.spark.sql.catalog import (
    SESSION_CATALOG,
    CatalogTable,
    find_table,
    full_name,
    non_hudi_tables,
)
from pyhudi.spark.sql.catalog_listing import with_details_of_hudi_tables, without_hudi_tables
from pyhudi.spark.sql.commands import cache_commands, show
from pyhudi.spark.sql.commands.ddl import index_ddl
from pyhudi.spark.sql.commands.ddl.add_columns import add_columns
from pyhudi.spark.sql.commands.ddl.alter_columns import alter_columns
from pyhudi.spark.sql.commands.ddl.alter_table import alter_properties, rename_table
from pyhudi.spark.sql.commands.ddl.create_table import create_table
from pyhudi.spark.sql.commands.ddl.drop_table import drop_table
from pyhudi.spark.sql.commands.ddl.truncate_table import drop_partitions, truncate
from pyhudi.spark.sql.commands.dml.insert import run_insert
from pyhudi.spark.sql.commands.dml.merge import run_merge
from pyhudi.spark.sql.commands.dml.update_delete import run_delete, run_update
from pyhudi.spark.sql.commands.dml.view_target import refuse_view_target
from pyhudi.spark.sql.commands.nested_statements import hudi_statement_of, runnable_script, uses_hudi_tables
from pyhudi.spark.sql.procedures import call
from pyhudi.spark.sql.queries import table_cache
from pyhudi.spark.sql.queries.query_rewriting import reads_hudi_tables, rewrite_query
from pyhudi.spark.sql.queries.view_refresh import refresh_loaded_view, view_definition
from pyhudi.spark.sql.queries.view_registry import (
    forget_view,
    global_name,
    is_temporary,
    remember_view,
    rename_view,
)
from pyhudi.spark.sql.scripts.script_execution import run_script
from pyhudi.spark.sql.spark_statements import collect_statement, empty_result
from pyhudi.spark.sql.statement_parameters import StatementParameters
from pyhudi.sql import statements as s
from pyhudi.sql.blob_calls import READ_BLOB, with_blob_calls
from pyhudi.sql.identifier_clauses import with_plain_identifiers
from pyhudi.sql.parsers.statement_parser import parse, table_of
from pyhudi.sql.procedure_signatures import signatures
from pyhudi.sql.scripts.script_nodes import Script
from pyhudi.sql.table_query_shorthand import expand_table_statements
from pyhudi.sql.table_references import find_references

_READS_ONLY = (s.SelectStatement, s.Show, s.ShowViews, s.ShowTableExtended, s.Describe)
_ACTIONS: dict[type, Callable[[SparkSession, CatalogTable, Any], DataFrame | None]] = {
    s.Update: run_update,
    s.Delete: run_delete,
    s.Merge: run_merge,
    s.SetProperties: alter_properties,
    s.RenameTable: rename_table,
    s.AddColumns: add_columns,
    s.AlterColumns: alter_columns,
    s.DropPartitions: drop_partitions,
    s.Truncate: truncate,
    s.Show: show.show,
    s.Describe: show.describe,
    s.CreateIndex: index_ddl.create_index,
    s.DropIndex: index_ddl.drop_index,
    s.CacheTable: cache_commands.cache_table,
    s.UncacheTable: cache_commands.uncache_table,
}
_HUDI_STATEMENTS = (s.CreateIndex, s.DropIndex, s.RefreshIndex)


def run_sql(spark: SparkSession, text: str, args: Any = None, fields: Mapping[str, Any] | None = None) -> DataFrame:
    """Run a statement.

    Args:
        spark: The session.
        text: The statement.
        args: Values of its parameters.
        fields: Values of ``{names}`` in the text.

    Raises:
        SqlSyntaxError: A statement on a Hudi table, or one that only Hudi has, is invalid.
        QueryError: A statement that changes a Hudi table has a parameter that is no single value, or a field that is a
            computed Column.
    """
    fields = fields or {}
    run_on_spark = partial(spark_sql, spark, text, **({} if args is None else {"args": args}), **fields)
    values = StatementParameters(text, args, fields)
    names_quoted = '"' in text and quotes_names_by_double_quotes(spark)
    values.text = with_plain_identifiers(
        values.text, args, double_quoted=names_quoted, evaluate=partial(_identifier, spark, args)
    )
    try:
        statement = parse(values.text)
    except SqlSyntaxError:
        name = table_of(values.text)
        if name is None or find_table(spark, name) is not None:
            raise
        non_hudi_tables.clear()
        return run_on_spark()  # syntax of another format's tables
    if isinstance(statement, _READS_ONLY):
        return _execute(spark, statement, values, run_on_spark)
    non_hudi_tables.clear()
    try:
        return _execute(spark, statement, values, run_on_spark)
    finally:
        non_hudi_tables.clear()  # a temporary view may have hidden a table


def _identifier(spark: SparkSession, args: Any, expression: str) -> object:
    """Return the value of the argument of an IDENTIFIER clause; None if it has none, which Spark reports."""
    try:
        return collect_statement(spark, f"SELECT {expression}", args)[0][0]
    except PySparkException:
        return None


def _execute(
    spark: SparkSession, statement: Any, values: StatementParameters, run_on_spark: Callable[[], DataFrame]
) -> DataFrame:
    args = values.args
    match statement:
        case None:
            return run_on_spark()
        case s.SelectStatement():
            prepared = rewrite_query(spark, statement.query, prunes=_view_scope(spark, statement), args=args)
            if not prepared.reads_hudi_tables:
                return run_on_spark()
            return values.run(spark, f"{statement.head} {prepared.text}")
        case Script():
            if not uses_hudi_tables(spark, statement):
                return run_on_spark()
            with values.frames_as_views(spark):
                body = runnable_script(spark, values.with_literals(statement))
                return run_script(spark, body, partial(run_sql, spark))
        case s.ExecuteImmediate():
            text = hudi_statement_of(spark, statement, args)
            return run_on_spark() if text is None else run_sql(spark, text)
        case s.CreateFunction(name=name, query=query):
            if reads_hudi_tables(spark, query):
                raise UnsupportedTableError(
                    f"the function {quoted(name)} cannot read Hudi tables, because Spark runs its body out of sight of "
                    "pyhudi; use a view, or join the table"
                )
            return run_on_spark()
        case s.CreateView():
            return _create_view(spark, statement, values, run_on_spark)
        case s.Call() if statement.procedure not in signatures() and has_other_catalog(spark):
            return run_on_spark()
        case s.Call():
            return call(spark, statement)
        case s.ShowViews():
            return without_hudi_tables(spark, run_on_spark())
        case s.ShowTableExtended() if statement.partition:
            table = find_table(spark, statement.table)
            if table is None:
                return run_on_spark()
            return show.show_partition(spark, table, values.with_literals(statement).partition)
        case s.ShowTableExtended(database=database):
            return with_details_of_hudi_tables(spark, database, run_on_spark())
        case s.ClearCache():
            table_cache.clear(spark)
            return run_on_spark()
        case s.CacheTable(query=str(query)):
            prepared = rewrite_query(spark, query, args=args)
            if not prepared.reads_hudi_tables:
                return run_on_spark()
            if args:
                raise QueryError("CACHE TABLE … AS takes no parameters (args); put the values into the statement")
            with values.frames_as_views(spark):
                cache_commands.cache_query(spark, statement, prepared)
            return empty_result(spark)
        case s.MultiInsert():
            return _insert_several(spark, statement, values, run_on_spark)
        case s.CreateTable(like=like, like_any=True) if like is not None and find_table(spark, like) is None:
            return run_on_spark()
        case s.CreateTable():
            with values.frames_as_views(spark):
                create_table(spark, values.with_literals(statement))
            return empty_result(spark)
    table = find_table(spark, statement.name)
    if table is None:
        return _run_on_other_table(spark, statement, values, run_on_spark)
    with values.frames_as_views(spark):
        return _run_on(spark, table, values.with_literals(statement))


def _run_on(spark: SparkSession, table: CatalogTable, statement: Any) -> DataFrame:
    match statement:
        case s.Insert():
            run_insert(spark, table, statement)
        case s.DropTable():
            drop_table(spark, table, purge=statement.purge)
        case s.RefreshIndex():
            index_ddl.refresh_index(spark, table, statement)
        case s.RefreshTable():
            pass  # every query reads the current timeline
        case s.RepairPartitions():
            pass  # partitions are those of the table's files
        case s.UnsupportedStatement(what=what, instead=instead):
            raise UnsupportedTableError(f"{table.sql} is a Hudi table, which {what} does not support; {instead}")
        case s.ChangeView(verb=verb):
            raise _no_view(table, f"use {verb} TABLE")
        case s.UnsupportedAlter():
            raise UnsupportedTableError(
                f"ALTER TABLE {table.sql} {statement.what} … is not supported; columns can be added, renamed, dropped, "
                "moved, commented and given wider types one by one, and partitions dropped"
            )
        case _:
            rows = _ACTIONS[type(statement)](spark, table, statement)
            if rows is not None:
                return rows
    return empty_result(spark)


def _insert_several(
    spark: SparkSession, statement: s.MultiInsert, values: StatementParameters, run_on_spark: Callable[[], DataFrame]
) -> DataFrame:
    """Run several INSERTs after one FROM, one after the other if some are into Hudi tables."""
    tables = [table for name in statement.names if (table := find_table(spark, name)) is not None]
    prepared = rewrite_query(spark, statement.source, args=values.args)
    if not tables:
        if not prepared.reads_hudi_tables:
            return run_on_spark()
        return values.run(spark, " ".join([prepared.text, *statement.inserts]))
    read = next((table for table in tables if table.location in prepared.locations), None)
    if read is not None:
        raise UnsupportedTableError(
            f"{read.sql} is a Hudi table, which FROM before several INSERTs cannot both read and change; write one "
            "INSERT for each table"
        )
    with values.frames_as_views(spark):
        for text in values.with_literals(statement).texts:
            run_sql(spark, text)
    return empty_result(spark)


def _run_on_other_table(
    spark: SparkSession, statement: Any, values: StatementParameters, run_on_spark: Callable[[], DataFrame]
) -> DataFrame:
    """Execute a statement on a table that is not a Hudi table or does not exist."""
    if isinstance(statement, _HUDI_STATEMENTS):
        raise NotAHudiTableError(f"there is no Hudi table {'.'.join(statement.name)!r} in the catalog")
    if isinstance(statement, s.Insert | s.Update | s.Delete | s.Merge):
        refuse_view_target(spark, statement.name, type(statement).__name__.upper())
    head, text, tail = "", "", ""
    match statement:
        case s.RefreshTable(name=name) if refresh_loaded_view(spark, name):
            return empty_result(spark)
        case s.Insert():
            head, text = statement.head, statement.query
        case s.Update() | s.Delete() | s.Merge():
            text = values.text
        case s.UnsupportedStatement():
            head, text, tail = statement.head, statement.text, statement.tail
        case s.RefreshTable(name=name):
            cache_commands.refresh_view(spark, name)
        case s.CacheTable(name=name) if cache_commands.cache_view(spark, name, statement):
            return empty_result(spark)
        case s.UncacheTable(name=name) if cache_commands.uncache_view(spark, name):
            return empty_result(spark)
        case s.RenameTable(name=name, to=to) | s.ChangeView(name=name, to=tuple(to)):
            cached = cache_commands.is_cached_view(spark, name)
            rows = run_on_spark()
            rename_view(spark, name, to)
            if cached:
                cache_commands.rename_view(spark, name, to)
            return rows
        case s.ChangeView(name=name, verb="DROP"):
            rows = run_on_spark()
            forget_view(spark, name)
            return rows
        case s.ChangeView(name=name, query=str(query), head=view_head):
            view = s.CreateView(name, view_head, query, temporary=is_temporary(spark, name), replace=True)
            if view.temporary:
                return _create_temporary_view(spark, name, view, values, run_on_spark)
            _check_view(spark, view)
            return run_on_spark()
    prepared = rewrite_query(spark, text, args=values.args) if text else None
    if prepared is None or not prepared.reads_hudi_tables:
        return run_on_spark()
    return values.run(spark, f"{head} {prepared.text} {tail}")


def _create_view(
    spark: SparkSession, statement: s.CreateView, values: StatementParameters, run_on_spark: Callable[[], DataFrame]
) -> DataFrame:
    if not statement.temporary:
        # by its full name, because temporary views with that name are not in the catalog
        name = statement.name if len(statement.name) > 2 else full_name(spark, statement.name)
        table = find_table(spark, name) if statement.replace else None
        if table is not None:
            raise _no_view(table, "use DROP TABLE first, or choose another name for the view")
        _check_view(spark, statement)
        return run_on_spark()  # its query is rewritten whenever it is used
    name = statement.name[-1:]
    if "GLOBAL" in statement.head.upper().split():
        name = global_name(spark, name[0])
    return _create_temporary_view(spark, name, statement, values, run_on_spark)


def _create_temporary_view(
    spark: SparkSession,
    name: s.Name,
    statement: s.CreateView,
    values: StatementParameters,
    run_on_spark: Callable[[], DataFrame],
) -> DataFrame:
    if statement.query is None:
        rows = run_on_spark()
        forget_view(spark, name)
        return rows
    prepared = rewrite_query(spark, statement.query, persistent=True, args=values.args)
    view = view_definition(spark, statement, prepared, values.args)  # first: it may have the name of one of its tables
    rows = values.run(spark, f"{statement.head} {prepared.text}") if prepared.reads_hudi_tables else run_on_spark()
    if view is None:
        forget_view(spark, name)
    else:
        remember_view(spark, name, view)
    return rows


def _check_view(spark: SparkSession, statement: s.CreateView) -> None:
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


def _no_permanent_view(statement: s.CreateView, what: str) -> QueryError:
    name = quoted(statement.name)
    return QueryError(f"the permanent view {name} cannot have {what}; use CREATE TEMPORARY VIEW, or a table")


def _no_view(table: CatalogTable, instead: str) -> QueryError:
    return QueryError(f"{table.sql} is a Hudi table, and no view, although Spark lists it as one; {instead}")


def _view_scope(spark: SparkSession, statement: s.SelectStatement) -> str:
    """Return the name of the views of a query whose files are pruned by its conditions; empty if they must not be.

    Spark resolves views immediately, but Spark Connect when rows are fetched. By then they may be those of another
    query. Each thread of a session has its own views.
    """
    kind = statement.head.strip().upper().split(" ")[0]
    return f"query {get_ident()}" if kind in ("", "EXPLAIN") and not is_connect(spark) else ""


def has_other_catalog(spark: SparkSession) -> bool:
    """Return True if the current catalog is not Spark's: another one may have procedures of its own."""
    return str(spark.catalog.currentCatalog()) != SESSION_CATALOG
