"""Methods of ``spark.read``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.config.misspelled_options import refuse_misspelled_query
from pyhudi.errors import QueryError
from pyhudi.spark.activation import sql_methods
from pyhudi.spark.activation.method_wrapping import MethodCall, replaced_method
from pyhudi.spark.activation.recorded_settings import recorded_settings
from pyhudi.spark.read.load_table import LoadRequest
from pyhudi.spark.read.pruning.dataframe_pruning import filter_pruned, same_rows
from pyhudi.spark.sql.session_config import session_options


@dataclass(frozen=True, slots=True)
class _LoadArguments:
    path: Any
    format: str | None
    has_schema: bool
    options: Mapping[str, Any]

    @classmethod
    def from_load(
        cls, path: Any = None, format: str | None = None, schema: Any = None, **options: Any
    ) -> _LoadArguments:
        return cls(path, format, schema is not None, options)


def set_schema(call: MethodCall) -> Any:
    recorded_settings(call.target).has_schema = True
    return call.run()


def load(call: MethodCall) -> Any:
    request = requested_table(call.target, call.args, call.kwargs)
    if request is None:
        return call.run()
    spark, (path, options) = session_of(call.target), request
    session = session_options(spark)
    refuse_misspelled_query(options, session)
    return LoadRequest(path, session | options).load(spark)


def requested_table(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, str]] | None:
    """Return the path and the options of the table to read; None if the reader has another format."""
    arguments = _LoadArguments.from_load(*args, **kwargs)
    settings = recorded_settings(target)
    if not settings.is_hudi(arguments.format):
        return None
    if arguments.has_schema or settings.has_schema:
        raise QueryError(
            "the columns of a Hudi table cannot be set by schema(…); leave it out, and select or cast the columns of "
            "the result"
        )
    settings.add_options(arguments.options)
    path = arguments.path if arguments.path is not None else settings.options.get("path")
    if path is None:
        raise QueryError("load() requires the path of the table")
    if not isinstance(path, str):
        raise QueryError(
            f"load() takes exactly one path, the base path of the table; got {path!r}. Choose partitions by where(), "
            "and combine tables by unionByName()"
        )
    return path, {k: v for k, v in settings.options.items() if k != "path"}


def filter_rows(call: MethodCall) -> Any:
    """``filter`` and ``where``. Both call Spark's own ``filter``, because ``where`` may call ``filter``, which is
    wrapped as well."""
    frame, condition = call.target, call.first("condition")
    if isinstance(condition, str):
        condition = sql_methods.with_hudi_tables(frame.sparkSession, condition)
    return filter_pruned(replaced_method(frame, "filter"), frame, condition)


def keep_columns(call: MethodCall) -> Any:
    """``select`` and ``drop`` with column names."""
    return same_rows(call.target, call.run(), call.args)


def select_expressions(call: MethodCall) -> Any:
    """``selectExpr``."""
    expressions = call.args[0] if len(call.args) == 1 and isinstance(call.args[0], list) else call.args
    texts = (
        sql_methods.with_hudi_tables(call.target.sparkSession, text) if isinstance(text, str) else text
        for text in expressions
    )
    return call.original(call.target, *texts, **call.kwargs)


def table(call: MethodCall) -> Any:
    settings = recorded_settings(call.target)
    if settings.has_schema:
        return call.run()  # which refuses it
    return sql_methods.read_table(session_of(call.target), settings.options, call.run, *call.args, **call.kwargs)


def session_of(target: Any) -> SparkSession:
    creator = recorded_settings(target).creator
    return creator if creator is not None else SparkSession.active()
