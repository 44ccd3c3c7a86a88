"""Settings of the user's session that hold for one call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Change:
    """A setting that is changed: by how many blocks at the moment, and what it was before the first of them."""

    before: str | None
    blocks: int = 0


_guard = threading.Lock()
_changed: dict[tuple[int, str], _Change] = {}


@contextmanager
def session_setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """Have a setting of the session within the block. For calls that look at it at once: what is evaluated later sees
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
