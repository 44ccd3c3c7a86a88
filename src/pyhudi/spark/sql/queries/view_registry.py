"""Registry of temporary views over Hudi tables, which are refreshed whenever they are used.

Views are registered by Spark session, not by Python object: a stream, for instance, creates an object for each batch,
for a copy of the session that started it. Global temporary views belong to all sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from pyhudi.spark.column_names import quoted
from pyhudi.spark.expected_errors import expected_errors
from pyhudi.spark.read.load_table import LoadRequest
from pyhudi.sql.statements import Name
from pyhudi.sql.table_references import Reference

_ID = "_pyhudi_id"
_SETTING = "pyhudi.session.id"
"""Copies of a session have its settings, new sessions do not."""


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """Definition of a temporary view, by which it is refreshed.

    Attributes:
        query: The original query.
        references: The tables in it.
        namespace: Catalog and database of unqualified names.
        temporary: Lower-case names in it that refer to temporary views.
        options: Settings of Apache Hudi of the session that created it.
        args: Values of the parameters of the query.
        clauses: Text of the statement between the view's name and AS.
        session: Identifier of the session that created it, whose views replace the tables.
        shown: The views that replace references, by number of the reference.
    """

    query: str
    references: tuple[Reference, ...]
    namespace: Name
    temporary: frozenset[Name]
    options: Mapping[str, str]
    args: Any
    clauses: str
    session: str
    shown: Mapping[int, str]


_Key: TypeAlias = tuple[str, Name]
_views: dict[_Key, TemporaryView] = {}
_loaded: dict[_Key, LoadRequest] = {}
"""Views of loaded DataFrames, which are refreshed by ``REFRESH TABLE`` only, as Spark's are."""


def session_id(spark: SparkSession) -> str:
    """Return an identifier of the session that is unique across processes: a Connect server has the global views of all
    its clients."""
    identifier: str | None = spark.__dict__.get(_ID)
    if identifier is None:
        identifier = spark.__dict__[_ID] = spark.conf.get(_SETTING, None) or uuid4().hex
        _store_id(spark, identifier)
    return identifier


def _store_id(spark: SparkSession, identifier: str) -> None:
    try:
        if spark.conf.get(_SETTING, None) != identifier:
            spark.conf.set(_SETTING, identifier)
    except PySparkException:  # some services refuse unknown settings
        pass


def remember_view(spark: SparkSession, name: Name, view: TemporaryView) -> None:
    """Register the definition of a temporary view."""
    _store_id(spark, session_id(spark))  # RESET removes it
    forget_view(spark, name)
    _views[_key(spark, name)] = view


def remember_load(spark: SparkSession, name: Name, request: LoadRequest) -> None:
    """Register the load of the DataFrame of a temporary view."""
    _store_id(spark, session_id(spark))
    forget_view(spark, name)
    _loaded[_key(spark, name)] = request


def load_of_view(spark: SparkSession, name: Name) -> LoadRequest | None:
    """Return the load of the DataFrame of a temporary view; None for other views and tables."""
    return _loaded.get(_key(spark, name)) if _loaded else None


def views_of_temporary_views() -> frozenset[str]:
    """Return the views that replace tables in the queries of temporary views. Spark looks at them again whenever it
    reads one of these."""
    return frozenset(name for view in list(_views.values()) for name in view.shown.values())


def forget_view(spark: SparkSession, name: Name) -> None:
    """Remove the entries of a temporary view that was replaced or dropped."""
    if _views or _loaded:
        key = _key(spark, name)
        _views.pop(key, None)
        _loaded.pop(key, None)


def rename_view(spark: SparkSession, name: Name, to: Name) -> None:
    """Register a temporary view under its new name, in the same database."""
    old, new = _key(spark, name), _key(spark, (*name[:-1], to[-1]))
    if old in _views:
        _views[new] = _views.pop(old)
    if old in _loaded:
        _loaded[new] = _loaded.pop(old)


def temporary_view(spark: SparkSession, name: Name) -> TemporaryView | None:
    """Return the definition of a temporary view; None for anything else, and if it no longer exists."""
    key = _key(spark, name)
    view = _views.get(key)
    if view is not None and view.shown and not is_temporary(spark, name):  # it was dropped
        _views.pop(key, None)
        return None
    return view


def is_temporary(spark: SparkSession, name: Name) -> bool:
    """Return True if there is a temporary view of a name."""
    try:
        with expected_errors():
            return bool(spark.catalog.getTable(quoted(name)).isTemporary)
    except AnalysisException:  # there is nothing of that name
        return False


def global_name(spark: SparkSession, name: str) -> Name:
    """Return the full name of a global temporary view."""
    return (spark.conf.get("spark.sql.globalTempDatabase", "global_temp") or "global_temp", name)


def _key(spark: SparkSession, name: Name) -> _Key:
    view_name = folded(name)
    is_global = len(view_name) == 2 and view_name == folded(global_name(spark, name[1]))
    return "" if is_global else session_id(spark), view_name


def folded(name: Name) -> Name:
    """Return a name in lower case."""
    return tuple(part.lower() for part in name)
