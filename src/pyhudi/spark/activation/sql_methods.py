"""Activation for tables referenced by name: SQL, and the methods of readers and writers that take a table name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from pyhudi.sql.sql_parser_check import has_sql_parser

SESSIONS = (("pyspark.sql.session", "SparkSession"), ("pyspark.sql.connect.session", "SparkSession"))
FRAMES = (
    ("pyspark.sql.dataframe", "DataFrame"),
    ("pyspark.sql.classic.dataframe", "DataFrame"),
    ("pyspark.sql.connect.dataframe", "DataFrame"),
)
WRITERS_V2 = (("pyspark.sql.readwriter", "DataFrameWriterV2"), ("pyspark.sql.connect.readwriter", "DataFrameWriterV2"))

TEMP_VIEW_METHODS = (
    "createTempView",
    "createOrReplaceTempView",
    "createGlobalTempView",
    "createOrReplaceGlobalTempView",
    "registerTempTable",
)
CATALOGS = (("pyspark.sql.catalog", "Catalog"), ("pyspark.sql.connect.catalog", "Catalog"))

_SELECT = "SELECT "
_SUBQUERY = re.compile(r"\b(from|table)\b", re.IGNORECASE)
"""Words before the name of a table in a subquery."""
_Method = Callable[..., Any]


def sql(original: _Method, session: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.sql``."""
    from pyhudi.spark.sql.command_execution import run_sql

    arguments = dict(zip(("sqlQuery", "args"), args, strict=False)) | kwargs
    text = arguments.pop("sqlQuery", None)
    if not isinstance(text, str):
        return original(session, *args, **kwargs)
    return run_sql(session, text, arguments.pop("args", None), arguments)


def with_hudi_tables(spark: Any, expression: str) -> str:
    """Return an expression of a DataFrame in which the Hudi tables of subqueries can be read."""
    if _SUBQUERY.search(expression) is None or not has_sql_parser():
        return expression
    from pyhudi.spark.sql.queries.query_rewriting import rewrite_query

    prepared = rewrite_query(spark, _SELECT + expression)
    return prepared.text.removeprefix(_SELECT) if prepared.reads_hudi_tables else expression


def table(original: _Method, session: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.table``."""
    return read_table(session, {}, lambda: original(session, *args, **kwargs), *args, **kwargs)


def read_table(
    session: Any,
    read_options: Mapping[str, str],
    otherwise: Callable[[], Any],
    tableName: str,  # noqa: N803
) -> Any:
    """``spark.table`` and ``spark.read.table``."""
    from pyhudi.spark.sql.tables_by_name import read_table as read

    frame = read(session, tableName, read_options)
    return otherwise() if frame is None else frame


def write_to(original: _Method, frame: DataFrame, args: tuple[Any, ...], kwargs: dict[str, Any], state: Any) -> Any:
    """``df.writeTo``: pyhudi's writer for a Hudi table, otherwise Spark's, which ``using("hudi")`` replaces by
    pyhudi's."""
    from pyhudi.spark.sql.dataframe_writer_v2 import TableWriter
    from pyhudi.spark.sql.tables_by_name import table_of_name

    name = args[0] if args else kwargs["table"]
    if table_of_name(frame.sparkSession, name) is not None:
        return TableWriter(frame, name)
    made = original(frame, *args, **kwargs)
    state(made).creator, state(made).table = frame, name
    return made


def using(original: _Method, writer: Any, args: tuple[Any, ...], kwargs: dict[str, Any], state: Any) -> Any:
    """``df.writeTo(name).using(provider)``."""
    from pyhudi.spark.sql.dataframe_writer_v2 import TableWriter
    from pyhudi.sql.parsers.create_table_parser import PROVIDERS

    provider = args[0] if args else kwargs["provider"]
    state_of_writer = state(writer)
    if provider.upper() in PROVIDERS and state_of_writer.creator is not None:
        made = TableWriter(state_of_writer.creator, state_of_writer.table, dict(state_of_writer.options))
        return made.partitionedBy(*state_of_writer.partitioned_by) if state_of_writer.partitioned_by else made
    return original(writer, *args, **kwargs)


def merge_into(original: _Method, frame: DataFrame, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``df.mergeInto``: pyhudi's writer for a Hudi table, otherwise Spark's."""
    from pyhudi.spark.sql.merge_into_writer import MergeIntoWriter
    from pyhudi.spark.sql.tables_by_name import table_of_name

    arguments = dict(zip(("table", "condition"), args, strict=False)) | kwargs
    found = table_of_name(frame.sparkSession, arguments["table"]) if len(arguments) == 2 else None
    if found is None:
        return original(frame, *args, **kwargs)
    return MergeIntoWriter.into(found, frame, arguments["condition"])


def cache_table(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.cacheTable``."""
    from pyspark import StorageLevel

    from pyhudi.spark.sql.commands.cache_commands import cache_by_name, cache_view_by_name
    from pyhudi.spark.sql.tables_by_name import parse_name

    arguments = dict(zip(("tableName", "storageLevel"), args, strict=False)) | kwargs
    spark, table = _table_of_catalog(catalog, arguments["tableName"])
    level = arguments.get("storageLevel") or StorageLevel.MEMORY_AND_DISK_DESER
    if table is None:
        name = parse_name(arguments["tableName"])
        if name is not None and cache_view_by_name(spark, name, lambda: level, lazy=True):
            return None
        return original(catalog, *args, **kwargs)
    return cache_by_name(spark, table, level, lazy=True)


def uncache_table(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.uncacheTable``."""
    from pyhudi.spark.sql.commands.cache_commands import uncache_view
    from pyhudi.spark.sql.queries.table_cache import uncache
    from pyhudi.spark.sql.tables_by_name import parse_name

    text = args[0] if args else kwargs["tableName"]
    spark, table = _table_of_catalog(catalog, text)
    if table is not None:
        return uncache(spark, table.location)
    name = parse_name(text)
    return None if name is not None and uncache_view(spark, name) else original(catalog, *args, **kwargs)


def is_cached(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.isCached``."""
    from pyhudi.spark.sql.commands.cache_commands import is_cached_view
    from pyhudi.spark.sql.queries import table_cache
    from pyhudi.spark.sql.tables_by_name import parse_name

    text = args[0] if args else kwargs["tableName"]
    spark, table = _table_of_catalog(catalog, text)
    if table is not None:
        return table_cache.is_cached(spark, table.location)
    name = parse_name(text)
    return (name is not None and is_cached_view(spark, name)) or original(catalog, *args, **kwargs)


def clear_cache(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.clearCache``."""
    from pyhudi.spark.sql.queries.table_cache import clear

    clear(catalog._sparkSession)
    return original(catalog, *args, **kwargs)


def list_tables(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.listTables``."""
    from pyhudi.spark.sql.catalog_listing import listed_tables

    return listed_tables(catalog._sparkSession, original(catalog, *args, **kwargs))


def get_table(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.getTable``."""
    from pyhudi.spark.sql.catalog_listing import shown_table

    return shown_table(catalog._sparkSession, original(catalog, *args, **kwargs))


def create_table(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.createTable`` and ``createExternalTable``."""
    from pyhudi.spark.sql.writes_by_name import create_by_name
    from pyhudi.sql.parsers.create_table_parser import PROVIDERS

    names = ("tableName", "path", "source", "schema", "description")
    arguments = dict(zip(names, args, strict=False)) | kwargs
    source = arguments.pop("source", None)
    if not isinstance(source, str) or source.upper() not in PROVIDERS:
        return original(catalog, *args, **kwargs)
    path, schema, description = (arguments.pop(name, None) for name in ("path", "schema", "description"))
    properties = arguments if path is None else {**arguments, "path": path}
    name = properties.pop("tableName")
    return create_by_name(catalog._sparkSession, name, schema, properties, description)


def drop_temp_view(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.dropTempView``: the view may have hidden a Hudi table."""
    from pyhudi.spark.sql.catalog import non_hudi_tables

    try:
        return original(catalog, *args, **kwargs)
    finally:
        non_hudi_tables.clear()


def create_temp_view(original: _Method, frame: DataFrame, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``df.createOrReplaceTempView`` and the like: the view may take the place of one of a query."""
    from pyhudi.spark.read.load_table import load_request
    from pyhudi.spark.sql.queries.view_registry import forget_view, global_name, remember_load
    from pyhudi.spark.sql.tables_by_name import parse_name

    made = original(frame, *args, **kwargs)
    name = parse_name(args[0] if args else kwargs["name"])
    if name is not None:
        spark, request = frame.sparkSession, load_request(frame)
        name = global_name(spark, name[-1]) if "Global" in original.__name__ else name
        if request is None:
            forget_view(spark, name)
        else:
            remember_load(spark, name, request)
    return made


def refresh_table(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.refreshTable``: queries of Hudi tables always read the current timeline, and views are loaded
    again."""
    from pyhudi.spark.sql.commands.cache_commands import refresh_view
    from pyhudi.spark.sql.queries.view_refresh import refresh_loaded_view
    from pyhudi.spark.sql.tables_by_name import parse_name, table_of_name

    text, spark = args[0] if args else kwargs["tableName"], catalog._sparkSession
    name = parse_name(text)
    if name is not None and (refresh_loaded_view(spark, name) or table_of_name(spark, text) is not None):
        return None
    if name is not None:
        refresh_view(spark, name)
    return original(catalog, *args, **kwargs)


def list_columns(original: _Method, catalog: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.catalog.listColumns``."""
    from pyhudi.spark.sql.catalog_listing import listed_columns
    from pyhudi.spark.sql.tables_by_name import parse_name

    columns = original(catalog, *args, **kwargs)
    arguments = dict(zip(("tableName", "dbName"), args, strict=False)) | kwargs
    database, name = arguments.get("dbName"), parse_name(arguments["tableName"])
    if name is None:
        return columns
    return listed_columns(catalog._sparkSession, name if database is None else (database, *name), columns)


def _table_of_catalog(catalog: Any, name: str) -> tuple[Any, Any]:
    """Return the session of a catalog, and its Hudi table of a name; None for anything else."""
    from pyhudi.spark.sql.tables_by_name import table_of_name

    return catalog._sparkSession, table_of_name(catalog._sparkSession, name)
