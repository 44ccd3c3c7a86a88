"""Methods of ``df.write`` and ``df.writeTo``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyhudi.config.case_insensitive_options import with_options
from pyhudi.config.misspelled_options import SESSION_OVERWRITE_MODE, refuse_dynamic_overwrite
from pyhudi.errors import QueryError
from pyhudi.spark.activation.method_wrapping import MethodCall
from pyhudi.spark.activation.recorded_settings import (
    FORMATS,
    PARTITIONPATH_FIELD,
    RecordedSettings,
    partition_columns,
    recorded_settings,
)


@dataclass(frozen=True, slots=True)
class _SaveArguments:
    """Arguments of ``save`` and ``saveAsTable``; ``target`` is the path or the name of the table."""

    target: Any
    format: str | None
    mode: str | None
    partition_by: tuple[str, ...] | None
    options: Mapping[str, Any]

    @classmethod
    def from_save(cls, path: Any = None, *args: Any, **kwargs: Any) -> _SaveArguments:
        """Name the arguments of ``save``."""
        return cls._from_arguments(path, *args, **kwargs)

    @classmethod
    def from_save_as_table(cls, name: Any = None, *args: Any, **kwargs: Any) -> _SaveArguments:
        """Name the arguments of ``saveAsTable``, where ``path`` is an option."""
        return cls._from_arguments(name, *args, **kwargs)

    @classmethod
    def _from_arguments(
        cls,
        target: Any,
        /,  # an option may be called so, too
        format: str | None = None,
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803
        **options: Any,
    ) -> _SaveArguments:
        return cls(target, format, mode, partition_columns(partitionBy), options)


def set_mode(call: MethodCall) -> Any:
    recorded_settings(call.target).mode = call.args[0] if call.args else call.kwargs.get("saveMode")
    return call.run()


def partition_by(call: MethodCall) -> Any:
    record_partition_by(call)
    return call.run()


def record_partition_by(call: MethodCall) -> None:
    """Record the columns of ``partitionBy``."""
    args = call.args
    columns = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    recorded_settings(call.target).partition_by = list(columns)


def save(call: MethodCall) -> Any:
    arguments = _SaveArguments.from_save(*call.args, **call.kwargs)
    settings = recorded_settings(call.target)
    if not settings.is_hudi(arguments.format):
        return call.run()
    settings.refuse_layout()
    settings.add_options(arguments.options)
    if arguments.partition_by is not None:
        settings.partition_by = list(arguments.partition_by)
    path = arguments.target if arguments.target is not None else settings.options.get("path")
    if not isinstance(path, str):
        raise QueryError(f"save() requires the path of the table, got {path!r}")
    return _write(path, settings, arguments.mode or settings.mode or "errorifexists")


def save_as_named_table(call: MethodCall) -> Any:
    from pyhudi.spark.sql.writes_by_name import TableSpec, save_as_table

    arguments = _SaveArguments.from_save_as_table(*call.args, **call.kwargs)
    settings = recorded_settings(call.target)
    is_hudi = settings.is_hudi(arguments.format)
    if is_hudi or (is_hudi is None and settings.layout and _is_hudi_table(settings, arguments.target)):
        settings.refuse_layout()
    columns = tuple(settings.partition_by) if arguments.partition_by is None else arguments.partition_by
    spec = TableSpec(columns, with_options(settings.options, arguments.options))
    mode = arguments.mode or settings.mode or "errorifexists"
    saved = settings.creator is not None and save_as_table(
        settings.creator, arguments.target, spec, is_hudi=is_hudi, mode=mode
    )
    return None if saved else call.run()


def _is_hudi_table(settings: RecordedSettings, name: str) -> bool:
    from pyhudi.spark.sql.tables_by_name import table_of_name

    return settings.creator is not None and table_of_name(settings.creator.sparkSession, name) is not None


def write_to(call: MethodCall) -> Any:
    """``df.writeTo``: pyhudi's writer for a Hudi table, otherwise Spark's, which ``using("hudi")`` replaces by
    pyhudi's."""
    from pyhudi.spark.sql.dataframe_writer_v2 import TableWriter
    from pyhudi.spark.sql.tables_by_name import table_of_name

    frame, name = call.target, call.first("table")
    if table_of_name(frame.sparkSession, name) is not None:
        return TableWriter(frame, name)
    made = call.run()
    settings = recorded_settings(made)
    settings.creator, settings.table = frame, name
    return made


def using(call: MethodCall) -> Any:
    """``df.writeTo(name).using(provider)``."""
    from pyhudi.spark.sql.dataframe_writer_v2 import TableWriter
    from pyhudi.sql.parsers.create_table_parser import PROVIDERS

    provider, settings = call.first("provider"), recorded_settings(call.target)
    if provider.lower() in FORMATS:
        settings.refuse_layout()
    if provider.upper() not in PROVIDERS or settings.table is None:
        return call.run()
    made = TableWriter(settings.creator, settings.table, dict(settings.options))
    return made.partitionedBy(*settings.partitioned_by) if settings.partitioned_by else made


def set_table_property(call: MethodCall) -> Any:
    key, value = (*call.args, *(call.kwargs[name] for name in ("property", "value")[len(call.args) :]))
    recorded_settings(call.target).add_options({key: value})
    return call.run()


def set_partitioned_by(call: MethodCall) -> Any:
    recorded_settings(call.target).partitioned_by = (*call.args, *call.kwargs.values())
    return call.run()


def insert_into_table(call: MethodCall) -> Any:
    from pyhudi.spark.sql.writes_by_name import insert_into

    arguments = call.arguments("tableName", "overwrite")
    settings, overwrite = recorded_settings(call.target), arguments.get("overwrite")
    if overwrite is None:
        overwrite = (settings.mode or "").lower() == "overwrite"
    if settings.layout and _is_hudi_table(settings, arguments["tableName"]):
        settings.refuse_layout()
    if settings.creator is not None and insert_into(
        settings.creator,
        arguments["tableName"],
        overwrite=overwrite,
        writer_options=settings.options,
        partition_by=tuple(settings.partition_by),
    ):
        return None
    return call.run()


def _write(path: str, settings: RecordedSettings, mode: str) -> None:
    from pyhudi.spark.write.dataframe_writer import write

    options = {k: v for k, v in settings.options.items() if k != "path"}
    if settings.partition_by:
        options.setdefault(PARTITIONPATH_FIELD, ",".join(settings.partition_by))
    frame = settings.creator
    if frame is None:
        raise QueryError("this writer was created before pyhudi was activated; create a new one with df.write")
    if mode.lower() == "overwrite":
        refuse_dynamic_overwrite(options, str(frame.sparkSession.conf.get(SESSION_OVERWRITE_MODE, "static")))
    write(frame, path, options, mode)
