"""Temporary views over Hudi tables: what they show is brought up to date whenever they are used.

They are kept by session of Spark, and not by object in Python: a stream, for instance, makes another object for each
batch, of a copy of the session that started it. Global temporary views are those of all sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from pyhudi.spark.keys.key_text import quoted
from pyhudi.sql.statements import Name

_ID = "_pyhudi_id"
_SETTING = "pyhudi.session.id"
"""Copies of a session have its settings, new sessions do not."""


@dataclass(frozen=True, slots=True)
class TemporaryView:
    """What a temporary view depends on.

    Args:
        sources: What the views of Hudi tables in its query show, by name.
        views: Other names in its query, which may be temporary views themselves.
    """

    sources: Mapping[str, Any]
    views: tuple[Name, ...] = ()


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


def remember_view(spark: SparkSession, name: Name, sources: Mapping[str, Any], views: Iterable[Name]) -> None:
    """Note what a temporary view depends on, to show it as it is whenever it is used."""
    _keep_id(spark, session_id(spark))  # RESET removes it
    _known[_key(spark, name)] = TemporaryView(dict(sources), tuple(views))


def forget_view(spark: SparkSession, name: Name) -> None:
    """A temporary view of that name is another one now."""
    _known.pop(_key(spark, name), None)


def rename_view(spark: SparkSession, name: Name, to: Name) -> None:
    """Note that a temporary view has another name now; it keeps its database, of global views."""
    found = _known.pop(_key(spark, name), None)
    if found is not None:
        _known[_key(spark, (*name[:-1], to[-1]))] = found


def view_sources(spark: SparkSession, name: Name) -> dict[str, Any]:
    """Return what the views of Hudi tables in a temporary view show, and in the temporary views that it uses, as they
    are now; those that others depend on come first. Nothing for anything else, and if it no longer exists."""
    return _sources(spark, name, set())


def _sources(spark: SparkSession, name: Name, seen: set[_Key]) -> dict[str, Any]:
    key = _key(spark, name)
    found = _known.get(key)
    if found is None or key in seen:
        return {}
    seen.add(key)
    sources: dict[str, Any] = {}
    for view in found.views:
        sources |= _sources(spark, view, seen)
    sources |= found.sources
    if sources and not is_temporary(spark, name):  # it was dropped
        _known.pop(key, None)
        return {}
    return sources


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
    folded = tuple(part.lower() for part in name)
    is_global = len(folded) == 2 and folded == tuple(part.lower() for part in global_name(spark, name[1]))
    return "" if is_global else session_id(spark), folded
