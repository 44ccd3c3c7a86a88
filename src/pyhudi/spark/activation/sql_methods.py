"""SQL and tables by name: methods of sessions, and those of DataFrames that take the name of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pyhudi.spark.activation.method_wrapping import MethodCall
from pyhudi.sql.sql_parser import has_sql_parser

_SELECT = "SELECT "
_SUBQUERY = re.compile(r"\b(from|table)\b", re.IGNORECASE)
"""Words before the name of a table in a subquery."""


def sql(call: MethodCall) -> Any:
    """``spark.sql``."""
    from pyhudi.spark.sql.command_execution import run_sql

    arguments = call.arguments("sqlQuery", "args")
    text = arguments.pop("sqlQuery", None)
    if not isinstance(text, str):
        return call.run()
    return run_sql(call.target, text, arguments.pop("args", None), arguments)


def with_hudi_tables(spark: Any, expression: str) -> str:
    """Return an expression of a DataFrame in which the Hudi tables of subqueries can be read."""
    if _SUBQUERY.search(expression) is None or not has_sql_parser():
        return expression
    from pyhudi.spark.sql.queries.query_rewriting import rewrite_query

    prepared = rewrite_query(spark, _SELECT + expression)
    return prepared.text.removeprefix(_SELECT) if prepared.reads_hudi_tables else expression


def table(call: MethodCall) -> Any:
    """``spark.table``."""
    return read_table(call.target, {}, call.run, *call.args, **call.kwargs)


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


def merge_into(call: MethodCall) -> Any:
    """``df.mergeInto``: pyhudi's writer for a Hudi table, otherwise Spark's."""
    from pyhudi.spark.sql.merge_into_writer import MergeIntoWriter
    from pyhudi.spark.sql.tables_by_name import table_of_name

    arguments = call.arguments("table", "condition")
    found = table_of_name(call.target.sparkSession, arguments["table"]) if len(arguments) == 2 else None
    if found is None:
        return call.run()
    return MergeIntoWriter.into(found, call.target, arguments["condition"])


def create_temp_view(call: MethodCall) -> Any:
    """``df.createOrReplaceTempView`` and the like: the view may take the place of one of a query."""
    from pyhudi.spark.read.load_table import load_request
    from pyhudi.spark.sql.queries.view_registry import forget_view, global_name, remember_load
    from pyhudi.spark.sql.tables_by_name import parse_name

    made = call.run()
    name = parse_name(call.first("name"))
    if name is not None:
        spark, request = call.target.sparkSession, load_request(call.target)
        name = global_name(spark, name[-1]) if "Global" in call.original.__name__ else name
        if request is None:
            forget_view(spark, name)
        else:
            remember_load(spark, name, request)
    return made
