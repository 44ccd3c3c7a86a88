"""The methods of PySpark that pyhudi wraps, by class, with the functions that they call instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
from pyhudi.spark.activation.method_wrapping import ClassNames, Wrapper, classes, wrap

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
_SESSIONS = (("pyspark.sql.session", "SparkSession"), ("pyspark.sql.connect.session", "SparkSession"))
_FRAMES = (
    ("pyspark.sql.dataframe", "DataFrame"),
    ("pyspark.sql.classic.dataframe", "DataFrame"),
    ("pyspark.sql.connect.dataframe", "DataFrame"),
)
_WRITERS_V2 = (("pyspark.sql.readwriter", "DataFrameWriterV2"), ("pyspark.sql.connect.readwriter", "DataFrameWriterV2"))
_TEMP_VIEW_METHODS = (
    "createTempView",
    "createOrReplaceTempView",
    "createGlobalTempView",
    "createOrReplaceGlobalTempView",
    "registerTempTable",
)
_CATALOGS = (("pyspark.sql.catalog", "Catalog"), ("pyspark.sql.connect.catalog", "Catalog"))


@dataclass(frozen=True, slots=True)
class WrappedMethods:
    """Methods of some classes, with their wrappers.

    Attributes:
        classes: Modules and names of the classes.
        wrappers: Wrappers by name of the method.
        optional: Not every class and release of Spark has each of the methods.
    """

    classes: ClassNames
    wrappers: Mapping[str, Wrapper]
    optional: bool = False

    def wrap(self) -> None:
        """Wrap the methods."""
        for cls in classes(self.classes):
            for name, wrapper in self.wrappers.items():
                if not self.optional or hasattr(cls, name):
                    wrap(cls, name, wrapper)


BY_FORMAT = (
    WrappedMethods(
        (*_READERS, *_STREAM_READERS, *_STREAM_WRITERS, *_WRITERS),
        {
            "format": option_methods.set_format,
            "option": option_methods.set_option,
            "options": option_methods.set_options,
        },
    ),
    WrappedMethods(_READERS, {"schema": read_methods.set_schema, "load": read_methods.load}),
    WrappedMethods(_STREAM_READERS, {"schema": read_methods.set_schema, "load": stream_methods.load_stream_of_path}),
    WrappedMethods(
        _STREAM_WRITERS,
        {
            "outputMode": stream_methods.set_output_mode,
            "partitionBy": stream_methods.partition_stream,
            "start": stream_methods.start_stream,
            "toTable": stream_methods.to_table,
        },
    ),
    WrappedMethods(
        _WRITERS,
        {
            "mode": write_methods.set_mode,
            "partitionBy": write_methods.partition_by,
            "save": write_methods.save,
        },
    ),
    WrappedMethods(  # Spark 3.5 has no clusterBy
        (*_WRITERS, *_STREAM_WRITERS, *_WRITERS_V2),
        {name: option_methods.set_layout(name) for name in LAYOUT_METHODS},
        optional=True,
    ),
    WrappedMethods(
        _FRAMES,
        {
            "filter": read_methods.filter_rows,
            "where": read_methods.filter_rows,
            "selectExpr": read_methods.select_expressions,
            "select": read_methods.keep_columns,
            "drop": read_methods.keep_columns,
        },
    ),
)
"""Methods of reads and writes by path, and of the DataFrames that they return."""

BY_NAME = (
    WrappedMethods(_SESSIONS, {"sql": sql_methods.sql, "table": sql_methods.table}),
    WrappedMethods(
        _CATALOGS,
        {
            "cacheTable": catalog_methods.cache_table,
            "uncacheTable": catalog_methods.uncache_table,
            "isCached": catalog_methods.is_cached,
            "clearCache": catalog_methods.clear_cache,
            "listTables": catalog_methods.list_tables,
            "getTable": catalog_methods.get_table,
            "createTable": catalog_methods.create_table,
            "createExternalTable": catalog_methods.create_table,
            "dropTempView": catalog_methods.drop_temp_view,
            "listColumns": catalog_methods.list_columns,
            "refreshTable": catalog_methods.refresh_table,
        },
    ),
    WrappedMethods(  # most are of Spark 4.2
        _CATALOGS,
        {
            **{name: catalog_methods.run_statement(name) for name in catalog_methods.CATALOG_STATEMENTS},
            "listViews": catalog_methods.list_views,
        },
        optional=True,
    ),
    WrappedMethods(_READERS, {"table": read_methods.table}),
    WrappedMethods(_STREAM_READERS, {"table": stream_methods.load_stream_of_table}),
    WrappedMethods(
        _WRITERS, {"saveAsTable": write_methods.save_as_named_table, "insertInto": write_methods.insert_into_table}
    ),
    WrappedMethods(_FRAMES, {"writeTo": write_methods.write_to}),
    WrappedMethods(  # Spark 3.5 has no mergeInto
        _FRAMES, {"mergeInto": sql_methods.merge_into}, optional=True
    ),
    WrappedMethods(  # Connect has no registerTempTable
        _FRAMES,
        dict.fromkeys(_TEMP_VIEW_METHODS, sql_methods.create_temp_view),
        optional=True,
    ),
    WrappedMethods(
        _WRITERS_V2,
        {
            "using": write_methods.using,
            "tableProperty": write_methods.set_table_property,
            "partitionedBy": write_methods.set_partitioned_by,
            "option": option_methods.set_option,
            "options": option_methods.set_options,
        },
    ),
)
"""Methods that take a table name or SQL, so that they resolve Hudi tables."""

WITHOUT_PARSER = (
    WrappedMethods(_SESSIONS, {"sql": missing_sql_parser.run_in_spark, "table": missing_sql_parser.run_in_spark}),
    WrappedMethods(_WRITERS, {"saveAsTable": missing_sql_parser.save_as_named_table}),
    WrappedMethods(_WRITERS_V2, {"using": missing_sql_parser.using}),
)
"""The most used of these methods, if sqlglot is missing: their errors on Hudi tables name it."""
