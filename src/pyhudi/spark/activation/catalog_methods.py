"""Methods of ``spark.catalog``. Those that are statements on one table, most of them of Spark 4.2, run these statements
on a Hudi table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from pyhudi.spark.activation.method_wrapping import MethodCall, Wrapper


def _nothing(_: DataFrame) -> None:
    return None


def _pairs(rows: DataFrame) -> dict[str, str]:
    return {row[0]: row[1] for row in rows.collect()}


def _text(rows: DataFrame) -> str:
    return str(rows.collect()[0][0])


def _partitions(rows: DataFrame) -> list[Any]:
    from pyspark.sql.catalog import TablePartition  # which Spark 3.5 does not have

    return [TablePartition(partition=row[0]) for row in rows.collect()]


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement, with the name of the table in place of ``{}``.

    Attributes:
        text: The statement.
        returned: Converts its result to that of the method.
    """

    text: str
    returned: Callable[[DataFrame], Any] = _nothing


_STATEMENTS = {
    "recoverPartitions": _Statement("MSCK REPAIR TABLE {}"),
    "dropTable": _Statement("DROP TABLE {}"),
    "dropView": _Statement("DROP VIEW {}"),
    "truncateTable": _Statement("TRUNCATE TABLE {}"),
    "analyzeTable": _Statement("ANALYZE TABLE {} COMPUTE STATISTICS"),
    "listPartitions": _Statement("SHOW PARTITIONS {}", _partitions),
    "getTableProperties": _Statement("SHOW TBLPROPERTIES {}", _pairs),
    "getCreateTableString": _Statement("SHOW CREATE TABLE {}", _text),
}
CATALOG_STATEMENTS = tuple(_STATEMENTS)
"""Names of the methods."""


def run_statement(method: str) -> Wrapper:
    """Return the wrapper of one of `CATALOG_STATEMENTS`."""
    statement = _STATEMENTS[method]

    def run(call: MethodCall) -> Any:
        from pyhudi.spark.sql.command_execution import run_sql
        from pyhudi.spark.sql.tables_by_name import table_of_name

        spark = call.target._sparkSession
        name = str(call.args[0] if call.args else call.kwargs.get("tableName", call.kwargs.get("viewName")))
        if table_of_name(spark, name) is None:
            return call.run()
        purge = method == "dropTable" and (call.kwargs.get("purge") or call.args[2:3] == (True,))
        return statement.returned(run_sql(spark, statement.text.format(name) + " PURGE" * bool(purge)))

    return run


def list_views(call: MethodCall) -> Any:
    """``spark.catalog.listViews``: without Hudi tables, which the catalog keeps as views."""
    from pyhudi.spark.sql.catalog import EXTERNAL_TYPE, MANAGED_TYPE
    from pyhudi.spark.sql.catalog_listing import listed_tables

    views = listed_tables(call.target._sparkSession, call.run())
    return [view for view in views if view.tableType not in (MANAGED_TYPE, EXTERNAL_TYPE)]


def cache_table(call: MethodCall) -> Any:
    """``spark.catalog.cacheTable``."""
    from pyspark import StorageLevel

    from pyhudi.spark.sql.commands.cache_commands import cache_by_name, cache_view_by_name
    from pyhudi.spark.sql.tables_by_name import parse_name

    arguments = call.arguments("tableName", "storageLevel")
    spark, table = _table_of_catalog(call.target, arguments["tableName"])
    level = arguments.get("storageLevel") or StorageLevel.MEMORY_AND_DISK_DESER
    if table is None:
        name = parse_name(arguments["tableName"])
        if name is not None and cache_view_by_name(spark, name, lambda: level, lazy=True):
            return None
        return call.run()
    return cache_by_name(spark, table, level, lazy=True)


def uncache_table(call: MethodCall) -> Any:
    """``spark.catalog.uncacheTable``."""
    from pyhudi.spark.sql.commands.cache_commands import uncache_view
    from pyhudi.spark.sql.queries.table_cache import uncache
    from pyhudi.spark.sql.tables_by_name import parse_name

    text = call.first("tableName")
    spark, table = _table_of_catalog(call.target, text)
    if table is not None:
        return uncache(spark, table.location)
    name = parse_name(text)
    return None if name is not None and uncache_view(spark, name) else call.run()


def is_cached(call: MethodCall) -> Any:
    """``spark.catalog.isCached``."""
    from pyhudi.spark.sql.commands.cache_commands import is_cached_view
    from pyhudi.spark.sql.queries import table_cache
    from pyhudi.spark.sql.tables_by_name import parse_name

    text = call.first("tableName")
    spark, table = _table_of_catalog(call.target, text)
    if table is not None:
        return table_cache.is_cached(spark, table.location)
    name = parse_name(text)
    return (name is not None and is_cached_view(spark, name)) or call.run()


def clear_cache(call: MethodCall) -> Any:
    """``spark.catalog.clearCache``."""
    from pyhudi.spark.sql.queries.table_cache import clear

    clear(call.target._sparkSession)
    return call.run()


def list_tables(call: MethodCall) -> Any:
    """``spark.catalog.listTables``."""
    from pyhudi.spark.sql.catalog_listing import listed_tables

    return listed_tables(call.target._sparkSession, call.run())


def get_table(call: MethodCall) -> Any:
    """``spark.catalog.getTable``."""
    from pyhudi.spark.sql.catalog_listing import shown_table

    return shown_table(call.target._sparkSession, call.run())


def create_table(call: MethodCall) -> Any:
    """``spark.catalog.createTable`` and ``createExternalTable``."""
    from pyhudi.spark.sql.writes_by_name import create_by_name
    from pyhudi.sql.parsers.create_table_parser import PROVIDERS

    names = ("tableName", "path", "source", "schema", "description")
    arguments = call.arguments(*names)
    source = arguments.pop("source", None)
    if not isinstance(source, str) or source.upper() not in PROVIDERS:
        return call.run()
    path, schema, description = (arguments.pop(name, None) for name in ("path", "schema", "description"))
    properties = arguments if path is None else {**arguments, "path": path}
    name = properties.pop("tableName")
    return create_by_name(call.target._sparkSession, name, schema, properties, description)


def drop_temp_view(call: MethodCall) -> Any:
    """``spark.catalog.dropTempView``: the view may have hidden a Hudi table."""
    from pyhudi.spark.sql.catalog import non_hudi_tables

    try:
        return call.run()
    finally:
        non_hudi_tables.clear()


def refresh_table(call: MethodCall) -> Any:
    """``spark.catalog.refreshTable``: queries of Hudi tables always read the current timeline, and views are loaded
    again."""
    from pyhudi.spark.sql.commands.cache_commands import refresh_view
    from pyhudi.spark.sql.queries.view_refresh import refresh_loaded_view
    from pyhudi.spark.sql.tables_by_name import parse_name, table_of_name

    text, spark = call.first("tableName"), call.target._sparkSession
    name = parse_name(text)
    if name is not None and (refresh_loaded_view(spark, name) or table_of_name(spark, text) is not None):
        return None
    if name is not None:
        refresh_view(spark, name)
    return call.run()


def list_columns(call: MethodCall) -> Any:
    """``spark.catalog.listColumns``."""
    from pyhudi.spark.sql.catalog_listing import listed_columns
    from pyhudi.spark.sql.tables_by_name import parse_name

    columns = call.run()
    arguments = call.arguments("tableName", "dbName")
    database, name = arguments.get("dbName"), parse_name(arguments["tableName"])
    if name is None:
        return columns
    return listed_columns(call.target._sparkSession, name if database is None else (database, *name), columns)


def _table_of_catalog(catalog: Any, name: str) -> tuple[Any, Any]:
    """Return the session of a catalog, and its Hudi table of a name; None for anything else."""
    from pyhudi.spark.sql.tables_by_name import table_of_name

    return catalog._sparkSession, table_of_name(catalog._sparkSession, name)
