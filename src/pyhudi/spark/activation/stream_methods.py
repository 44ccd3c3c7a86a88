"""Methods of ``spark.readStream`` and ``df.writeStream``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from pyhudi.config.sql_property_aliases import option_of_short_name
from pyhudi.errors import ConfigError, QueryError
from pyhudi.spark.activation.method_wrapping import Method, MethodCall, replaced_method
from pyhudi.spark.activation.read_methods import requested_table, session_of
from pyhudi.spark.activation.recorded_settings import (
    PARTITIONPATH_FIELD,
    RecordedSettings,
    partition_columns,
    recorded_settings,
)
from pyhudi.spark.activation.write_methods import record_partition_by
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.session_settings import is_connect
from pyhudi.spark.sql.session_config import session_options, stream_options
from pyhudi.sql.sql_parser import has_sql_parser
from pyhudi.streaming.source_log import CHECKPOINT_PROPERTY

if TYPE_CHECKING:
    from pyhudi.spark.sql.catalog import CatalogTable

_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


def load_stream_of_path(call: MethodCall) -> Any:
    request = requested_table(call.target, call.args, call.kwargs)
    return call.run() if request is None else _load_stream(call.target, request, {})


def load_stream_of_table(call: MethodCall) -> Any:
    """``spark.readStream.table``: the stream of the location of a Hudi table."""
    table = _table_of_name(session_of(call.target), call.first("tableName"))
    if table is None:
        return call.run()
    request = requested_table(call.target, (table.location, "hudi"), {})
    assert request is not None  # the format is Hudi's
    return _load_stream(call.target, request, table.options)


def _load_stream(target: Any, request: tuple[str, dict[str, str]], table_options: dict[str, str]) -> Any:
    """Return the stream of the table at a path with options, which override those of the session and of the table."""
    from pyhudi.spark.streaming.source import load_stream

    spark, (path, options) = session_of(target), request
    return load_stream(spark, path, table_options | stream_options(spark) | options)


def set_output_mode(call: MethodCall) -> Any:
    recorded_settings(call.target).output_mode = call.first("outputMode")
    return call.run()


def partition_stream(call: MethodCall) -> Any:
    record_partition_by(call)  # passed to Spark when the format is known
    return call.target


def start_stream(call: MethodCall) -> Any:
    arguments = _StreamArguments.from_start(*call.args, **call.kwargs)
    with _with_checkpoint_location(call.target, arguments.options):
        return _start_stream(call, arguments)


def _start_stream(call: MethodCall, arguments: _StreamArguments) -> Any:
    target = call.target
    settings = recorded_settings(target)
    if not settings.is_hudi(arguments.format):
        _apply_partition_by(target)
        return call.run()
    arguments.apply(target)
    path = arguments.target if arguments.target is not None else settings.options.get("path")
    if not isinstance(path, str):
        raise QueryError(f"start() requires the path of the table, got {path!r}")
    return start_sink(call.original, target, path)


@contextmanager
def _with_checkpoint_location(target: Any, options: Mapping[str, Any]) -> Iterator[None]:
    """Set the checkpoint location of a query that is started, of any format, for its tasks: streams of Hudi tables find
    there which commits they have read."""
    settings = recorded_settings(target)
    location = _checkpoint_location({**settings.options, **options})
    if settings.creator is None or is_connect(target) or location is None:
        yield
        return
    context = settings.creator.sparkSession.sparkContext  # the thread of the query inherits the properties of this one
    before = context.getLocalProperty(CHECKPOINT_PROPERTY)
    context.setLocalProperty(CHECKPOINT_PROPERTY, location)
    try:
        yield
    finally:
        context.setLocalProperty(CHECKPOINT_PROPERTY, before)


@dataclass(frozen=True, slots=True)
class _StreamArguments:
    """Arguments of ``start`` and ``toTable``; ``target`` is the path or the name of the table."""

    target: Any
    format: str | None
    mode: str | None
    partition_by: tuple[str, ...] | None
    query: str | None
    options: Mapping[str, Any]

    @classmethod
    def from_start(cls, path: Any = None, *args: Any, **kwargs: Any) -> _StreamArguments:
        """Name the arguments of ``start``."""
        return cls._from_arguments(path, *args, **kwargs)

    @classmethod
    def from_to_table(cls, tableName: str, *args: Any, **kwargs: Any) -> _StreamArguments:  # noqa: N803
        """Name the arguments of ``toTable``, where ``path`` is an option."""
        return cls._from_arguments(tableName, *args, **kwargs)

    @classmethod
    def _from_arguments(
        cls,
        target: Any,
        /,  # an option may be called so, too
        format: str | None = None,
        outputMode: str | None = None,  # noqa: N803
        partitionBy: Any = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> _StreamArguments:
        return cls(target, format, outputMode, partition_columns(partitionBy), queryName, options)

    def apply(self, target: Any) -> None:
        """Give the arguments to the writer."""
        recorded_settings(target).refuse_layout()
        target.options(**self.options)
        if self.mode is not None:
            target.outputMode(self.mode)
        if self.query is not None:
            target.queryName(self.query)
        if self.partition_by is not None:
            recorded_settings(target).partition_by = list(self.partition_by)


def start_sink(original: Method, target: Any, path: str, properties: Mapping[str, str] | None = None) -> Any:
    """Start a stream that writes to a Hudi table.

    Args:
        original: Spark's method that the call replaces.
        target: The writer of the stream.
        path: Path of the table.
        properties: Properties of the table in the catalog; None: it is written by path.
    """
    from pyhudi.spark.streaming.sink import StreamingSink, start

    settings = recorded_settings(target)
    spark = _session_of_writer(settings)
    _check_checkpoints(spark, settings)
    options = _sink_options(settings)
    if properties is not None:
        options = {**properties, **session_options(spark), **_without_short_names(options)}
    if settings.partition_by:
        options.setdefault(PARTITIONPATH_FIELD, ",".join(settings.partition_by))
    options = {**session_settings(spark, path), **options}
    sink = StreamingSink(path, options, _checkpoint_location(settings.options) if is_connect(target) else None)
    return start(target, sink, settings.output_mode, type(target).foreachBatch, original)


def _check_checkpoints(spark: SparkSession, settings: RecordedSettings) -> None:
    if _checkpoint_location(settings.options) is not None:
        return
    if is_connect(spark):
        raise ConfigError(
            "a stream into a Hudi table requires the option 'checkpointLocation': Spark Connect does not expose "
            "the query of a micro-batch, so its id is read from there"
        )
    if not spark.conf.get(_CHECKPOINTS, None):
        raise ConfigError(
            "a stream into a Hudi table requires the option 'checkpointLocation' (or the session setting "
            f"{_CHECKPOINTS}); without it, a restart would process all input again"
        )


def _checkpoint_location(writer_options: Mapping[str, Any]) -> str | None:
    """Return the option with the checkpoint location of a query, the last one if it is given in several spellings."""
    named = {key.lower(): value for key, value in writer_options.items()}
    location = named.get("checkpointlocation")
    return location if isinstance(location, str) else None


def _sink_options(settings: RecordedSettings) -> dict[str, str]:
    return {k: v for k, v in settings.options.items() if k.lower() not in ("path", "checkpointlocation")}


def _without_short_names(writer_options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without the properties of a table by name, which the table has when it is created."""
    return {key: value for key, value in writer_options.items() if option_of_short_name(key) is None}


def _session_of_writer(settings: RecordedSettings) -> SparkSession:
    if settings.creator is None:
        raise QueryError("this writer was created before pyhudi was activated; create a new one with df.writeStream")
    session: SparkSession = settings.creator.sparkSession
    return session


def to_table(call: MethodCall) -> Any:
    """``toTable``: the stream is written to the location of a Hudi table, which is created if it does not exist."""
    arguments = _StreamArguments.from_to_table(*call.args, **call.kwargs)
    with _with_checkpoint_location(call.target, arguments.options):
        return _to_table(call, arguments)


def _to_table(call: MethodCall, arguments: _StreamArguments) -> Any:
    target = call.target
    settings = recorded_settings(target)
    table = None
    if (
        settings.is_hudi(arguments.format) is not False
        and has_sql_parser()
        and (settings.creator is not None or settings.is_hudi(arguments.format))
    ):
        table = _stream_target(target, arguments)
    if table is None:
        _apply_partition_by(target)
        return call.run()
    return start_sink(replaced_method(target, "start"), target, table.location, table.options)


def _stream_target(target: Any, arguments: _StreamArguments) -> CatalogTable | None:
    from pyhudi.spark.sql.tables_by_name import table_of_name
    from pyhudi.spark.sql.writes_by_name import TableSpec, create_for_stream
    from pyhudi.spark.streaming.sink import check_output_mode, check_sink_options

    settings = recorded_settings(target)
    spark = _session_of_writer(settings)
    table = table_of_name(spark, arguments.target)
    if table is None and not settings.is_hudi(arguments.format):
        return None
    arguments.apply(target)
    _check_checkpoints(spark, settings)
    check_output_mode(settings.output_mode)
    # before a table is created
    check_sink_options(session_options(spark) | _without_short_names(_sink_options(settings)))
    if table is not None:
        return table
    path = {"path": settings.options["path"]} if "path" in settings.options else {}
    spec = TableSpec(tuple(settings.partition_by), {**_sink_options(settings), **path})
    return create_for_stream(settings.creator, arguments.target, spec)


def _table_of_name(spark: SparkSession, name: str) -> CatalogTable | None:
    if not has_sql_parser():
        return None
    from pyhudi.spark.sql.tables_by_name import table_of_name

    return table_of_name(spark, name)


def _apply_partition_by(target: Any) -> None:
    columns = recorded_settings(target).partition_by
    if columns:
        replaced_method(target, "partitionBy")(target, *columns)
