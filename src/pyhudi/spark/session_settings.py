"""Settings of the user's session that hold for one call."""

from __future__ import annotations

import datetime as dt
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark.sql import SparkSession

from pyhudi.errors import ConfigError
from pyhudi.keygen.timestamp_settings import java_zone


@dataclass(slots=True)
class _Change:
    """A setting that is changed: by how many blocks at the moment, and what it was before the first of them."""

    before: str | None
    blocks: int = 0


_guard = threading.Lock()
_changed: dict[tuple[int, str], _Change] = {}


def is_connect(of_session: object) -> bool:
    """Return whether a session, or something made by one, is of Spark Connect."""
    return ".connect." in type(of_session).__module__


@contextmanager
def session_setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """Context manager that sets a setting of the session. For calls that read it at once: what is evaluated later sees
    the user's own value again.

    Blocks of several threads may overlap, as long as all want the same value: the last one to leave restores the
    user's.
    """
    name = (id(spark), key)
    with _guard:
        change = _changed.get(name)
        if change is None:
            change = _changed[name] = _Change(spark.conf.get(key, None))
            if change.before != value:
                spark.conf.set(key, value)
        change.blocks += 1
    try:
        yield
    finally:
        with _guard:
            change.blocks -= 1
            if not change.blocks:
                del _changed[name]
                _restore(spark, key, change.before, value)


def _restore(spark: SparkSession, key: str, before: str | None, value: str) -> None:
    if before is None:
        spark.conf.unset(key)
    elif before != value:
        spark.conf.set(key, before)


def shuffle_partitions(spark: SparkSession) -> int:
    """The number of tasks that the session shuffles to (``spark.sql.shuffle.partitions``)."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 200)


def session_zone(spark: SparkSession) -> dt.tzinfo:
    """The time zone of the session.

    Raises:
        ConfigError: it is one that Python does not know.
    """
    key = "spark.sql.session.timeZone"
    name = str(java_zone(spark.conf.get(key)))
    offset = re.fullmatch(r"([+-])(\d\d):(\d\d)", name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        apart = dt.timedelta(hours=int(hours), minutes=int(minutes))
        return dt.timezone(-apart if sign == "-" else apart)
    if name in ("Z", "UTC"):
        return dt.UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as e:
        raise ConfigError(
            f"{key} is {name!r}, which is no time zone here; name a region, such as America/Los_Angeles, or an offset, "
            "such as +01:00"
        ) from e
