"""Temporary views over Hudi tables: what they show is brought up to date whenever they are used.

They are kept by session of Spark, and not by object in Python: a stream, for instance, makes another object for each
batch, of a copy of the session that started it. Global temporary views are those of all sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from pyhudi.spark.keys.key_text import quoted
from pyhudi.sql.statements import Name
from pyhudi.sql.table_references import Reference

_ID = "_pyhudi_id"
_SETTING = "pyhudi.session.id"
"""Copies of a session have its settings, new sessions do not."""


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """The definition of a temporary view, from which what it shows is made whenever it is used.

    Args:
        query: Its query as it was given.
        references: The tables in it.
        namespace: Catalog and database that its names belong to.
        temporary: Names in it, in lower case, that mean temporary views.
        options: Settings of Apache Hudi of the session that created it.
        args: Values of the parameters of the query.
        clauses: What the statement had between the view's name and AS.
        session: The session that created it, whose views stand for tables in the query that Spark has.
        shown: These views, by number of the reference.
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
_known: dict[_Key, TemporaryView] = {}


def session_id(spark: SparkSession) -> str:
    """Tell sessions apart, of other processes, too: a Connect server has the global views of all its clients."""
    known: str | None = spark.__dict__.get(_ID)
    if known is None:
        known = spark.__dict__[_ID] = spark.conf.get(_SETTING, None) or uuid4().hex
        _keep_id(spark, known)
    return known


def _keep_id(spark: SparkSession, known: str) -> None:
    try:
        if spark.conf.get(_SETTING, None) != known:
            spark.conf.set(_SETTING, known)
    except PySparkException:  # some services allow only settings that they know
        pass


def remember_view(spark: SparkSession, name: Name, view: TemporaryView) -> None:
    """Note the definition of a temporary view, to show it as it is whenever it is used."""
    _keep_id(spark, session_id(spark))  # RESET removes it
    _known[_key(spark, name)] = view


def forget_view(spark: SparkSession, name: Name) -> None:
    """A temporary view of that name is another one now."""
    if _known:
        _known.pop(_key(spark, name), None)


def rename_view(spark: SparkSession, name: Name, to: Name) -> None:
    """Note that a temporary view has another name now; it keeps its database, of global views."""
    found = _known.pop(_key(spark, name), None)
    if found is not None:
        _known[_key(spark, (*name[:-1], to[-1]))] = found


def temporary_view(spark: SparkSession, name: Name) -> TemporaryView | None:
    """Return the definition of a temporary view; None for anything else, and if it no longer exists."""
    key = _key(spark, name)
    found = _known.get(key)
    if found is not None and found.shown and not is_temporary(spark, name):  # it was dropped
        _known.pop(key, None)
        return None
    return found


def is_temporary(spark: SparkSession, name: Name) -> bool:
    """Return True if there is a temporary view of a name."""
    try:
        return bool(spark.catalog.getTable(quoted(name)).isTemporary)
    except AnalysisException:  # there is nothing of that name
        return False


def global_name(spark: SparkSession, name: str) -> Name:
    """Return the full name of a global temporary view."""
    return (spark.conf.get("spark.sql.globalTempDatabase", "global_temp") or "global_temp", name)


def _key(spark: SparkSession, name: Name) -> _Key:
    own = folded(name)
    is_global = len(own) == 2 and own == folded(global_name(spark, name[1]))
    return "" if is_global else session_id(spark), own


def folded(name: Name) -> Name:
    """Return a name in lower case."""
    return tuple(part.lower() for part in name)
