"""Rewrites queries: each Hudi table in a query becomes a global view of the table as it is now."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import options
from pyhudi.errors import InvalidOptionError, QueryError
from pyhudi.read.query_instants import query_instant
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.read.blob_column import read_blob_sql, register_read_blob
from pyhudi.spark.read.load_table import load_table, session_settings
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogTable, CatalogView, find, full_name
from pyhudi.spark.sql.passthrough_statements import fetched, spark_sql
from pyhudi.spark.sql.queries.cached_tables import cached_rows
from pyhudi.spark.sql.queries.semi_join_pruning import TableRead, joined_predicate
from pyhudi.spark.sql.queries.table_functions import locate, run_table_function
from pyhudi.spark.sql.queries.temporary_views import global_name, is_temporary, session_id, view_sources
from pyhudi.spark.sql.queries.vector_functions import ordered_arguments, run_vector_function, table_positions
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.table_handle import TableHandle, partitions_last
from pyhudi.sql.blob_calls import READ_BLOB, with_blob_calls
from pyhudi.sql.short_queries import in_long_form
from pyhudi.sql.statements import Name
from pyhudi.sql.table_references import VECTOR_FUNCTIONS, Reference, find_references, replaced
from pyhudi.sql.token_cursor import Cursor

_NEWEST = 3
"""Instants that an error shows."""
_WITH_OFFSET = "yyyy-MM-dd HH:mm:ss.SSSSSSxxx"
"""Spark's pattern of a moment with its offset from UTC, which time travel takes in any zone."""


@dataclass(frozen=True, slots=True)
class ViewSource:
    """Content of a view of a Hudi table.

    Args:
        location: The table's.
        given: Options of the read.
        predicate: Condition by which files are left out; the query has it, too.
    """

    location: str
    given: tuple[tuple[str, str], ...]
    predicate: str | None = None


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A table function that a view shows.

    Args:
        function: Its name.
        arguments: The values that it is called with. Tables are given so that they are the same ones in any database.
        locations: Those of the Hudi tables that it reads.
    """

    function: str
    arguments: tuple[Any, ...]
    locations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuerySource:
    """A query that a view shows, as Spark can run it: that of a permanent view.

    Args:
        text: The query.
        view: The permanent view.
    """

    text: str
    view: CatalogView


Source: TypeAlias = ViewSource | FunctionSource | QuerySource


@dataclass(frozen=True, slots=True)
class RewrittenQuery:
    """A query that Spark can run.

    Args:
        text: The query with the names of views.
        sources: What these views show, by name of the view; those that others depend on come first.
        reads_hudi_tables: Whether it reads a Hudi table, or blobs, at all.
        temporary: What the views in temporary views show that the query uses.
        views: Names of these temporary views, and others that may become one.
    """

    text: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    reads_hudi_tables: bool = False
    temporary: Mapping[str, Source] = field(default_factory=dict)
    views: tuple[Name, ...] = ()

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


def rewrite_query(
    spark: SparkSession, query: str, namespace: Name | None = None, *, prunes: str = "", args: Any = None
) -> RewrittenQuery:
    """Make the Hudi tables of a query known to Spark.

    Args:
        spark: The session that will run it.
        query: The text.
        namespace: The database of names without one, with its catalog if it has one; None: the current one.
        prunes: Files are left out by what the query says in WHERE, and this text tells its views from those of views in
            it; empty: they are not, because the views will be looked at again, by other queries.
        args: Values of the parameters of the query.
    """
    written = in_long_form(query)
    query = _reading_blobs(spark, written)
    references = find_references(query)
    if not references:
        return RewrittenQuery(query, reads_hudi_tables=query != written)
    if '"' in query and _quotes_names_by_double_quotes(spark):
        references = [replace(one, predicate=None, joined=()) for one in references]  # taken for texts there
    changes: list[tuple[Reference, str]] = []
    shown: dict[str, Source] = {}
    temporary: dict[str, Source] = {}
    views: list[Name] = []
    sources: dict[int, ViewSource] = {}
    reads: dict[int, TableRead] = {}
    reads_hudi_tables = query != written
    for number, reference in enumerate(references):
        if reference.arguments is not None:
            source_function = _function_source(spark, reference.name[0], reference.arguments, args)
            view = _view_name(spark, repr(source_function))
            shown[view] = source_function
            _refresh(spark, view, shown[view])
            changes.append((reference, _global(spark, view)))
            reads_hudi_tables = True
            continue
        known = view_sources(spark, reference.name) if namespace is None else {}
        if known:
            for view, one in known.items():
                _refresh(spark, view, one)
            temporary |= known
            views.append(reference.name)
            reads_hudi_tables = True
            continue
        name = _full_name(spark, reference.name, namespace)
        found = find(spark, name)
        if isinstance(found, CatalogTable):
            reference = replace(reference, qualified=_qualifiers(reference, found))
            moment = _time_travel(spark, found, reference, args)
            given = tuple(sorted({**_read_options(spark, found), **moment}.items()))
            source = ViewSource(found.location, given, reference.predicate if prunes else None)
            # a name for each place in a query, not for each condition: there would be ever more of them
            place = f" {prunes} {number}" if source.predicate is not None else ""
            view = _view_name(spark, f"{found.location} {given}{place}")
            reads[reference.start] = TableRead(_refresh(spark, view, source), reference.predicate)
            shown[view] = sources[reference.start] = source
            changes.append((reference, _global(spark, view)))
            reads_hudi_tables = True
        elif isinstance(found, CatalogView):
            place = f"{prunes} {number} {name}" if prunes else ""
            inner = rewrite_query(spark, found.query, found.namespace, prunes=place)
            if inner.reads_hudi_tables:
                if reference.as_of is not None or reference.version is not None:
                    raise QueryError(f"{quoted(name)} is a view, which has no versions; use time travel of its tables")
                view = _view_name(spark, f"view {full_name(spark, name)}")
                shown |= {**inner.sources, view: QuerySource(inner.text, found)}
                _refresh(spark, view, shown[view])
                changes.append((reference, _global(spark, view)))
                reads_hudi_tables = True
        elif name != reference.name and reference.as_of is None and reference.version is None:
            changes.append((reference, quoted(name)))
        else:
            views.append(reference.name)
    if prunes and len(reads) > 1:
        changes = [(one, _joined_view(spark, one, prunes, sources, reads) or view) for one, view in changes]
    text = replaced(query, changes, lambda part: quoted([part]))
    return RewrittenQuery(text, shown, reads_hudi_tables, temporary, tuple(views))


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


def _qualifiers(reference: Reference, table: CatalogTable) -> tuple[tuple[int, int, int], ...]:
    """Return the positions of qualifiers of columns (`Reference.qualified`): of the name in the query, and of the full
    one."""
    full = tuple(part.lower() for part in (SESSION_CATALOG, *table.name))
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
    view = _view_name(spark, f"{source.location} {source.given} {prunes} joined {reference.start}")
    _refresh(spark, view, replace(source, predicate=known))
    return _global(spark, view)


def table_frame(spark: SparkSession, table: CatalogTable, options: Mapping[str, str] | None = None) -> DataFrame:
    """Return a table's rows as they are now, by the session's options and those given."""
    given = {**_read_options(spark, table), **(options or {})}
    return _ordered(load_table(spark, table.location, given), table.location, given)


def _read_options(spark: SparkSession, table: CatalogTable) -> dict[str, str]:
    return {**table.options, **session_options(spark)} if table.properties else session_options(spark)


def _time_travel(spark: SparkSession, table: CatalogTable, reference: Reference, args: Any) -> dict[str, str]:
    value = reference.as_of if reference.as_of is not None else reference.version
    if value is None:
        return {}
    if reference.version is not None and (value.isdigit() or value[:1] in "'\""):
        _check_version(spark, table, value.strip("'\""))
    if value[:1] in "'\"" and value[1:-1].find(value[0]) < 0:
        return {options.AS_OF_INSTANT.key: value[1:-1]}
    if value.isdigit():
        return {options.AS_OF_INSTANT.key: value}
    if args and "?" in value:
        raise QueryError(f"the time {value} of a time travel query has a parameter by position; name it, as :time")
    kind, found = fetched(spark, f"SELECT typeof({value}), CAST({value} AS STRING)", args)[0]
    if kind == "timestamp" and found is not None:  # a moment, whose text is in the zone of the session
        found = fetched(spark, f"SELECT date_format({value}, '{_WITH_OFFSET}')", args)[0][0]
    if found is None:
        raise QueryError(f"the time {value} of a time travel query is null")
    return {options.AS_OF_INSTANT.key: found}


def _check_version(spark: SparkSession, table: CatalogTable, version: str) -> None:
    """Refuse a version that is neither an instant nor a time.

    Raises:
        QueryError: The message has the newest instants.
    """
    try:
        query_instant(version)
    except InvalidOptionError:
        writes = TableHandle.of(spark, table).client().active_timeline().timeline.writes().completed()
        newest = ", ".join(instant.requested for instant in reversed(list(writes)[-_NEWEST:]))
        raise QueryError(
            f"{table.sql} VERSION AS OF {version}: the versions of a Hudi table are the instants of its commits, of "
            f"which the newest are {newest or 'none'}; CALL show_commits(table => '{'.'.join(table.name)}') lists them"
        ) from None


def _view_name(spark: SparkSession, what: str) -> str:
    return "_pyhudi_" + hashlib.sha1(f"{session_id(spark)} {what}".encode(), usedforsecurity=False).hexdigest()[:16]


def _refresh(spark: SparkSession, view: str, source: Source) -> DataFrame:
    """Have a view show a source as it is now; returns the rows."""
    match source:
        case ViewSource(location, given, predicate):
            kept = None if options.AS_OF_INSTANT.key in dict(given) else _kept(spark, location, dict(given))
            if kept is not None:
                kept.createOrReplaceGlobalTempView(view)
                return kept
            rows = load_table(spark, location, dict(given), predicate=predicate)
            _ordered(rows, location, dict(given)).createOrReplaceGlobalTempView(view)
            return rows
        case FunctionSource(function, arguments) if function in VECTOR_FUNCTIONS:
            rows = run_vector_function(function, arguments, partial(_rows_of, spark))
        case FunctionSource(function, arguments):
            rows = run_table_function(spark, function, arguments)
        case QuerySource(text, stored):
            rows = spark_sql(spark, text)
            if stored.query_columns:
                rows = rows.select(*(quoted([name]) for name in stored.query_columns))
            rows = rows.toDF(*stored.columns)
    rows.createOrReplaceGlobalTempView(view)
    return rows


def _function_source(spark: SparkSession, function: str, arguments: tuple[str, ...], args: Any) -> FunctionSource:
    """Return a table function with the values of its arguments, in their order, of which some are SQL."""
    if function not in VECTOR_FUNCTIONS:
        if not arguments:
            return FunctionSource(function, ())  # which is refused
        location = locate(spark, arguments[0])
        return FunctionSource(function, (location, *arguments[1:]), (location,))
    texts = ordered_arguments(function, arguments)
    if any(text.strip() == "?" for text in texts):
        raise QueryError(f"{function} has a parameter by position; name it, as :query")
    named = args if isinstance(args, Mapping) else None
    query = rewrite_query(spark, f"SELECT {', '.join(texts)}", args=named)
    values = [tuple(value) if isinstance(value, list) else value for value in fetched(spark, query.text, named)[0]]
    locations: set[str] = set()
    for position in table_positions(function):
        table: object = values[position]
        if isinstance(table, str):
            values[position], read = _located(spark, table)
            locations |= read
    return FunctionSource(function, tuple(values), tuple(sorted(locations)))


def _located(spark: SparkSession, table: str) -> tuple[str, frozenset[str]]:
    """Return the name of a table or view, or its path, with its database, and the locations of Hudi tables in it."""
    if "/" in table:
        return table, frozenset({table})
    name = _parsed(table)
    found = find(spark, name)
    if found is not None or (
        len(name) == 1 and spark.catalog.tableExists(quoted(name)) and not is_temporary(spark, name)
    ):
        name = full_name(spark, name)
    if isinstance(found, CatalogTable):
        return quoted(name), frozenset({found.location})
    return quoted(name), rewrite_query(spark, f"SELECT * FROM {quoted(name)}").locations


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


def _kept(spark: SparkSession, location: str, given: dict[str, str]) -> DataFrame | None:
    """Return the rows of a table that is cached; None if it is not."""
    return cached_rows(spark, location, given, lambda: _ordered(load_table(spark, location, given), location, given))


def _ordered(rows: DataFrame, location: str, given: Mapping[str, str]) -> DataFrame:
    """The rows with partition columns last, as the catalog lists columns."""
    names = partitions_last(rows.columns, TableHandle.at(rows.sparkSession, location, given).load_config())
    return rows if names == rows.columns else rows.select(*(quoted([name]) for name in names))


def _global(spark: SparkSession, view: str) -> str:
    return quoted(global_name(spark, view))
