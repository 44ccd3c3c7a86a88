"""Methods of ``spark.readStream`` and ``df.writeStream``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from pyhudi.errors import ConfigError, QueryError, SetupError
from pyhudi.spark.activate_sql import can_parse
from pyhudi.spark.activation.call_state import FORMATS, PARTITIONPATH_FIELD, CallState, call_state, refuse_layout
from pyhudi.spark.activation.method_wrapping import ORIGINALS, Method
from pyhudi.spark.activation.read_methods import requested_table, session_of
from pyhudi.spark.activation.write_methods import partition_by
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.session_settings import is_connect

if TYPE_CHECKING:
    from pyhudi.spark.sql.catalog import CatalogTable

_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


def load_stream_of(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    request = requested_table(target, args, kwargs)
    if request is None:
        return original(target, *args, **kwargs)
    _refuse_connect(target)
    from pyhudi.spark.streaming.source import load_stream

    return load_stream(session_of(target), *request)


def stream_table(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``spark.readStream.table``: the stream of the location of a Hudi table."""
    table = _table_of_name(session_of(target), args, kwargs)
    if table is None:
        return original(target, *args, **kwargs)
    _refuse_connect(target)
    request = requested_table(target, (table.location, "hudi"), {})
    assert request is not None  # the format is Hudi's
    from pyhudi.spark.streaming.source import load_stream

    path, options = request
    return load_stream(session_of(target), path, table.options | options)


def set_output_mode(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call_state(target).output_mode = args[0] if args else kwargs["outputMode"]
    return original(target, *args, **kwargs)


def partition_stream(_: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    partition_by(lambda *_: None, target, args, kwargs)  # passed to Spark when the format is known
    return target


def start_stream(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    path, source, mode, partition_by, name, options = _start_arguments(*args, **kwargs)
    state = call_state(target)
    given = source if source is not None else state.format
    if given is None or given.lower() not in FORMATS:
        _tell_partitions(target)
        return original(target, *args, **kwargs)
    _refuse_connect(target)
    refuse_layout(target)
    target.options(**options)
    if mode is not None:
        target.outputMode(mode)
    if name is not None:
        target.queryName(name)
    if partition_by is not None:
        state.partition_by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    where = path if path is not None else state.options.get("path")
    if not isinstance(where, str):
        raise QueryError(f"start() requires the path of the table, got {where!r}")
    return _start_sink(original, target, where)


def _start_arguments(
    path: Any = None,
    format: str | None = None,
    outputMode: str | None = None,  # noqa: N803
    partitionBy: Any = None,  # noqa: N803
    queryName: str | None = None,  # noqa: N803
    **options: Any,
) -> tuple[Any, str | None, str | None, Any, str | None, dict[str, Any]]:
    return path, format, outputMode, partitionBy, queryName, options


def _start_sink(original: Method, target: Any, path: str) -> Any:
    from pyhudi.spark.streaming.sink import start

    state = call_state(target)
    spark = _session_of_writer(state)
    kept = any(key.lower() == "checkpointlocation" for key in state.options)
    if not kept and not spark.conf.get(_CHECKPOINTS, None):
        raise ConfigError(
            "a stream into a Hudi table requires the option 'checkpointLocation' (or the session setting "
            f"{_CHECKPOINTS}); without it, a restart would process all input again"
        )
    options = {k: v for k, v in state.options.items() if k.lower() not in ("path", "checkpointlocation")}
    if state.partition_by:
        options.setdefault(PARTITIONPATH_FIELD, ",".join(state.partition_by))
    options = {**session_settings(spark, path), **options}
    return start(target, path, options, state.output_mode, type(target).foreachBatch, original)


def _session_of_writer(state: CallState) -> SparkSession:
    if state.maker is None:
        raise QueryError("this writer was created before pyhudi was activated; create a new one with df.writeStream")
    session: SparkSession = state.maker.sparkSession
    return session


def to_table(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = kwargs.get("format", args[1] if len(args) > 1 else None) or call_state(target).format
    state = call_state(target)
    of_hudi = name is not None and name.lower() in FORMATS
    if not of_hudi and state.maker is not None:
        of_hudi = _table_of_name(_session_of_writer(state), args, kwargs) is not None
    if of_hudi:
        raise QueryError(
            'a stream cannot be written to a Hudi table by name; use format("hudi").start(path) instead of '
            "toTable(name)"
        )
    _tell_partitions(target)
    return original(target, *args, **kwargs)


def _table_of_name(spark: SparkSession, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CatalogTable | None:
    if not can_parse():
        return None
    from pyhudi.spark.sql.table_writers import table_of_name

    return table_of_name(spark, args[0] if args else kwargs["tableName"])


def _tell_partitions(target: Any) -> None:
    columns = call_state(target).partition_by
    if columns:
        cls = next(c for c in type(target).__mro__ if (c, "partitionBy") in ORIGINALS)
        ORIGINALS[(cls, "partitionBy")](target, *columns)


def _refuse_connect(target: Any) -> None:
    if is_connect(target):
        raise SetupError(
            "streams from or to Hudi tables require a classic session: Spark Connect does not expose the query "
            "that a micro-batch belongs to. Batch reads and writes are supported, also inside your own "
            "foreachBatch function"
        )
