"""Statements on tables and views that are not Hudi tables, which may read Hudi tables."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from pyhudi.errors import NotAHudiTableError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.commands import cache_commands, view_commands
from pyhudi.spark.sql.commands.dml.view_target import refuse_view_target
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.queries.view_refresh import refresh_loaded_view
from pyhudi.spark.sql.spark_statements import empty_result
from pyhudi.spark.sql.statement_call import StatementCall
from pyhudi.sql import statements as s


def run_on_other_table(call: StatementCall, statement: Any) -> DataFrame:
    """Execute a statement on a table that is not a Hudi table or does not exist.

    Raises:
        NotAHudiTableError: Only Hudi has the statement.
        QueryError: It would change a view of Hudi tables.
    """
    spark = call.spark
    shows_indexes = isinstance(statement, s.Show) and statement.what == "INDEXES"
    if shows_indexes or isinstance(statement, s.INDEX_STATEMENTS):
        raise NotAHudiTableError(f"there is no Hudi table {'.'.join(statement.name)!r} in the catalog")
    if isinstance(statement, s.Insert | s.Update | s.Delete | s.Merge):
        refuse_view_target(spark, statement.name, type(statement).__name__.upper())
    match statement:
        case s.Insert(head=head, query=query):
            return _run_with_query(call, head, query)
        case s.Update() | s.Delete() | s.Merge():
            return _run_with_query(call, "", call.values.text)
        case s.ExplainChange(head=head, text=text) | s.UnsupportedStatement(head=head, text=text):
            return _run_with_query(call, head, text)
        case s.RefreshTable(name=name):
            if refresh_loaded_view(spark, name):
                return empty_result(spark)
            cache_commands.refresh_view(spark, name)
        case s.CacheTable(name=name) if cache_commands.cache_view(spark, name, statement):
            return empty_result(spark)
        case s.UncacheTable(name=name) if cache_commands.uncache_view(spark, name):
            return empty_result(spark)
        case s.RenameTable(name=name, to=to) | s.ChangeView(name=name, to=tuple(to)):
            return view_commands.rename(call, name, to)
        case s.ChangeView(name=name, verb="DROP"):
            return view_commands.drop_view(call, name)
        case s.ChangeView(query=str(query)):
            return view_commands.alter_view(call, statement, query)
        case s.ChangeView(name=name, clauses=clauses) if clauses:
            view_commands.check_clauses(spark, name, clauses, f"SELECT * FROM {quoted(name)}")
    return call.run_on_spark()


def _run_with_query(call: StatementCall, head: str, query: str) -> DataFrame:
    """Run a statement of Spark with a query in it, which may read Hudi tables."""
    if not query:
        return call.run_on_spark()
    return call.run_rewritten(head, rewrite_query(call.spark, query, args=call.args))
