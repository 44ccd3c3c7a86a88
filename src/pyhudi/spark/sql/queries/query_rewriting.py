"""Query rewriting: each Hudi table in a query is replaced by a global view of its current snapshot."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config.case_insensitive_options import with_options
from pyhudi.config.misspelled_options import refuse_misspelled_query
from pyhudi.errors import QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.read.blob_column import read_blob_sql, register_read_blob
from pyhudi.spark.read.load_table import load_table, session_settings
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import has_escapes, quotes_names_by_double_quotes
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogTable, CatalogView, find, full_name
from pyhudi.spark.sql.queries.function_arguments import FunctionResolver
from pyhudi.spark.sql.queries.generated_views import show_rows
from pyhudi.spark.sql.queries.joined_tables import JoinedTables
from pyhudi.spark.sql.queries.permanent_view import PermanentView
from pyhudi.spark.sql.queries.query_scope import QueryScope, parse_table_name
from pyhudi.spark.sql.queries.query_sources import Source, ViewSource, read_options, show_source
from pyhudi.spark.sql.queries.rewritten_query import RewrittenQuery
from pyhudi.spark.sql.queries.time_travel import time_travel_options
from pyhudi.spark.sql.queries.view_refresh import refresh_temporary_view
from pyhudi.spark.sql.queries.view_registry import TemporaryView, folded, global_name, session_id
from pyhudi.spark.sql.session_config import session_options
from pyhudi.sql.rewriting.blob_calls import READ_BLOB, with_blob_calls
from pyhudi.sql.statements import Name
from pyhudi.sql.table_query_shorthand import expand_table_statements
from pyhudi.sql.table_references import Reference, find_references, replaced, streamed_names


def rewrite_query(
    spark: SparkSession, query: str, *, prunes: str = "", persistent: bool = False, args: Any = None
) -> RewrittenQuery:
    """Rewrite a query so that Spark can read its Hudi tables.

    Args:
        spark: The session that will run it.
        query: The text.
        prunes: Suffix of the names of the views, whose files are pruned by the conditions of the query; empty: no
            pruning, because other queries will use the views, too.
        persistent: Spark stores the query, as that of a temporary view.
        args: Values of the parameters of the query.
    """
    return _rewritten(spark, query, QueryScope(prunes=prunes, persistent=persistent, args=args))


def reads_hudi_tables(spark: SparkSession, query: str, namespace: Name | None = None) -> bool:
    """Return True if a query reads Hudi tables or blobs. Nothing of them is read.

    Args:
        spark: The session.
        query: The text.
        namespace: Catalog and database of names of one part; None: the current ones.
    """
    try:
        return _rewritten(spark, query, QueryScope(namespace, resolves_only=True)).reads_hudi_tables
    except AnalysisException:  # the time of time travel is a variable that a script has not declared yet
        return True


def _rewritten(
    spark: SparkSession, query: str, scope: QueryScope, *, double_quoted: bool | None = None
) -> RewrittenQuery:
    """Rewrite a query. ``double_quoted``: double quotes enclose names in it; None: as in the session."""
    written = expand_table_statements(query)
    query = _with_blob_functions(spark, written)
    references = find_references(query) or []
    if '"' in query and references and double_quoted is None:
        double_quoted = quotes_names_by_double_quotes(spark)
    if '"' in query and double_quoted:
        references = [  # the parser takes such names for strings
            replace(reference, predicate=None, joined=()) for reference in references
        ]
    if "\\" in query and any(one.predicate for one in references) and not has_escapes(spark):
        # the parser takes backslashes for escapes
        references = [replace(reference, predicate=None) for reference in references]
    _refuse_streams(spark, query, scope)
    rewritten = _QueryRewriter(spark, query, tuple(references), scope).result()
    return rewritten if query == written else replace(rewritten, reads_hudi_tables=True)


def _refuse_streams(spark: SparkSession, query: str, scope: QueryScope) -> None:
    """Refuse ``FROM STREAM table`` (Spark 4) of a Hudi table, which Spark takes for a view.

    Raises:
        QueryError: The query has it.
    """
    for name in () if spark.version.startswith("3.") else streamed_names(query):
        table = find(spark, scope.qualified(spark, name))
        if isinstance(table, CatalogTable):
            raise QueryError(
                f"FROM STREAM {quoted(name)} is not supported by Hudi tables: read the stream by "
                f"spark.readStream.table({'.'.join(name)!r}), and use a temporary view of it in SQL"
            )


class _QueryRewriter:
    """Rewrites one query."""

    def __init__(self, spark: SparkSession, query: str, references: tuple[Reference, ...], scope: QueryScope) -> None:
        self._spark, self._query, self._references, self._scope = spark, query, references, scope
        self._changes: dict[int, tuple[Reference, str]] = {}
        self._shown: dict[int, str] = {}
        self._sources: dict[str, Source] = {}
        self._temporary: dict[str, Source] = {}
        self._views: list[Name] = []
        self._joined = JoinedTables(spark, self._create_view)

    def result(self) -> RewrittenQuery:
        """Refresh the views of all references, and return the query with their names."""
        for number, reference in enumerate(self._references):
            if reference.arguments is not None:
                self._use_function(number, reference, reference.arguments)
            elif not self._use_temporary_view(reference.name):
                self._use_table(number, reference)
        changes = list(self._changes.values())
        if self._scope.prunes and len(self._joined) > 1:
            changes = [(reference, self._joined.pruned_view(reference) or view) for reference, view in changes]
        return RewrittenQuery(
            replaced(self._query, changes, lambda part: quoted([part])),
            self._sources,
            bool(self._shown or self._temporary),
            self._temporary,
            tuple(self._views),
            self._shown,
            self._query,
        )

    def _show(self, number: int, reference: Reference, view: str, source: Source) -> DataFrame | None:
        """Replace a reference by a view. Return the rows of the view; None if the scope is only to be resolved."""
        rows = None if self._scope.resolves_only else _refresh(self._spark, view, source)
        self._register(number, reference, view, source)
        return rows

    def _register(self, number: int, reference: Reference, view: str, source: Source) -> None:
        self._sources[view] = source
        self._shown[number] = view
        self._changes[number] = reference, _sql_name(self._spark, view)

    def _create_view(self, identity: str, source: Source) -> str:
        """Create a view that no other reference and no other query uses. Return its name in SQL."""
        view = self._view_name(f"{identity} {self._scope.prunes}")
        _refresh(self._spark, view, source)
        return _sql_name(self._spark, view)

    def _view_name(self, identity: str) -> str:
        text = f"{self._scope.session or session_id(self._spark)} {identity}"
        return "_pyhudi_" + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]

    def _use_function(self, number: int, reference: Reference, arguments: tuple[str, ...]) -> None:
        resolver = FunctionResolver(self._spark, self._scope, partial(_rewritten, self._spark))
        resolved = resolver.resolve(reference.name[0], arguments)
        self._views.extend(resolved.views)
        self._show(number, reference, self._view_name(repr(resolved.source)), resolved.source)

    def _use_temporary_view(self, name: Name) -> bool:
        """Refresh a temporary view. Return False for other names, and for views that depend on no Hudi table."""
        scope = self._scope
        if scope.temporary is not None and not scope.is_temporary(name):
            return False
        inner = refresh_temporary_view(self._spark, name, scope.refreshed, self._rewrite_view)
        if inner is None or not inner.reads_hudi_tables:
            return False
        self._temporary |= {**inner.temporary, **inner.sources}
        self._views.append(name)
        return True

    def _rewrite_view(self, view: TemporaryView, scope: QueryScope) -> RewrittenQuery:
        return _QueryRewriter(self._spark, view.query, view.references, scope).result()

    def _use_table(self, number: int, reference: Reference) -> None:
        """Replace a Hudi table, or a permanent view of Hudi tables, by a view, and other names by qualified names."""
        scope = self._scope
        if scope.is_temporary(reference.name):
            self._views.append(reference.name)
            return
        name = scope.qualified(self._spark, reference.name)
        entry = find(self._spark, name)
        if isinstance(entry, CatalogTable):
            self._show_table(number, _with_qualifiers(reference, entry.name), entry)
        elif isinstance(entry, CatalogView) and self._show_view(number, reference, name, entry):
            pass
        elif name != reference.name and reference.time_travel is None:
            self._changes[number] = reference, quoted(name)
        else:
            self._views.append(reference.name)

    def _show_table(self, number: int, reference: Reference, table: CatalogTable) -> None:
        scope = self._scope
        time_travel = time_travel_options(self._spark, table, reference, scope.args)
        table_options = with_options(read_options(self._spark, table, scope.options), dict(reference.options))
        refuse_misspelled_query(dict(reference.options), table_options)
        reference = replace(reference, end=reference.options_end)  # Spark has no options of views
        options = tuple(sorted({**table_options, **time_travel}.items()))
        source = ViewSource(table.location, options, reference.predicate if scope.prunes else None)
        # The name depends on the position in the query, not on conditions or instants, so that views are reused.
        position = f" {scope.prunes} {number}" if source.predicate is not None else ""
        identity = f"{table.location} {options}{position}"
        if time_travel and scope.persistent:
            identity = f"{table.location} {sorted(table_options.items())} {reference.time_travel} {scope.args}"
        rows = self._show(number, reference, self._view_name(identity), source)
        if rows is not None:
            self._joined.add(reference, source, rows)

    def _show_view(self, number: int, reference: Reference, name: Name, stored: CatalogView) -> bool:
        """Replace a permanent view. Return False if it reads no Hudi table."""
        scope, full = self._scope, full_name(self._spark, name)
        prunes = f"{scope.prunes} {number} {name}" if scope.prunes else ""
        view = PermanentView.open(
            self._spark, full, stored, replace(scope, prunes=prunes), rewrite=partial(_rewritten, self._spark)
        )
        inner = view.rewritten()
        if not inner.reads_hudi_tables:
            return False
        if reference.time_travel is not None:
            raise QueryError(f"{quoted(name)} is a view, which has no versions; use time travel of its tables")
        if reference.options:
            raise QueryError(
                f"{quoted(name)} is a view, to which WITH ({reference.options[0][0]} = …) does not apply; read its "
                "tables with it"
            )
        self._sources |= inner.sources
        shown, qualified = self._view_name(f"view {full}"), _with_qualifiers(reference, full)
        if view.cached is None:
            self._show(number, qualified, shown, view.source(inner))
        else:
            show_rows(view.cached_rows(inner), shown)
            self._register(number, qualified, shown, view.source(inner))
        return True


def _with_blob_functions(spark: SparkSession, query: str) -> str:
    """Return a query in which calls of ``read_blob`` are replaced by SQL that Spark can run."""
    text = with_blob_calls(query, read_blob_sql)
    if text == query or spark.catalog.functionExists(READ_BLOB):
        return query
    register_read_blob(spark, {**session_settings(spark, "s3://"), **session_options(spark)})
    return text


def _with_qualifiers(reference: Reference, name: Name) -> Reference:
    """Return a reference with all qualifiers of its columns: its name in the query, and the full one, which is
    given."""
    full, qualifiers = folded((SESSION_CATALOG, *name)), reference.qualifiers
    own = (*qualifiers.own, *(one for one in qualifiers.longer if one.parts in (full, full[1:])))
    return replace(reference, qualifiers=replace(qualifiers, own=own))


def _refresh(spark: SparkSession, view: str, source: Source) -> DataFrame:
    """Replace the definition of a view by the current rows of a source, and return the rows."""
    return show_source(spark, view, source, partial(_rows_of, spark))


def _rows_of(spark: SparkSession, table: str) -> DataFrame:
    """Return the rows of a table or view, given by name or path."""
    if "/" in table:
        return load_table(spark, table, session_options(spark))
    return spark_sql(spark, rewrite_query(spark, f"SELECT * FROM {quoted(parse_table_name(table))}").text)


def _sql_name(spark: SparkSession, view: str) -> str:
    """Return the name of a global temporary view in SQL."""
    return quoted(global_name(spark, view))
