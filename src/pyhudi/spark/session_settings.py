"""Settings of the user's session that are changed for the duration of a call."""

from __future__ import annotations

import datetime as dt
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark.sql import Column, DataFrame, SparkSession

from pyhudi.errors import ConfigError

STREAMING_QUERY_ID = "sql.streaming.queryId"
"""Local property of the threads and tasks of a streaming query: its id, which its checkpoint location stores."""

_ZONE_OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{1,2}))?(?::?(\d{2}))?")
"""Offsets from UTC as Spark takes them: hours, minutes and seconds."""
_SHORT_ZONES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Names of zones that Spark takes although the database of zones lacks them: those of Java's ``ZoneId.SHORT_IDS``."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A changed setting: its value before the first of the blocks that change it, and the values of these blocks, from
    the oldest to the newest one, by block."""

    before: str | None
    values: dict[object, str] = field(default_factory=dict)


_guard = threading.Lock()
_changed: dict[tuple[int, str], _Change] = {}


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return True if the session distinguishes names by case."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def is_ansi(spark: SparkSession) -> bool:
    """Return True if the session has ANSI mode, which is the default from Spark 4 on."""
    return str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"


def quotes_names_by_double_quotes(spark: SparkSession) -> bool:
    """Return True if double quotes enclose names in the session's SQL, and not strings."""
    quotes = "spark.sql.ansi.doubleQuotedIdentifiers"
    return is_ansi(spark) and str(spark.conf.get(quotes, "false")).lower() == "true"


def has_escapes(spark: SparkSession) -> bool:
    """Return True if backslashes in the texts of the session's SQL are escapes."""
    return str(spark.conf.get("spark.sql.parser.escapedStringLiterals", "false")).lower() != "true"


def is_connect(of_session: object) -> bool:
    """Return True if a session, or an object created by one, belongs to Spark Connect."""
    return ".connect." in type(of_session).__module__


def is_dataframe(value: object) -> bool:
    """Return True if a value is a DataFrame, of a classic session or of Spark Connect, whose class is another one
    before Spark 4."""
    return _is_instance(value, DataFrame)


def is_column(value: object) -> bool:
    """Return True if a value is a Column, of a classic session or of Spark Connect."""
    return _is_instance(value, Column)


def _is_instance(value: object, cls: type) -> bool:
    return isinstance(value, cls) or (is_connect(value) and type(value).__name__ == cls.__name__)


@contextmanager
def session_setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """Return a context manager that changes a setting of the session, for calls that read it immediately; plans
    evaluated later use the user's value.

    Blocks may be nested, and those of several threads may overlap: the newest one decides, and the last one to leave
    restores the user's value.
    """
    name, block = (id(spark), key), object()
    with _guard:
        change = _changed.get(name) or _Change(spark.conf.get(key, None))
        _set(spark, key, _current(change), value)
        change.values[block] = value
        _changed[name] = change
    try:
        yield
    finally:
        with _guard:
            old = _current(change)
            del change.values[block]
            if not change.values:
                del _changed[name]
            _set(spark, key, old, _current(change))


def _current(change: _Change) -> str | None:
    """Return the value that the newest block has set."""
    return next(reversed(change.values.values()), change.before)


def _set(spark: SparkSession, key: str, old: str | None, value: str | None) -> None:
    """Change a setting; ``None``: it is not set."""
    if value is None:
        spark.conf.unset(key)
    elif old != value:
        spark.conf.set(key, value)


def shuffle_partitions(spark: SparkSession) -> int:
    """Return the number of shuffle partitions of the session (``spark.sql.shuffle.partitions``)."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 200)


def session_zone(spark: SparkSession) -> dt.tzinfo:
    """Return the time zone of the session.

    Raises:
        ConfigError: Python does not know the time zone.
    """
    key = "spark.sql.session.timeZone"
    name = str(spark.conf.get(key))
    try:
        return _zone_named(name)
    except (ZoneInfoNotFoundError, ValueError) as e:
        raise ConfigError(
            f"{key} is {name!r}, which is not a known time zone; use the name of a region, such as "
            "America/Los_Angeles, or an offset, such as +01:00"
        ) from e


@cache
def default_zone(machine: Any) -> dt.tzinfo | None:
    """Return the default time zone of a Java virtual machine; None if Python does not know it, or may not ask for it,
    as on clusters that admit only some calls."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # Spark Connect does without it

    try:
        return _zone_named(str(machine.java.time.ZoneId.systemDefault().getId()))
    except (ZoneInfoNotFoundError, ValueError, Py4JError):
        return None


def _zone_named(name: str) -> dt.tzinfo:
    """Return a zone that Java knows. Raises ZoneInfoNotFoundError or ValueError if Python does not know it."""
    offset = _ZONE_OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes, seconds = (int(offset[number] or 0) for number in (2, 3, 4))
        apart = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return dt.timezone(-apart if offset[1] == "-" else apart)
    if name in ("Z", "UTC", "UT"):
        return dt.UTC
    return ZoneInfo(_SHORT_ZONES.get(name, name))
