"""``CACHE TABLE`` of Hudi tables: cached rows of the latest snapshot, by session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options
from pyhudi.spark.read.load_table import session_settings
from pyhudi.storage.canonical_uri import canonical_uri
from pyhudi.table.meta_client import TableMetaClient

_CACHED = "_pyhudi_cached_tables"
ReadOptions: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Cached rows, with the options of the read and the completed instants of the timeline."""

    given: ReadOptions
    instants: tuple[tuple[str, str], ...]
    rows: DataFrame


@dataclass(slots=True)
class CachedTable:
    """A table that a session caches.

    Args:
        level: Storage level of its rows.
        snapshot: The cached rows; None: none yet.
    """

    level: StorageLevel
    snapshot: _Snapshot | None = None

    def drop(self) -> None:
        """Release the rows."""
        if self.snapshot is not None:
            self.snapshot.rows.unpersist()
            self.snapshot = None


def cache(spark: SparkSession, location: str, level: StorageLevel) -> None:
    """Cache the table when it is next queried."""
    uncache(spark, location)
    _tables(spark)[canonical_uri(location)] = CachedTable(level)


def uncache(spark: SparkSession, location: str) -> None:
    """Release the rows of a table, if they are cached."""
    table = _tables(spark).pop(canonical_uri(location), None)
    if table is not None:
        table.drop()


def is_cached(spark: SparkSession, location: str) -> bool:
    """Return True if a session caches a table."""
    return canonical_uri(location) in _tables(spark)


def clear(spark: SparkSession) -> None:
    """Release the rows of all tables."""
    for location in list(_tables(spark)):
        uncache(spark, location)


def cached_rows(
    spark: SparkSession, location: str, given: ReadOptions, load: Callable[[], DataFrame]
) -> DataFrame | None:
    """Return the rows of the latest snapshot of a cached table; None if the session does not cache it.

    Args:
        spark: The session.
        location: The table's.
        given: Options of the read; rows are cached for the options of the last read.
        load: Reads the rows.
    """
    table = _tables(spark).get(canonical_uri(location))
    if table is None:
        return None
    instants = _instants(spark, location, given)  # before the rows, which are read again if they are newer
    snapshot = table.snapshot
    if snapshot is None or snapshot.instants != instants or dict(snapshot.given) != dict(given):
        table.drop()
        snapshot = table.snapshot = _Snapshot(given, instants, load().persist(table.level))
    return snapshot.rows


def _instants(spark: SparkSession, location: str, given: ReadOptions) -> tuple[tuple[str, str], ...]:
    client = TableMetaClient.open(location, Options.parse({**session_settings(spark, location), **given}))
    instants = client.active_timeline().timeline
    return tuple((instant.requested, str(instant.completion)) for instant in instants if instant.is_completed)


def _tables(spark: SparkSession) -> dict[str, CachedTable]:
    return spark.__dict__.setdefault(_CACHED, {})  # type: ignore[no-any-return]
