"""CACHE and UNCACHE TABLE."""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import SparkSession

from pyhudi.errors import InvalidOptionError, QueryError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.queries import table_cache
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.queries.rewritten_query import RewrittenQuery
from pyhudi.spark.sql.queries.view_registry import forget_view
from pyhudi.spark.sql.spark_statements import spark_sql
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
        lazy: They are read by the next query instead of at once.
    """
    table_cache.cache(spark, table.location, level)
    if not lazy:
        spark_sql(spark, rewrite_query(spark, f"SELECT * FROM {table.sql}").text).count()


def check_cached_view(spark: SparkSession, name: Name) -> None:
    """Refresh a temporary view before Spark caches it.

    Args:
        spark: The session.
        name: Name of a view, or of a table that is not a Hudi table.

    Raises:
        QueryError: It is a permanent view of Hudi tables, whose rows Spark cannot read by this name.
    """
    if rewrite_query(spark, f"SELECT * FROM {quoted(name)}").shown:
        raise QueryError(
            f"{quoted(name)} is a permanent view of Hudi tables, which cannot be cached; cache its tables, or its "
            f"current rows under another name: CACHE TABLE … AS SELECT * FROM {quoted(name)}"
        )


def uncache_table(spark: SparkSession, table: CatalogTable, _: UncacheTable) -> None:
    """Run UNCACHE TABLE of a Hudi table."""
    table_cache.uncache(spark, table.location)


def cache_query(spark: SparkSession, statement: CacheTable, prepared: RewrittenQuery) -> None:
    """Run CACHE TABLE … AS a query of Hudi tables: create a temporary view of its current rows."""
    level = _level(statement)
    if len(statement.name) > 1:
        raise QueryError(f"CACHE TABLE {quoted(statement.name)} AS makes a temporary view, which has no database")
    rows = spark_sql(spark, prepared.text)
    rows.createTempView(quoted(statement.name))
    forget_view(spark, statement.name[-1:])
    rows.persist(level)
    if not statement.lazy:
        rows.count()


def _level(statement: CacheTable) -> StorageLevel:
    given = next((value for key, value in statement.options.items() if key.lower() == _LEVEL.lower()), None)
    if given is None:
        return StorageLevel.MEMORY_AND_DISK_DESER
    if given.upper() not in _LEVELS:
        raise InvalidOptionError(_LEVEL, given, ", ".join(_LEVELS))
    return _LEVELS[given.upper()]
