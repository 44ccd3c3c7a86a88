"""Refresh of temporary views over Hudi tables: each query that uses one sees the current snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from pyhudi.errors import HudiError, warn
from pyhudi.spark.column_names import quoted
from pyhudi.spark.read.table_lineage import SNAPSHOT_ID_PREFIX
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.queries.query_scope import QueryScope, RefreshedViews, qualified_name
from pyhudi.spark.sql.queries.rewritten_query import RewrittenQuery
from pyhudi.spark.sql.queries.view_registry import (
    TemporaryView,
    folded,
    forget_view,
    is_temporary,
    load_of_view,
    remember_view,
    session_id,
    temporary_view,
)
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.spark_statements import collect_statement
from pyhudi.sql.statements import CreateView, Name
from pyhudi.sql.table_references import find_references

RewriteView: TypeAlias = Callable[[TemporaryView, QueryScope], RewrittenQuery]
"""Rewrites the query of a temporary view in its scope."""


def view_definition(
    spark: SparkSession, statement: CreateView, prepared: RewrittenQuery, args: Any
) -> TemporaryView | None:
    """Return the definition of a temporary view.

    Args:
        spark: The session that creates it.
        statement: The statement that creates it.
        prepared: The rewritten query.
        args: Values of the parameters of the query.

    Returns:
        The definition; None if the query reads no tables.
    """
    if not prepared.shown and not prepared.views:
        return None
    return TemporaryView(
        query=prepared.query,
        references=tuple(find_references(prepared.query) or ()),
        namespace=(str(spark.catalog.currentCatalog()), str(spark.catalog.currentDatabase())),
        temporary=frozenset(folded(name) for name in prepared.views if is_temporary(spark, name)),
        options=session_options(spark),
        args=args,
        clauses=statement.clauses,
        session=session_id(spark),
        shown=prepared.shown,
    )


def refresh_temporary_view(
    spark: SparkSession, name: Name, refreshed: RefreshedViews, rewrite: RewriteView
) -> RewrittenQuery | None:
    """Refresh a temporary view. Return its query, or None for an unregistered view.

    Args:
        spark: The session.
        name: The view's name.
        refreshed: The temporary views that have been refreshed.
        rewrite: Rewrites the query of the view, and refreshes the views that it uses.
    """
    view = temporary_view(spark, name)
    if view is None:
        return None
    if folded(name) not in refreshed:
        refreshed[folded(name)] = None  # it may refer to itself
        refreshed[folded(name)] = _refreshed(spark, name, view, refreshed, rewrite)
    return refreshed[folded(name)]


def refresh_loaded_view(spark: SparkSession, name: Name) -> bool:
    """Load the DataFrame of a temporary view again, with the same options. Warn of a view of a DataFrame that was
    derived from a loaded one, whose snapshot stays.

    Returns:
        False for other views and tables, to which nothing is done.
    """
    if temporary_view(spark, name) is not None or not is_temporary(spark, name):
        return False
    if SNAPSHOT_ID_PREFIX not in plan_of_view(spark, name):  # it was replaced outside of pyhudi, or reads no Hudi table
        forget_view(spark, name)
        return False
    request = load_of_view(spark, name)
    if request is None:
        warn(
            f"REFRESH TABLE has no effect on {'.'.join(name)!r}: the view has a DataFrame that was derived from a "
            "loaded Hudi table, and keeps its snapshot; load the table and create the view again"
        )
        return False
    frame = request.load(spark)
    (frame.createOrReplaceTempView if len(name) == 1 else frame.createOrReplaceGlobalTempView)(quoted(name[-1:]))
    return True


def _refreshed(
    spark: SparkSession, name: Name, view: TemporaryView, refreshed: RefreshedViews, rewrite: RewriteView
) -> RewrittenQuery | None:
    scope = QueryScope(
        view.namespace,
        view.temporary,
        persistent=True,
        options=view.options,
        session=view.session,
        args=view.args,
        refreshed=refreshed,
    )
    try:
        rewritten = rewrite(view, scope)
    except HudiError:
        if _is_another(spark, name, view, {}):
            forget_view(spark, name)
            return None
        raise
    if rewritten.shown == view.shown:
        return rewritten
    if _is_another(spark, name, view, rewritten.shown):
        forget_view(spark, name)
        return None
    kind = "TEMPORARY VIEW" if len(name) == 1 else "GLOBAL TEMPORARY VIEW"
    spark_sql(spark, f"CREATE OR REPLACE {kind} {quoted(name[-1:])} {view.clauses} AS {rewritten.text}")
    remember_view(spark, name, replace(view, shown=rewritten.shown))
    return rewritten


def _is_another(spark: SparkSession, name: Name, view: TemporaryView, shown: Mapping[int, str]) -> bool:
    """Return True if a temporary view was replaced outside of pyhudi, for example by a program in Scala.

    Args:
        spark: The session.
        name: The view's name.
        view: The registered definition.
        shown: The views of the tables that it would read now.
    """
    plan = plan_of_view(spark, name).lower()
    tables = [qualified_name(spark, view.references[n].name, view.namespace) for n in shown if n not in view.shown]
    expected = [*view.shown.values(), *(".".join(table) for table in tables)]
    return not all(name_or_view.lower() in plan for name_or_view in expected)


def plan_of_view(spark: SparkSession, name: Name) -> str:
    """Return Spark's plans of a query of a view."""
    return str(collect_statement(spark, f"EXPLAIN EXTENDED SELECT * FROM {quoted(name)}")[0][0])
