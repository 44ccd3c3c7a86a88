"""Procedures that copy the rows of a query to a table or a temporary view."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import options
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.spark.column_names import select_names
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.writes_by_name import TableSpec, save_as_table
from pyhudi.sql.table_properties import registered_properties, table_options

_TIMES = {
    "begin_instance_time": options.BEGIN_INSTANTTIME.key,
    "end_instance_time": options.END_INSTANTTIME.key,
    "as_of_instant": options.AS_OF_INSTANT.key,
}


def copy_to_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Write the rows of a query to another table, with the same keys and partitions if it has to be made."""
    config, rows = arguments.client(spark).config, _read(spark, arguments)
    fields = tuple(field.name for field in config.partition_fields)
    chosen = arguments.texts("columns") or [name for name in rows.columns if not is_meta_column(name)]
    properties = registered_properties(config.record_keys, config.ordering_fields, config.table_type)
    save_as_table(
        select_names(rows, chosen),
        str(arguments.text("new_table")),
        TableSpec(fields, table_options(properties)),
        is_hudi=True,
        mode=str(arguments.text("save_mode")),
    )
    return [(0,)]


def copy_to_temp_view(spark: SparkSession, arguments: Arguments) -> Rows:
    """Create a temporary view of the current snapshot of the table."""
    rows, view = _read(spark, arguments), str(arguments.text("view_name"))
    match (arguments.flag("global"), arguments.flag("replace")):
        case (True, True):
            rows.createOrReplaceGlobalTempView(view)
        case (True, False):
            rows.createGlobalTempView(view)
        case (False, True):
            rows.createOrReplaceTempView(view)
        case _:
            rows.createTempView(view)
    return [(0,)]


def _read(spark: SparkSession, arguments: Arguments) -> DataFrame:
    """Return the rows of the query specified by the arguments."""
    times = {key: value for key, value in arguments.as_options(_TIMES).items() if value}
    query_options = {options.QUERY_TYPE.key: str(arguments.text("query_type")), **times}
    return load_table(spark, arguments.location(spark), query_options)


PROCEDURES: dict[str, Procedure] = {"copy_to_table": copy_to_table, "copy_to_temp_view": copy_to_temp_view}
