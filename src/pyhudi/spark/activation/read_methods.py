"""Methods of ``spark.read``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.config.misspelled_options import refuse_misspelled_query
from pyhudi.errors import QueryError
from pyhudi.spark.activation import sql_methods
from pyhudi.spark.activation.call_state import call_state, keep_options
from pyhudi.spark.activation.method_wrapping import ORIGINALS, Method
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


def set_schema(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call_state(target).has_schema = True
    return original(target, *args, **kwargs)


def load(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    request = requested_table(target, args, kwargs)
    if request is None:
        return original(target, *args, **kwargs)
    spark, (path, options) = session_of(target), request
    session = session_options(spark)
    refuse_misspelled_query(options, session)
    return LoadRequest(path, session | options).load(spark)


def requested_table(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, str]] | None:
    """Return the path and the options of the table to read; None if the reader has another format."""
    arguments = _LoadArguments.from_load(*args, **kwargs)
    state = call_state(target)
    if not state.is_hudi(arguments.format):
        return None
    if arguments.has_schema or state.has_schema:
        raise QueryError(
            "the columns of a Hudi table cannot be set by schema(…); leave it out, and select or cast the columns of "
            "the result"
        )
    keep_options(target, arguments.options)
    path = arguments.path if arguments.path is not None else state.options.get("path")
    if path is None:
        raise QueryError("load() requires the path of the table")
    if not isinstance(path, str):
        raise QueryError(
            f"load() takes exactly one path, the base path of the table; got {path!r}. Choose partitions by where(), "
            "and combine tables by unionByName()"
        )
    return path, {k: v for k, v in state.options.items() if k != "path"}


def filter_rows(_: Method, frame: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``filter`` and ``where``. Both call Spark's own ``filter``, because ``where`` may call ``filter``, which is
    wrapped as well."""
    condition = args[0] if args else kwargs["condition"]
    if isinstance(condition, str):
        condition = sql_methods.with_hudi_tables(frame.sparkSession, condition)
    cls = next(c for c in type(frame).__mro__ if (c, "filter") in ORIGINALS)
    return filter_pruned(ORIGINALS[(cls, "filter")], frame, condition)


def keep_columns(original: Method, frame: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``select`` and ``drop`` with column names."""
    return same_rows(frame, original(frame, *args, **kwargs), args)


def select_expressions(original: Method, frame: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``selectExpr``."""
    expressions = args[0] if len(args) == 1 and isinstance(args[0], list) else args
    texts = (
        sql_methods.with_hudi_tables(frame.sparkSession, text) if isinstance(text, str) else text
        for text in expressions
    )
    return original(frame, *texts, **kwargs)


def table(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    state = call_state(target)
    if state.has_schema:
        return original(target, *args, **kwargs)  # which refuses it
    return sql_methods.read_table(
        session_of(target), state.options, lambda: original(target, *args, **kwargs), *args, **kwargs
    )


def session_of(target: Any) -> SparkSession:
    creator = call_state(target).creator
    return creator if creator is not None else SparkSession.active()
