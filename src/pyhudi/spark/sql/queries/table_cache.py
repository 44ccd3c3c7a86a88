"""``CACHE TABLE`` of Hudi tables and of permanent views of them: cached rows of the latest snapshot, for all sessions
of an application.

As in Spark, a table that one session caches is cached for the others, too, and any of them may release it. A DataFrame
of Spark Connect belongs to its session, so there each session caches rows of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options
from pyhudi.spark.column_names import quoted
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.session_settings import is_connect
from pyhudi.spark.sql.catalog import CatalogView
from pyhudi.spark.sql.queries.view_registry import folded, session_id
from pyhudi.sql.statements import Name
from pyhudi.storage.canonical_uri import canonical_uri
from pyhudi.table.meta_client import TableMetaClient

_APPLICATION = "spark.app.id"
_MAX_SNAPSHOTS = 4
"""Sessions that read with other options have other rows cached, until the oldest of so many are released."""
ReadOptions: TypeAlias = Mapping[str, str]
_Instants: TypeAlias = tuple[tuple[str, str], ...]
_SnapshotKey: TypeAlias = tuple[str, Hashable]
_TableKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Cached rows, with the completed instants of the timeline."""

    instants: _Instants
    rows: DataFrame


@dataclass(slots=True)
class CachedTable:
    """A table, or a permanent view of tables, that an application caches.

    Attributes:
        level: Storage level of its rows.
        view: The view, which is no longer cached if another one takes its place.
    """

    level: StorageLevel
    view: CatalogView | None = None
    locations: frozenset[str] = frozenset()
    """Canonical locations of the tables that a view has read."""
    _snapshots: dict[_SnapshotKey, _Snapshot] = field(default_factory=dict)
    _guard: Lock = field(default_factory=Lock)

    def rows(self, key: _SnapshotKey, instants: _Instants, load: Callable[[], DataFrame]) -> DataFrame:
        """Return the rows of these instants, cached.

        Args:
            key: The session, if only this one can read the rows, and what else decides them.
            instants: Completed instants.
            load: Reads the rows.
        """
        with self._guard:
            if any(snapshot.instants != instants for snapshot in self._snapshots.values()):
                self._release()
            snapshot = self._snapshots.get(key)
            if snapshot is None:
                while len(self._snapshots) >= _MAX_SNAPSHOTS:
                    _unpersist(self._snapshots.pop(next(iter(self._snapshots))))
                snapshot = self._snapshots[key] = _Snapshot(instants, load().persist(self.level))
            return snapshot.rows

    def release(self) -> None:
        """Release the rows."""
        with self._guard:
            self._release()

    def _release(self) -> None:
        for snapshot in self._snapshots.values():
            _unpersist(snapshot)
        self._snapshots.clear()


_tables: dict[_TableKey, CachedTable] = {}


def cache(spark: SparkSession, location: str, level: StorageLevel) -> None:
    """Cache the table when it is next queried. A table that is cached already keeps its rows."""
    _tables.setdefault(_key(spark, location), CachedTable(level))


def uncache(spark: SparkSession, location: str) -> None:
    """Release the rows of a table, if they are cached, and those of the views that read it."""
    if not _tables:
        return
    application, uri = _key(spark, location)
    for key in [key for key, view in list(_tables.items()) if key[0] == application and uri in view.locations]:
        _release(key)
    _release((application, uri))


def cache_view(
    spark: SparkSession, name: Name, view: CatalogView, level: StorageLevel, locations: Collection[str]
) -> None:
    """Cache a permanent view when it is next queried. A view that is cached already keeps its rows.

    Args:
        spark: The session.
        name: The view's full name.
        view: The view.
        level: Storage level of its rows.
        locations: Those of its tables.
    """
    if cached_view(spark, name, view) is None:
        _tables[_view_key(spark, name)] = CachedTable(level, view, frozenset(map(canonical_uri, locations)))


def cached_view(spark: SparkSession, name: Name, view: CatalogView) -> CachedTable | None:
    """Return a permanent view that is cached; None if the application does not cache it."""
    if not _tables:
        return None
    cached = _tables.get(_view_key(spark, name))
    if cached is not None and cached.view != view:  # it was replaced
        uncache_view(spark, name)
        return None
    return cached


def uncache_view(spark: SparkSession, name: Name) -> None:
    """Release the rows of a permanent view, if they are cached."""
    if _tables:
        _release(_view_key(spark, name))


def refresh_view(spark: SparkSession, name: Name) -> None:
    """Release the rows of a permanent view, if they are cached. The next query reads them again."""
    cached = _tables.get(_view_key(spark, name)) if _tables else None
    if cached is not None:
        cached.release()


def rename_view(spark: SparkSession, name: Name, to: Name, view: CatalogView) -> None:
    """Cache a permanent view under its new name, if it is cached."""
    cached = _tables.pop(_view_key(spark, name), None) if _tables else None
    if cached is not None:
        cached.view = view
        _tables[_view_key(spark, to)] = cached


def rows_of_view(
    spark: SparkSession,
    cached: CachedTable,
    locations: Collection[str],
    identity: Hashable,
    load: Callable[[], DataFrame],
) -> DataFrame:
    """Return the rows of a cached view of the latest snapshots of its tables.

    Args:
        spark: The session.
        cached: The view.
        locations: Those of its tables.
        identity: What else decides the rows, such as settings of the session.
        load: Reads the rows.
    """
    cached.locations = frozenset(map(canonical_uri, locations))
    instants = tuple(instant for location in sorted(locations) for instant in _instants(spark, location, {}))
    return cached.rows((_owner(spark), identity), instants, load)


def _release(key: _TableKey) -> None:
    table = _tables.pop(key, None)
    if table is not None:
        table.release()


def is_cached(spark: SparkSession, location: str) -> bool:
    """Return True if the application caches a table."""
    return bool(_tables) and _key(spark, location) in _tables


def clear(spark: SparkSession) -> None:
    """Release the rows of all tables of the application."""
    application = _application(spark) if _tables else ""
    for key in [key for key in list(_tables) if key[0] == application]:
        _release(key)


def cached_rows(
    spark: SparkSession, location: str, options: ReadOptions, load: Callable[[], DataFrame]
) -> DataFrame | None:
    """Return the rows of the latest snapshot of a cached table; None if the application does not cache it.

    Args:
        spark: The session.
        location: The table's.
        options: Options of the read.
        load: Reads the rows.
    """
    table = _tables.get(_key(spark, location)) if _tables else None
    if table is None:
        return None
    instants = _instants(spark, location, options)  # before the rows, which are read again if they are newer
    return table.rows((_owner(spark), tuple(sorted(options.items()))), instants, load)


def _owner(spark: SparkSession) -> str:
    """Return the session to which the DataFrames of a cache belong; empty: any session reads them."""
    return session_id(spark) if is_connect(spark) else ""


def _instants(spark: SparkSession, location: str, options: ReadOptions) -> _Instants:
    client = TableMetaClient.open(location, Options.parse({**session_settings(spark, location), **options}))
    instants = client.active_timeline().timeline
    return tuple((instant.requested, str(instant.completion)) for instant in instants if instant.is_completed)


def _unpersist(snapshot: _Snapshot) -> None:
    with suppress(PySparkException):  # its session of Spark Connect has ended
        snapshot.rows.unpersist()


def _key(spark: SparkSession, location: str) -> _TableKey:
    return _application(spark), canonical_uri(location)


def _view_key(spark: SparkSession, name: Name) -> _TableKey:
    return _application(spark), f"view {quoted(folded(name))}"


def _application(spark: SparkSession) -> str:
    """Return the identifier of the application, or of the session if the service does not expose that."""
    try:
        return spark.conf.get(_APPLICATION, None) or session_id(spark)
    except PySparkException:
        return session_id(spark)
