"""``spark.sql``: executes statements on Hudi tables; passes all others to Spark unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import QueryError, SqlSyntaxError, UnsupportedTableError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import has_escapes, is_connect, quotes_names_by_double_quotes
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogTable, find_table, non_hudi_tables
from pyhudi.spark.sql.catalog_listing import with_details_of_hudi_tables, without_hudi_tables
from pyhudi.spark.sql.commands import cache_commands, show
from pyhudi.spark.sql.commands.ddl import index_ddl
from pyhudi.spark.sql.commands.ddl.add_columns import add_columns
from pyhudi.spark.sql.commands.ddl.alter_columns import alter_columns
from pyhudi.spark.sql.commands.ddl.alter_table import alter_properties, rename_table
from pyhudi.spark.sql.commands.ddl.create_table import create_table
from pyhudi.spark.sql.commands.ddl.drop_table import drop_table
from pyhudi.spark.sql.commands.ddl.truncate_table import drop_partitions, truncate
from pyhudi.spark.sql.commands.dml.explain import explain_change
from pyhudi.spark.sql.commands.dml.insert import run_insert
from pyhudi.spark.sql.commands.dml.merge import run_merge
from pyhudi.spark.sql.commands.dml.multi_insert import run_inserts
from pyhudi.spark.sql.commands.dml.update_delete import run_delete, run_update
from pyhudi.spark.sql.commands.nested_statements import hudi_statement_of, runnable_script, uses_hudi_tables
from pyhudi.spark.sql.commands.other_tables import run_on_other_table
from pyhudi.spark.sql.commands.view_commands import create_view, no_view
from pyhudi.spark.sql.procedures import call_procedure
from pyhudi.spark.sql.queries import table_cache
from pyhudi.spark.sql.queries.query_rewriting import reads_hudi_tables, rewrite_query
from pyhudi.spark.sql.scripts.script_execution import run_script
from pyhudi.spark.sql.spark_statements import collect_statement, empty_result
from pyhudi.spark.sql.statement_call import StatementCall
from pyhudi.spark.sql.statement_parameters import StatementParameters
from pyhudi.spark.sql.variable_substitution import with_variables
from pyhudi.sql import statements as s
from pyhudi.sql.parsers.statement_parser import parse, table_of
from pyhudi.sql.procedure_signatures import signatures
from pyhudi.sql.rewriting.identifier_clauses import with_plain_identifiers
from pyhudi.sql.scripts.script_nodes import Script

_READS_ONLY = (s.SelectStatement, s.Show, s.ShowViews, s.ShowTableExtended, s.Describe)
_ACTIONS: dict[type, Callable[[SparkSession, CatalogTable, Any], DataFrame | None]] = {
    s.Update: run_update,
    s.Delete: run_delete,
    s.Merge: run_merge,
    s.ExplainChange: explain_change,
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


def run_sql(spark: SparkSession, text: str, args: Any = None, fields: Mapping[str, Any] | None = None) -> DataFrame:
    """Run a statement.

    Args:
        spark: The session.
        text: The statement.
        args: Values of its parameters.
        fields: Values of ``{names}`` in the text.

    Raises:
        SqlSyntaxError: A statement on a Hudi table, or one that only Hudi has, is invalid, or a variable (``${name}``)
            refers to itself.
        QueryError: A statement that changes a Hudi table has a parameter that is no single value, or a field that is a
            computed Column.
    """
    fields = fields or {}
    run_on_spark = partial(spark_sql, spark, text, **({} if args is None else {"args": args}), **fields)
    values = StatementParameters(text, args, fields, escapes=not args or has_escapes(spark))
    values.text = with_variables(spark, values.text)
    names_quoted = '"' in values.text and quotes_names_by_double_quotes(spark)
    values.text = with_plain_identifiers(
        values.text, args, double_quoted=names_quoted, evaluate=partial(_identifier, spark, args)
    )
    try:
        statement = _parsed(values)
    except SqlSyntaxError:
        name = table_of(values.text)
        if name is None or find_table(spark, name) is not None:
            raise
        non_hudi_tables.clear()
        return run_on_spark()  # syntax of another format's tables
    call = StatementCall(spark, values, run_on_spark)
    if isinstance(statement, _READS_ONLY):
        return _execute(call, statement)
    non_hudi_tables.clear()
    try:
        return _execute(call, statement)
    finally:
        non_hudi_tables.clear()  # a temporary view may have hidden a table


def _parsed(values: StatementParameters) -> s.Statement | None:
    """Parse a statement, with the values of its parameters if it has some where only a literal is expected, as in
    TBLPROPERTIES."""
    try:
        return parse(values.text)
    except SqlSyntaxError:
        with suppress(QueryError):  # a parameter that is no literal
            if values.args:
                return values.with_literals(None)
        raise


def _identifier(spark: SparkSession, args: Any, expression: str) -> object:
    """Return the value of the argument of an IDENTIFIER clause; None if it has none, which Spark reports."""
    try:
        return collect_statement(spark, f"SELECT {expression}", args)[0][0]
    except PySparkException:
        return None


def _execute(call: StatementCall, statement: Any) -> DataFrame:
    if statement is None:
        return call.run_on_spark()
    run = _STATEMENTS.get(type(statement), _run_on_named_table)
    return run(call, statement)


def _run_select(call: StatementCall, statement: s.SelectStatement) -> DataFrame:
    scope = _view_scope(call.spark, statement)
    return call.run_rewritten(statement.head, rewrite_query(call.spark, statement.query, prunes=scope, args=call.args))


def _view_scope(spark: SparkSession, statement: s.SelectStatement) -> str:
    """Return the name of the views of a query whose files are pruned by its conditions; empty if they must not be.

    Spark resolves views immediately, but Spark Connect when rows are fetched. By then they may be those of another
    query. Each thread of a session has its own views.
    """
    kind = statement.head.strip().upper().split(" ")[0]
    return f"query {get_ident()}" if kind in ("", "EXPLAIN") and not is_connect(spark) else ""


def _run_script(call: StatementCall, script: Script) -> DataFrame:
    spark = call.spark
    if not uses_hudi_tables(spark, script):
        return call.run_on_spark()
    with call.values.frames_as_views(spark):
        return run_script(spark, runnable_script(spark, call.values.with_literals(script)), partial(run_sql, spark))


def _execute_immediate(call: StatementCall, statement: s.ExecuteImmediate) -> DataFrame:
    text = hudi_statement_of(call.spark, statement, call.args)
    return call.run_on_spark() if text is None else run_sql(call.spark, text)


def _create_function(call: StatementCall, statement: s.CreateFunction) -> DataFrame:
    if reads_hudi_tables(call.spark, statement.query):
        raise UnsupportedTableError(
            f"the function {quoted(statement.name)} cannot read Hudi tables, because Spark runs its body out of sight "
            "of pyhudi; use a view, or join the table"
        )
    return call.run_on_spark()


def _call_procedure(call: StatementCall, statement: s.Call) -> DataFrame:
    if statement.procedure not in signatures() and has_other_catalog(call.spark):
        return call.run_on_spark()
    return call_procedure(call.spark, statement)


def has_other_catalog(spark: SparkSession) -> bool:
    """Return True if the current catalog is not Spark's: another one may have procedures of its own."""
    return str(spark.catalog.currentCatalog()) != SESSION_CATALOG


def _show_table_extended(call: StatementCall, statement: s.ShowTableExtended) -> DataFrame:
    if not statement.partition:
        return with_details_of_hudi_tables(call.spark, statement.database, call.run_on_spark())
    table = find_table(call.spark, statement.table)
    if table is None:
        return call.run_on_spark()
    return show.show_partition(call.spark, table, call.values.with_literals(statement).partition)


def _clear_cache(call: StatementCall, _: s.ClearCache) -> DataFrame:
    table_cache.clear(call.spark)
    return call.run_on_spark()


def _cache_table(call: StatementCall, statement: s.CacheTable) -> DataFrame:
    if statement.query is None:
        return _run_on_named_table(call, statement)
    prepared = rewrite_query(call.spark, statement.query, args=call.args)
    if not prepared.reads_hudi_tables:
        return call.run_on_spark()
    if call.args:
        raise QueryError("CACHE TABLE … AS takes no parameters (args); put the values into the statement")
    with call.values.frames_as_views(call.spark):
        cache_commands.cache_query(call.spark, statement, prepared)
    return empty_result(call.spark)


def _create_table(call: StatementCall, statement: s.CreateTable) -> DataFrame:
    like = statement.like if statement.like_any else None
    if like is not None and find_table(call.spark, like) is None:
        return call.run_on_spark()
    with call.values.frames_as_views(call.spark):
        create_table(call.spark, call.values.with_literals(statement))
    return empty_result(call.spark)


_STATEMENTS: dict[type, Callable[[StatementCall, Any], DataFrame]] = {
    s.SelectStatement: _run_select,
    Script: _run_script,
    s.ExecuteImmediate: _execute_immediate,
    s.CreateFunction: _create_function,
    s.CreateView: create_view,
    s.Call: _call_procedure,
    s.ShowViews: lambda call, _: without_hudi_tables(call.spark, call.run_on_spark()),
    s.ShowTableExtended: _show_table_extended,
    s.ClearCache: _clear_cache,
    s.CacheTable: _cache_table,
    s.MultiInsert: lambda call, statement: run_inserts(call, statement, partial(run_sql, call.spark)),
    s.CreateTable: _create_table,
}
"""Statements that name no table, several ones, or one that need not exist; `_run_on_named_table` runs the others."""


def _run_on_named_table(call: StatementCall, statement: Any) -> DataFrame:
    spark = call.spark
    table = find_table(spark, statement.name)
    if table is None:
        return run_on_other_table(call, statement)
    with call.values.frames_as_views(spark):
        return _run_on(spark, table, call.values.with_literals(statement))


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
            raise no_view(table, f"use {verb} TABLE")
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
