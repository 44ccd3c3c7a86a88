"""CACHE and UNCACHE TABLE."""

from __future__ import annotations

from collections.abc import Callable

from pyspark import StorageLevel
from pyspark.sql import SparkSession

from pyhudi.errors import InvalidOptionError, QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import CatalogTable, CatalogView, find, full_name
from pyhudi.spark.sql.queries import table_cache
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.queries.rewritten_query import RewrittenQuery
from pyhudi.spark.sql.queries.view_registry import forget_view
from pyhudi.sql.statements import CacheTable, Name, UncacheTable

_LEVEL = "storageLevel"
_LEVELS = {
    "NONE": StorageLevel.NONE,
    "DISK_ONLY": StorageLevel.DISK_ONLY,
    "DISK_ONLY_2": StorageLevel.DISK_ONLY_2,
    "MEMORY_ONLY": StorageLevel.MEMORY_ONLY,
    "MEMORY_ONLY_2": StorageLevel.MEMORY_ONLY_2,
    "MEMORY_AND_DISK": StorageLevel.MEMORY_AND_DISK,
    "MEMORY_AND_DISK_2": StorageLevel.MEMORY_AND_DISK_2,
    "MEMORY_AND_DISK_DESER": StorageLevel.MEMORY_AND_DISK_DESER,
    "OFF_HEAP": StorageLevel.OFF_HEAP,
    # values in Python are serialised in any case
    "DISK_ONLY_3": StorageLevel.DISK_ONLY_3,
    "MEMORY_ONLY_SER": StorageLevel.MEMORY_ONLY,
    "MEMORY_ONLY_SER_2": StorageLevel.MEMORY_ONLY_2,
    "MEMORY_AND_DISK_SER": StorageLevel.MEMORY_AND_DISK,
    "MEMORY_AND_DISK_SER_2": StorageLevel.MEMORY_AND_DISK_2,
}


def cache_table(spark: SparkSession, table: CatalogTable, statement: CacheTable) -> None:
    """Run CACHE TABLE of a Hudi table: queries by its name reuse its rows until the next commit."""
    cache_by_name(spark, table, _level(statement), lazy=statement.lazy)


def cache_by_name(spark: SparkSession, table: CatalogTable, level: StorageLevel, *, lazy: bool) -> None:
    """Cache a Hudi table.

    Args:
        spark: The session.
        table: The table.
        level: Storage level of its rows.
        lazy: Rows are read by the next query instead of immediately.
    """
    table_cache.cache(spark, table.location, level)
    if not lazy:
        spark_sql(spark, rewrite_query(spark, f"SELECT * FROM {table.sql}").text).count()


def cache_view(spark: SparkSession, name: Name, statement: CacheTable) -> bool:
    """Run CACHE TABLE of a permanent view of Hudi tables.

    Args:
        spark: The session.
        name: Name of a view, or of a table that is not a Hudi table.
        statement: The statement.

    Returns:
        False for anything else, which Spark caches. A temporary view has been refreshed.
    """
    return cache_view_by_name(spark, name, lambda: _level(statement), lazy=statement.lazy)


def cache_view_by_name(spark: SparkSession, name: Name, level: Callable[[], StorageLevel], *, lazy: bool) -> bool:
    """Cache a permanent view of Hudi tables: queries by its name reuse its rows until the next commit to one of them.

    Args:
        spark: The session.
        name: Name of a view, or of a table that is not a Hudi table.
        level: Gives the storage level of its rows.
        lazy: They are read by the next query instead of at once.

    Returns:
        False for anything else, which Spark caches. A temporary view has been refreshed.
    """
    query = f"SELECT * FROM {quoted(name)}"
    prepared = rewrite_query(spark, query)
    if not prepared.shown:
        return False
    view = find(spark, name)
    assert isinstance(view, CatalogView)
    table_cache.cache_view(spark, full_name(spark, name), view, level(), prepared.locations)
    if not lazy:
        spark_sql(spark, rewrite_query(spark, query).text).count()
    return True


def is_cached_view(spark: SparkSession, name: Name) -> bool:
    """Return True if a name is that of a permanent view of Hudi tables that is cached."""
    view = find(spark, name)
    return isinstance(view, CatalogView) and table_cache.cached_view(spark, full_name(spark, name), view) is not None


def uncache_view(spark: SparkSession, name: Name) -> bool:
    """Run UNCACHE TABLE of a permanent view of Hudi tables. Return False for anything that is not cached as one."""
    if not is_cached_view(spark, name):
        return False
    table_cache.uncache_view(spark, full_name(spark, name))
    return True


def refresh_view(spark: SparkSession, name: Name) -> None:
    """Run the part of REFRESH TABLE that Spark does not know: cached rows of a permanent view of Hudi tables."""
    if is_cached_view(spark, name):
        table_cache.refresh_view(spark, full_name(spark, name))


def rename_view(spark: SparkSession, name: Name, to: Name) -> None:
    """Keep a permanent view cached that has been renamed, as Spark does."""
    old = full_name(spark, name)
    view = find(spark, new := (*old[:-1], to[-1]))
    if isinstance(view, CatalogView):
        table_cache.rename_view(spark, old, new, view)


def uncache_table(spark: SparkSession, table: CatalogTable, _: UncacheTable) -> None:
    """Run UNCACHE TABLE of a Hudi table."""
    table_cache.uncache(spark, table.location)


def cache_query(spark: SparkSession, statement: CacheTable, prepared: RewrittenQuery) -> None:
    """Run CACHE TABLE … AS a query of Hudi tables: create a temporary view of its current rows."""
    level = _level(statement)
    if len(statement.name) > 1:
        raise QueryError(
            f"CACHE TABLE {quoted(statement.name)} AS creates a temporary view, which has no database; leave it out"
        )
    rows = spark_sql(spark, prepared.text)
    rows.createTempView(quoted(statement.name))
    forget_view(spark, statement.name[-1:])
    rows.persist(level)
    if not statement.lazy:
        rows.count()


def _level(statement: CacheTable) -> StorageLevel:
    level = next((value for key, value in statement.options.items() if key.lower() == _LEVEL.lower()), None)
    if level is None:
        return StorageLevel.MEMORY_AND_DISK_DESER
    if level.upper() not in _LEVELS:
        raise InvalidOptionError(_LEVEL, level, ", ".join(_LEVELS))
    return _LEVELS[level.upper()]
