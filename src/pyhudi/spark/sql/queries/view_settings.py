"""Settings with which Spark stored a permanent view.

These settings, and not those of the session that reads the view, determine how its query is analysed: whether ``"x"``
is a name, the time zone of times, and whether a cast may fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Lock
from types import MappingProxyType

from pyspark.sql import SparkSession

from pyhudi.spark.column_names import quoted
from pyhudi.spark.session_settings import is_connect, session_setting
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogView
from pyhudi.spark.sql.spark_statements import collect_statement
from pyhudi.sql.statements import Name

_STORED = "view.sqlConfig."
_ZONE, _ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
QUOTES_NAMES = (_ANSI, "spark.sql.ansi.doubleQuotedIdentifiers")
_DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        _ANSI: "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.caseSensitive": "false",
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        "spark.sql.groupByAliases": "true",
        "spark.sql.groupByOrdinal": "true",
        "spark.sql.legacy.ctePrecedencePolicy": "corrected",
        "spark.sql.legacy.setopsPrecedence.enabled": "false",
        "spark.sql.legacy.sizeOfNull": "true",
        "spark.sql.orderByOrdinal": "true",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        "spark.sql.timestampType": "timestamp_ltz",
    }
)
"""Settings that decide rows when a query is analysed, with the values of views that were stored without them."""

_guard = Lock()
_settings: dict[Name, tuple[CatalogView, Mapping[str, str]]] = {}


def stored_settings(spark: SparkSession, name: Name, view: CatalogView) -> Mapping[str, str]:
    """Return the settings of a permanent view, in lower case but for the time zone."""
    cached = _settings.get(name)
    if cached is None or cached[0] != view:
        defaults = {**_DEFAULTS, _ANSI: "true"} if spark.version.startswith("4.0") else _DEFAULTS
        stored = {key: _stored(spark, name, key) for key in (*defaults, _ZONE)}
        recorded = {key: value if key == _ZONE else value.lower() for key, value in stored.items() if value is not None}
        cached = _settings[name] = view, {**defaults, **recorded}
    return cached[1]


def _stored(spark: SparkSession, name: Name, key: str) -> str | None:
    """Return a stored setting; None if the view has none. Spark shows these only one by one."""
    full = quoted([SESSION_CATALOG, *name])  # another catalog may be the current one
    rows = collect_statement(spark, f"SHOW TBLPROPERTIES {full} ('{_STORED}{key}')")
    value = str(rows[0][-1])
    return None if value.endswith(f"does not have property: {_STORED}{key}") else value


def other_settings(spark: SparkSession, stored: Mapping[str, str]) -> bool:
    """Return True if the session has other settings than a view, by itself or by Spark's defaults."""
    return any(str(spark.conf.get(key)).lower() != value.lower() for key, value in stored.items())


@contextmanager
def session_with(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Return a context manager that gives a session in which a query is analysed with the settings of a view.

    It is a new session, so that other threads keep their settings. With Spark Connect it is this session, whose
    settings are changed during the block.

    Args:
        spark: The session that reads the view.
        settings: The view's; empty: those of the session.
    """
    if not settings:
        yield spark
    elif is_connect(spark):
        with _guard, ExitStack() as changed:
            for key, value in settings.items():
                changed.enter_context(session_setting(spark, key, value))
            yield spark
    else:
        yield _new_session(spark, settings)


def _new_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a new session with some settings. Each query gets a session of its own, because a session caches the files
    of the tables that it has read, and does not notice later inserts of others."""
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session
