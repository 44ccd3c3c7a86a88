"""Rewrites queries: each Hudi table in a query becomes a global view of the table as it is now."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import HudiError, QueryError
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.read.blob_column import read_blob_sql, register_read_blob
from pyhudi.spark.read.load_table import load_table, session_settings
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogTable, CatalogView, find, full_name
from pyhudi.spark.sql.passthrough_statements import fetched, spark_sql
from pyhudi.spark.sql.queries.query_sources import (
    FunctionSource,
    QuerySource,
    Source,
    ViewSource,
    read_options,
    show_source,
)
from pyhudi.spark.sql.queries.semi_join_pruning import TableRead, joined_predicate
from pyhudi.spark.sql.queries.table_functions import locate
from pyhudi.spark.sql.queries.temporary_views import (
    TemporaryView,
    folded,
    forget_view,
    global_name,
    is_temporary,
    remember_view,
    session_id,
    temporary_view,
)
from pyhudi.spark.sql.queries.time_travel import time_travel_options
from pyhudi.spark.sql.queries.vector_functions import ordered_arguments, table_positions
from pyhudi.spark.sql.session_config import session_options
from pyhudi.sql.blob_calls import READ_BLOB, with_blob_calls
from pyhudi.sql.short_queries import in_long_form
from pyhudi.sql.statements import CreateView, Name
from pyhudi.sql.table_references import VECTOR_FUNCTIONS, Reference, find_references, replaced
from pyhudi.sql.token_cursor import Cursor


@dataclass(frozen=True, slots=True)
class RewrittenQuery:
    """A query that Spark can run.

    Args:
        text: The query with the names of views.
        sources: What these views show, by name of the view; those that others depend on come first.
        reads_hudi_tables: Whether it reads a Hudi table, or blobs, at all.
        temporary: What the views in temporary views show that the query uses.
        views: Names of these temporary views, and others that may become one.
        shown: The views by which references are replaced, by number of the reference.
        query: The query with the names of tables.
    """

    text: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    reads_hudi_tables: bool = False
    temporary: Mapping[str, Source] = field(default_factory=dict)
    views: tuple[Name, ...] = ()
    shown: Mapping[int, str] = field(default_factory=dict)
    query: str = ""

    @property
    def locations(self) -> frozenset[str]:
        """Locations of the tables that the query reads."""
        found: set[str] = set()
        for source in (*self.sources.values(), *self.temporary.values()):
            match source:
                case ViewSource(location=location):
                    found.add(location)
                case FunctionSource(locations=locations):
                    found.update(locations)
        return frozenset(found)


_UpToDate: TypeAlias = dict[Name, "RewrittenQuery | None"]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the names in a query mean, and where it is used.

    Args:
        namespace: The database of names without one, with its catalog if it has one; None: the current one.
        temporary: Names in lower case that mean temporary views; None: those of all that there are.
        prunes: Files are left out by what the query says in WHERE, and this text tells its views from those of others;
            empty: they are not, and queries share views.
        lasting: Whether Spark keeps the query, as that of a temporary view.
        options: The session's settings of Apache Hudi; None: as they are now.
        session: The session whose views stand for tables (`session_id`); None: this one.
        args: Values of the parameters of the query.
        refreshed: Queries of the temporary views that are up to date by now, by name.
    """

    namespace: Name | None = None
    temporary: frozenset[Name] | None = None
    prunes: str = ""
    lasting: bool = False
    options: Mapping[str, str] | None = None
    session: str | None = None
    args: Any = None
    refreshed: _UpToDate = field(default_factory=dict)

    def is_temporary(self, name: Name) -> bool:
        """Return True if a name means a temporary view, whatever there is now."""
        return self.temporary is not None and folded(name) in self.temporary

    def qualified(self, spark: SparkSession, name: Name) -> Name:
        """Return a name so that it means the same in any database and catalog."""
        return name if self.is_temporary(name) else _full_name(spark, name, self.namespace)


def rewrite_query(
    spark: SparkSession, query: str, *, prunes: str = "", lasting: bool = False, args: Any = None
) -> RewrittenQuery:
    """Make the Hudi tables of a query known to Spark.

    Args:
        spark: The session that will run it.
        query: The text.
        prunes: Files are left out by what the query says in WHERE, and this text tells its views from those of views in
            it; empty: they are not, because the views will be looked at again, by other queries.
        lasting: Whether Spark keeps the query, as that of a temporary view.
        args: Values of the parameters of the query.
    """
    return _rewritten(spark, query, _Scope(prunes=prunes, lasting=lasting, args=args))


def _rewritten(spark: SparkSession, query: str, scope: _Scope) -> RewrittenQuery:
    written = in_long_form(query)
    query = _reading_blobs(spark, written)
    references = find_references(query) or []
    if '"' in query and references and _quotes_names_by_double_quotes(spark):
        references = [replace(one, predicate=None, joined=()) for one in references]  # taken for texts there
    found = _Rewriting(spark, query, tuple(references), scope).result()
    return found if query == written else replace(found, reads_hudi_tables=True)


def view_definition(
    spark: SparkSession, statement: CreateView, prepared: RewrittenQuery, args: Any
) -> TemporaryView | None:
    """Return what is to be remembered of a temporary view.

    Args:
        spark: The session that creates it.
        statement: The statement by which it does.
        prepared: The query as it is given to Spark.
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


class _Rewriting:
    """The rewriting of one query."""

    def __init__(self, spark: SparkSession, query: str, references: tuple[Reference, ...], scope: _Scope) -> None:
        self._spark, self._query, self._references, self._scope = spark, query, references, scope
        self._changes: dict[int, tuple[Reference, str]] = {}
        self._shown: dict[int, str] = {}
        self._sources: dict[str, Source] = {}
        self._temporary: dict[str, Source] = {}
        self._views: list[Name] = []
        self._tables: dict[int, ViewSource] = {}
        self._reads: dict[int, TableRead] = {}

    def result(self) -> RewrittenQuery:
        """Refresh the views of all references."""
        for number, reference in enumerate(self._references):
            if reference.arguments is not None:
                self._use_function(number, reference, reference.arguments)
            elif not self._use_temporary_view(reference.name):
                self._use_table(number, reference)
        changes = list(self._changes.values())
        if self._scope.prunes and len(self._reads) > 1:
            changes = [
                (one, _joined_view(self._spark, one, self._scope.prunes, self._tables, self._reads) or view)
                for one, view in changes
            ]
        return RewrittenQuery(
            replaced(self._query, changes, lambda part: quoted([part])),
            self._sources,
            bool(self._shown or self._temporary),
            self._temporary,
            tuple(self._views),
            self._shown,
            self._query,
        )

    def _show(self, number: int, reference: Reference, view: str, source: Source) -> DataFrame:
        """Have a view in place of a reference; returns its rows."""
        rows = _refresh(self._spark, view, source)
        self._sources[view] = source
        self._shown[number] = view
        self._changes[number] = reference, _global(self._spark, view)
        return rows

    def _view_name(self, what: str) -> str:
        return _view_name(self._scope.session or session_id(self._spark), what)

    def _use_function(self, number: int, reference: Reference, arguments: tuple[str, ...]) -> None:
        source = self._function_source(reference.name[0], arguments)
        self._show(number, reference, self._view_name(repr(source)), source)

    def _use_temporary_view(self, name: Name) -> bool:
        """Bring a temporary view up to date; returns False if it is none, or one that depends on no Hudi table."""
        scope = self._scope
        if scope.temporary is not None and not scope.is_temporary(name):
            return False
        inner = _up_to_date(self._spark, name, scope.refreshed)
        if inner is None or not inner.reads_hudi_tables:
            return False
        self._temporary |= {**inner.temporary, **inner.sources}
        self._views.append(name)
        return True

    def _use_table(self, number: int, reference: Reference) -> None:
        """Have a view in place of a Hudi table, or of a view over such, and full names in place of others."""
        scope = self._scope
        if scope.is_temporary(reference.name):
            self._views.append(reference.name)
            return
        name = scope.qualified(self._spark, reference.name)
        found = find(self._spark, name)
        if isinstance(found, CatalogTable):
            self._show_table(number, replace(reference, qualified=_qualifiers(reference, found.name)), found)
        elif isinstance(found, CatalogView) and self._show_view(number, reference, name, found):
            pass
        elif name != reference.name and reference.as_of is None and reference.version is None:
            self._changes[number] = reference, quoted(name)
        else:
            self._views.append(reference.name)

    def _show_table(self, number: int, reference: Reference, table: CatalogTable) -> None:
        scope = self._scope
        moment = time_travel_options(self._spark, table, reference, scope.args)
        own = read_options(self._spark, table, scope.options)
        given = tuple(sorted({**own, **moment}.items()))
        source = ViewSource(table.location, given, reference.predicate if scope.prunes else None)
        # a name for each place in a query, not for each condition, or each moment: there would be ever more of them
        place = f" {scope.prunes} {number}" if source.predicate is not None else ""
        what = f"{table.location} {given}{place}"
        if moment and scope.lasting:
            what = f"{table.location} {sorted(own.items())} {reference.as_of} {reference.version} {scope.args}"
        rows = self._show(number, reference, self._view_name(what), source)
        self._reads[reference.start] = TableRead(rows, reference.predicate)
        self._tables[reference.start] = source

    def _show_view(self, number: int, reference: Reference, name: Name, stored: CatalogView) -> bool:
        """Show a permanent view; returns False if it reads no Hudi table."""
        spark, scope = self._spark, self._scope
        full = full_name(spark, name)
        prunes = f"{scope.prunes} {number} {name}" if scope.prunes else ""
        own = replace(scope, namespace=stored.namespace, temporary=frozenset(), prunes=prunes, args=None)
        inner = _rewritten(spark, stored.query, own)
        if not inner.reads_hudi_tables:
            return False
        if reference.as_of is not None or reference.version is not None:
            raise QueryError(f"{quoted(name)} is a view, which has no versions; use time travel of its tables")
        self._sources |= inner.sources
        qualified = replace(reference, qualified=_qualifiers(reference, full))
        self._show(number, qualified, self._view_name(f"view {full}"), QuerySource(inner.text, stored))
        return True

    def _function_source(self, function: str, arguments: tuple[str, ...]) -> FunctionSource:
        """Return a table function with the values of its arguments, in their order, of which some are SQL."""
        spark, scope = self._spark, self._scope
        if function not in VECTOR_FUNCTIONS:
            if not arguments:
                return FunctionSource(function, ())  # which is refused
            table, *others = arguments
            if scope.namespace is not None and "/" not in table:
                table = quoted(scope.qualified(spark, _parsed(table)))
            location = locate(spark, table)
            return FunctionSource(function, (location, *others), (location,))
        texts = ordered_arguments(function, arguments)
        if any(text.strip() == "?" for text in texts):
            raise QueryError(f"{function} has a parameter by position; name it, as :query")
        named = scope.args if isinstance(scope.args, Mapping) else None
        values = self._values(f"SELECT {', '.join(texts)}", named)
        locations: set[str] = set()
        for position in table_positions(function):
            value: object = values[position]
            if isinstance(value, str):
                values[position], read = self._located(value)
                locations |= read
        return FunctionSource(function, tuple(values), tuple(sorted(locations)))

    def _values(self, query: str, named: Mapping[str, Any] | None) -> list[object]:
        """Return the values of arguments of a function."""
        inner = _rewritten(self._spark, query, replace(self._scope, prunes="", args=named))
        self._views.extend(inner.views)
        row = fetched(self._spark, inner.text, named)[0]
        return [tuple(value) if isinstance(value, list) else value for value in row]

    def _located(self, table: str) -> tuple[str, frozenset[str]]:
        """Return the name of a table or view, or its path, with its database, and the locations of Hudi tables in
        it."""
        if "/" in table:
            return table, frozenset({table})
        spark = self._spark
        name = self._scope.qualified(spark, _parsed(table))
        found = find(spark, name)
        if found is not None or (
            len(name) == 1 and spark.catalog.tableExists(quoted(name)) and not is_temporary(spark, name)
        ):
            name = full_name(spark, name)
        else:
            self._views.append(name)
        if isinstance(found, CatalogTable):
            return quoted(name), frozenset({found.location})
        return quoted(name), rewrite_query(spark, f"SELECT * FROM {quoted(name)}").locations


def _up_to_date(spark: SparkSession, name: Name, refreshed: _UpToDate) -> RewrittenQuery | None:
    """Have a temporary view show what there is now; returns its query, None if it is no view that is known.

    Args:
        spark: The session.
        name: The view's name.
        refreshed: The temporary views that are up to date by now.
    """
    view = temporary_view(spark, name)
    if view is None:
        return None
    if folded(name) not in refreshed:
        refreshed[folded(name)] = None  # it may read itself
        refreshed[folded(name)] = _refreshed(spark, name, view, refreshed)
    return refreshed[folded(name)]


def _refreshed(spark: SparkSession, name: Name, view: TemporaryView, refreshed: _UpToDate) -> RewrittenQuery | None:
    scope = _Scope(
        view.namespace,
        view.temporary,
        lasting=True,
        options=view.options,
        session=view.session,
        args=view.args,
        refreshed=refreshed,
    )
    try:
        found = _Rewriting(spark, view.query, view.references, scope).result()
    except HudiError:
        if _is_another(spark, name, view, {}):
            forget_view(spark, name)
            return None
        raise
    if found.shown == view.shown:
        return found
    if _is_another(spark, name, view, found.shown):
        forget_view(spark, name)
        return None
    kind = "TEMPORARY VIEW" if len(name) == 1 else "GLOBAL TEMPORARY VIEW"
    spark_sql(spark, f"CREATE OR REPLACE {kind} {quoted(name[-1:])} {view.clauses} AS {found.text}")
    remember_view(spark, name, replace(view, shown=found.shown))
    return found


def _is_another(spark: SparkSession, name: Name, view: TemporaryView, shown: Mapping[int, str]) -> bool:
    """Return True if a temporary view is none of the definition that is known: something that pyhudi does not see, as a
    program in Scala, has replaced it.

    Args:
        spark: The session.
        name: The view's name.
        view: The definition.
        shown: The views of the tables that would be read now.
    """
    plan = str(fetched(spark, f"EXPLAIN EXTENDED SELECT * FROM {quoted(name)}")[0][0]).lower()
    tables = [_full_name(spark, view.references[n].name, view.namespace) for n in shown if n not in view.shown]
    wanted = [*view.shown.values(), *(".".join(table) for table in tables)]
    return not all(one.lower() in plan for one in wanted)


def _reading_blobs(spark: SparkSession, query: str) -> str:
    """Return a query with what Spark can run in place of calls of ``read_blob``."""
    text = with_blob_calls(query, read_blob_sql)
    if text == query or spark.catalog.functionExists(READ_BLOB):
        return query
    register_read_blob(spark, {**session_settings(spark, "s3://"), **session_options(spark)})
    return text


def _full_name(spark: SparkSession, name: Name, namespace: Name | None) -> Name:
    """Return a name in the query of a permanent view so that it means the same in any database and catalog."""
    if namespace is None or len(name) > 2:
        return name
    if len(namespace) == 1 or str(spark.catalog.currentCatalog()) == namespace[0]:
        return name if len(name) == 2 else (namespace[-1], *name)
    if len(name) == 1:
        return (*namespace, *name)
    full = (namespace[0], *name)
    return full if spark.catalog.databaseExists(quoted(full[:2])) else name


def _qualifiers(reference: Reference, name: Name) -> tuple[tuple[int, int, int], ...]:
    """Return the positions of qualifiers of columns (`Reference.qualified`): of the name in the query, and of the full
    one, which is given."""
    full = folded((SESSION_CATALOG, *name))
    longer = (positions for head, *positions in reference.longer if head in (full, full[1:]))
    return (*reference.qualified, *((start, last, end) for start, last, end in longer))


def _quotes_names_by_double_quotes(spark: SparkSession) -> bool:
    settings = ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers")
    return all(str(spark.conf.get(key, "false")).lower() == "true" for key in settings)


def _joined_view(
    spark: SparkSession,
    reference: Reference,
    prunes: str,
    sources: Mapping[int, ViewSource],
    reads: Mapping[int, TableRead],
) -> str | None:
    """Show a table without the files in which no key is of those that the query joins it with; returns the view's name,
    None if there are no such keys."""
    source, read = sources.get(reference.start), reads.get(reference.start)
    if source is None or read is None or not reference.joined:
        return None
    keys = joined_predicate(spark, read.rows, reference.joined, reads)
    if keys is None:
        return None
    known = keys if source.predicate is None else f"({source.predicate}) AND {keys}"
    view = _view_name(session_id(spark), f"{source.location} {source.given} {prunes} joined {reference.start}")
    _refresh(spark, view, replace(source, predicate=known))
    return _global(spark, view)


def _view_name(session: str, what: str) -> str:
    return "_pyhudi_" + hashlib.sha1(f"{session} {what}".encode(), usedforsecurity=False).hexdigest()[:16]


def _refresh(spark: SparkSession, view: str, source: Source) -> DataFrame:
    """Have a view show a source as it is now; returns the rows."""
    return show_source(spark, view, source, partial(_rows_of, spark))


def _parsed(table: str) -> Name:
    cursor = Cursor(table)
    name = cursor.name()
    cursor.finish()
    return name


def _rows_of(spark: SparkSession, table: str) -> DataFrame:
    """Return the rows of a table or view, given by name or path."""
    if "/" in table:
        return load_table(spark, table, session_options(spark))
    return spark_sql(spark, rewrite_query(spark, f"SELECT * FROM {quoted(_parsed(table))}").text)


def _global(spark: SparkSession, view: str) -> str:
    return quoted(global_name(spark, view))
