"""Activation of pyhudi in Spark: ``spark.read.format("hudi")`` and ``df.write.format("hudi")`` are handled by pyhudi.

The methods of PySpark's public reader and writer classes, classic and Connect, that name a format, collect options,
load and save are wrapped. Other formats pass through unchanged. Options are recorded in addition to Spark's own,
because Spark offers no way to read them back.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.config.layout_methods import LAYOUT_METHODS
from pyhudi.spark.activation import (
    catalog_methods,
    missing_sql_parser,
    option_methods,
    read_methods,
    sql_methods,
    stream_methods,
    write_methods,
)
from pyhudi.spark.activation.method_wrapping import ORIGINALS, classes, wrap, wrap_maker
from pyhudi.spark.hudi_jar_configs import remove_unloadable_hudi_configs
from pyhudi.spark.session import check_session, check_workers
from pyhudi.sql.sql_parser_check import has_sql_parser

_READERS = (("pyspark.sql.readwriter", "DataFrameReader"), ("pyspark.sql.connect.readwriter", "DataFrameReader"))
_WRITERS = (("pyspark.sql.readwriter", "DataFrameWriter"), ("pyspark.sql.connect.readwriter", "DataFrameWriter"))
_STREAM_READERS = (
    ("pyspark.sql.streaming.readwriter", "DataStreamReader"),
    ("pyspark.sql.connect.streaming.readwriter", "DataStreamReader"),
)
_STREAM_WRITERS = (
    ("pyspark.sql.streaming.readwriter", "DataStreamWriter"),
    ("pyspark.sql.connect.streaming.readwriter", "DataStreamWriter"),
)
_MAKERS = (
    ("pyspark.sql.session", "SparkSession", "readStream"),
    ("pyspark.sql.connect.session", "SparkSession", "readStream"),
    ("pyspark.sql.dataframe", "DataFrame", "writeStream"),
    ("pyspark.sql.classic.dataframe", "DataFrame", "writeStream"),
    ("pyspark.sql.connect.dataframe", "DataFrame", "writeStream"),
    ("pyspark.sql.session", "SparkSession", "read"),
    ("pyspark.sql.connect.session", "SparkSession", "read"),
    ("pyspark.sql.dataframe", "DataFrame", "write"),
    ("pyspark.sql.classic.dataframe", "DataFrame", "write"),
    ("pyspark.sql.connect.dataframe", "DataFrame", "write"),
)


def activate(spark: SparkSession | None = None) -> SparkSession | None:
    """Let pyhudi handle ``format("hudi")`` (also ``org.apache.hudi``) in all sessions of this process.

    If sqlglot is installed (``pyhudi[sql]``), pyhudi also handles SQL on Hudi tables and references to them by name.

    Does nothing if pyhudi is already active. :func:`deactivate` reverts it.

    Args:
        spark: Session that is checked: that its Python workers can import pyhudi, and that settings for Apache Hudi's
            jar are not in its way; None to skip the checks.

    Returns:
        ``spark``.

    Raises:
        SetupError: ``spark`` is not a session, its workers run a Python that cannot import pyhudi, or a setting names a
            class of Apache Hudi's jar without which ``spark`` cannot run jobs.
    """
    if spark is not None:
        check_session(spark)
        check_workers(spark)
        remove_unloadable_hudi_configs(spark)
    for module, name, attribute in _MAKERS:
        for cls in classes(((module, name),)):
            wrap_maker(cls, attribute)
    for cls in classes((*_READERS, *_STREAM_READERS, *_STREAM_WRITERS, *_WRITERS)):
        wrap(cls, "format", option_methods.set_format)
        wrap(cls, "option", option_methods.set_option)
        wrap(cls, "options", option_methods.set_options)
    for cls in classes(_READERS):
        wrap(cls, "schema", read_methods.set_schema)
        wrap(cls, "load", read_methods.load)
    for cls in classes(_STREAM_READERS):
        wrap(cls, "schema", read_methods.set_schema)
        wrap(cls, "load", stream_methods.load_streaming_table)
    for cls in classes(_STREAM_WRITERS):
        wrap(cls, "outputMode", stream_methods.set_output_mode)
        wrap(cls, "partitionBy", stream_methods.partition_stream)
        wrap(cls, "start", stream_methods.start_stream)
        wrap(cls, "toTable", stream_methods.to_table)
    for cls in classes(_WRITERS):
        wrap(cls, "mode", write_methods.set_mode)
        wrap(cls, "partitionBy", write_methods.partition_by)
        wrap(cls, "save", write_methods.save)
    for cls in classes((*_WRITERS, *_STREAM_WRITERS, *sql_methods.WRITERS_V2)):
        for name in LAYOUT_METHODS:
            if hasattr(cls, name):  # Spark 3.5 has no clusterBy
                wrap(cls, name, option_methods.set_layout(name))
    for cls in classes(sql_methods.FRAMES):
        wrap(cls, "filter", read_methods.filter_rows)
        wrap(cls, "where", read_methods.filter_rows)
        wrap(cls, "selectExpr", read_methods.select_expressions)
        for name in ("select", "drop"):
            wrap(cls, name, read_methods.keep_columns)
    if has_sql_parser():
        _wrap_names()
    else:
        _wrap_names_without_parser()
    return spark


def _wrap_names_without_parser() -> None:
    """Wrap the most used of these methods, so that their errors on Hudi tables name the missing package."""
    for cls in classes(sql_methods.SESSIONS):
        wrap(cls, "sql", missing_sql_parser.run_in_spark)
        wrap(cls, "table", missing_sql_parser.run_in_spark)
    for cls in classes(_WRITERS):
        wrap(cls, "saveAsTable", missing_sql_parser.save_as_named_table)
    for cls in classes(sql_methods.WRITERS_V2):
        wrap(cls, "using", missing_sql_parser.using)


def _wrap_names() -> None:
    """Wrap all methods that take a table name or SQL, so that they resolve Hudi tables."""
    for cls in classes(sql_methods.SESSIONS):
        wrap(cls, "sql", sql_methods.sql)
        wrap(cls, "table", sql_methods.table)
    for cls in classes(sql_methods.CATALOGS):
        wrap(cls, "cacheTable", sql_methods.cache_table)
        wrap(cls, "uncacheTable", sql_methods.uncache_table)
        wrap(cls, "isCached", sql_methods.is_cached)
        wrap(cls, "clearCache", sql_methods.clear_cache)
        wrap(cls, "listTables", sql_methods.list_tables)
        wrap(cls, "getTable", sql_methods.get_table)
        wrap(cls, "createTable", sql_methods.create_table)
        wrap(cls, "createExternalTable", sql_methods.create_table)
        wrap(cls, "dropTempView", sql_methods.drop_temp_view)
        wrap(cls, "listColumns", sql_methods.list_columns)
        wrap(cls, "refreshTable", sql_methods.refresh_table)
        for name in catalog_methods.CATALOG_STATEMENTS:
            if hasattr(cls, name):  # most are of Spark 4.2
                wrap(cls, name, catalog_methods.run_statement(name))
        if hasattr(cls, "listViews"):
            wrap(cls, "listViews", catalog_methods.list_views)
    for cls in classes(_READERS):
        wrap(cls, "table", read_methods.table)
    for cls in classes(_STREAM_READERS):
        wrap(cls, "table", stream_methods.stream_table)
    for cls in classes(_WRITERS):
        wrap(cls, "saveAsTable", write_methods.save_as_named_table)
        wrap(cls, "insertInto", write_methods.insert_into_table)
    for cls in classes(sql_methods.FRAMES):
        wrap(cls, "writeTo", write_methods.write_to)
        for name in sql_methods.TEMP_VIEW_METHODS:
            if hasattr(cls, name):  # Connect has no registerTempTable
                wrap(cls, name, sql_methods.create_temp_view)
    for cls in classes(sql_methods.WRITERS_V2):
        wrap(cls, "using", write_methods.using)
        wrap(cls, "tableProperty", write_methods.set_table_property)
        wrap(cls, "partitionedBy", write_methods.set_partitioned_by)
        wrap(cls, "option", option_methods.set_option)
        wrap(cls, "options", option_methods.set_options)


def deactivate() -> None:
    """Revert :func:`activate`."""
    for (cls, name), original in ORIGINALS.items():
        setattr(cls, name, original)
    ORIGINALS.clear()
