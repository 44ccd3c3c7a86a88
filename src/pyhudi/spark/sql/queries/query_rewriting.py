"""Rewrites queries: each Hudi table in a query becomes a global view of the table as it is now."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import options
from pyhudi.errors import QueryError
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.sql.catalog import CatalogTable, CatalogView, find
from pyhudi.spark.sql.passthrough_statements import fetched, spark_sql
from pyhudi.spark.sql.queries.semi_join_pruning import TableRead, joined_predicate
from pyhudi.spark.sql.queries.table_functions import run_table_function
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.table_handle import TableHandle
from pyhudi.sql.statements import Name
from pyhudi.sql.table_references import Reference, find_references, replaced

_VIEWS, _ID = "_pyhudi_views", "_pyhudi_id"


@dataclass(frozen=True, slots=True)
class ViewSource:
    """What a view of a Hudi table shows.

    Args:
        location: The table's.
        given: Options of the read.
        predicate: Condition by which files are left out; the query has it, too.
    """

    location: str
    given: tuple[tuple[str, str], ...]
    predicate: str | None = None


@dataclass(frozen=True, slots=True)
class RewrittenQuery:
    """A query that Spark can run.

    Args:
        text: The query with the names of views.
        tables: What these views show, by name of the view.
        concerned: Whether it reads a Hudi table at all.
    """

    text: str
    tables: Mapping[str, ViewSource] = field(default_factory=dict)
    concerned: bool = False


def prepare(spark: SparkSession, query: str, namespace: Name | None = None, *, prunes: str = "") -> RewrittenQuery:
    """Make the Hudi tables of a query known to Spark.

    Args:
        spark: The session that will run it.
        query: The text.
        namespace: The database of names without one; None: the current one.
        prunes: Files are left out by what the query says in WHERE, and this text tells its views from those of views in
            it; empty: they are not, because the views will be looked at again, by other queries.
    """
    references = find_references(query)
    if not references:
        return RewrittenQuery(query)
    if '"' in query and _quotes_names_by_double_quotes(spark):
        references = [replace(one, predicate=None, joined=()) for one in references]  # taken for texts there
    changes: list[tuple[Reference, str]] = []
    tables: dict[str, ViewSource] = {}
    sources: dict[int, ViewSource] = {}
    reads: dict[int, TableRead] = {}
    concerned = False
    for number, reference in enumerate(references):
        if reference.arguments is not None:
            frame = run_table_function(spark, reference.name[0], reference.arguments)
            changes.append((reference, _show(spark, frame, repr((reference.name, reference.arguments)))))
            concerned = True
            continue
        known = _known_view(spark, reference.name) if namespace is None else None
        if known is not None:
            for view, shown in known.items():
                _refresh(spark, view, shown)
            tables |= known
            concerned = True
            continue
        name = reference.name if namespace is None or len(reference.name) > 1 else (*namespace, *reference.name)
        found = find(spark, name)
        if isinstance(found, CatalogTable):
            given = tuple(sorted({**_read_options(spark, found), **_time_travel(spark, reference)}.items()))
            source = ViewSource(found.location, given, reference.predicate if prunes else None)
            # a name for each place in a query, not for each condition: there would be ever more of them
            place = f" {prunes} {number}" if source.predicate is not None else ""
            view = _view_name(spark, f"{found.location} {given}{place}")
            reads[reference.start] = TableRead(_refresh(spark, view, source), reference.predicate)
            tables[view] = sources[reference.start] = source
            changes.append((reference, _global(spark, view)))
            concerned = True
        elif isinstance(found, CatalogView):
            place = f"{prunes} {number} {name}" if prunes else ""
            inner = prepare(spark, found.query, found.namespace, prunes=place)
            if inner.concerned:
                frame = spark_sql(spark, inner.text)
                if found.query_columns:
                    frame = frame.select(*(quoted([name]) for name in found.query_columns))
                frame = frame.toDF(*found.columns)
                changes.append((reference, _show(spark, frame, f"view {name}")))
                tables |= inner.tables
                concerned = True
        elif name != reference.name and reference.as_of is None and reference.version is None:
            changes.append((reference, quoted(name)))
    if prunes and len(reads) > 1:
        changes = [(one, _joined_view(spark, one, prunes, sources, reads) or view) for one, view in changes]
    return RewrittenQuery(replaced(query, changes, lambda part: quoted([part])), tables, concerned)


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


def remember_view(spark: SparkSession, name: str, prepared: RewrittenQuery) -> None:
    """Note on which tables a temporary view of the session depends, to show them as they are whenever it is used."""
    _views(spark)[name.lower()] = dict(prepared.tables)


def forget_view(spark: SparkSession, name: str) -> None:
    """A temporary view of that name is another one now."""
    _views(spark).pop(name.lower(), None)


def table_frame(spark: SparkSession, table: CatalogTable, options: Mapping[str, str] | None = None) -> DataFrame:
    """Return a table's rows as they are now, by the session's options and those given."""
    given = {**_read_options(spark, table), **(options or {})}
    return _ordered(load_table(spark, table.location, given), table.location, given)


def _read_options(spark: SparkSession, table: CatalogTable) -> dict[str, str]:
    return {**table.options, **session_options(spark)} if table.properties else session_options(spark)


def _views(spark: SparkSession) -> dict[str, dict[str, ViewSource]]:
    return spark.__dict__.setdefault(_VIEWS, {})  # type: ignore[no-any-return]


def _known_view(spark: SparkSession, name: Name) -> dict[str, ViewSource] | None:
    """The tables of a temporary view that `remember_view` has noted, if it is there still."""
    known = _views(spark).get(name[0].lower()) if len(name) == 1 else None
    if known is None:
        return None
    try:
        if spark.catalog.getTable(quoted(name)).isTemporary:
            return known
    except AnalysisException:  # it was dropped
        pass
    forget_view(spark, name[0])
    return None


def _time_travel(spark: SparkSession, reference: Reference) -> dict[str, str]:
    value = reference.as_of if reference.as_of is not None else reference.version
    if value is None:
        return {}
    if value[:1] in "'\"" and value[1:-1].find(value[0]) < 0:
        return {options.AS_OF_INSTANT.key: value[1:-1]}
    if value.isdigit():
        return {options.AS_OF_INSTANT.key: value}
    found = fetched(spark, f"SELECT CAST({value} AS STRING)")[0][0]
    if found is None:
        raise QueryError(f"the time {value} of a time travel query is null")
    return {options.AS_OF_INSTANT.key: found}


def _session_id(spark: SparkSession) -> str:
    """Tell sessions apart, of other processes, too: a Connect server has the global views of all its clients."""
    return spark.__dict__.setdefault(_ID, uuid4().hex)  # type: ignore[no-any-return]


def _view_name(spark: SparkSession, what: str) -> str:
    return "_pyhudi_" + hashlib.sha1(f"{_session_id(spark)} {what}".encode(), usedforsecurity=False).hexdigest()[:16]


def _refresh(spark: SparkSession, view: str, source: ViewSource) -> DataFrame:
    """Have a view show a table as it is now; returns the rows."""
    given = dict(source.given)
    rows = load_table(spark, source.location, given, predicate=source.predicate)
    _ordered(rows, source.location, given).createOrReplaceGlobalTempView(view)
    return rows


def _ordered(rows: DataFrame, location: str, given: Mapping[str, str]) -> DataFrame:
    """The rows with partition columns last, as the catalog lists columns."""
    config = TableHandle.at(rows.sparkSession, location, given).config
    last = [field.name for field in config.partition_fields if field.name in rows.columns]
    names = [*(name for name in rows.columns if name not in last), *last]
    return rows if names == rows.columns else rows.select(*(quoted([name]) for name in names))


def _show(spark: SparkSession, frame: DataFrame, what: str) -> str:
    view = _view_name(spark, what)
    frame.createOrReplaceGlobalTempView(view)
    return _global(spark, view)


def _global(spark: SparkSession, view: str) -> str:
    database = spark.conf.get("spark.sql.globalTempDatabase", "global_temp") or "global_temp"
    return quoted([database, view])
