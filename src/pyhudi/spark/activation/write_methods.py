"""Methods of ``df.write`` and ``df.writeTo``."""

from __future__ import annotations

from typing import Any

from pyhudi.config.case_insensitive_options import with_options
from pyhudi.config.misspelled_options import refuse_dynamic_overwrite
from pyhudi.errors import QueryError
from pyhudi.spark.activation import sql_methods
from pyhudi.spark.activation.call_state import (
    FORMATS,
    PARTITIONPATH_FIELD,
    CallState,
    call_state,
    keep_options,
    refuse_layout,
)
from pyhudi.spark.activation.method_wrapping import Method


def set_mode(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call_state(target).mode = args[0] if args else kwargs.get("saveMode")
    return original(target, *args, **kwargs)


def partition_by(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    columns = list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args)
    call_state(target).partition_by = columns
    return original(target, *args, **kwargs)


def save(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    path, source, mode, partition_by, options = _save_arguments(*args, **kwargs)
    state = call_state(target)
    name = source if source is not None else state.format
    if name is None or name.lower() not in FORMATS:
        return original(target, *args, **kwargs)
    refuse_layout(target)
    keep_options(target, options)
    if partition_by is not None:
        state.partition_by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    where = path if path is not None else state.options.get("path")
    if not isinstance(where, str):
        raise QueryError(f"save() requires the path of the table, got {where!r}")
    return _write(where, state, mode or state.mode or "errorifexists")


def save_as_named_table(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from pyhudi.spark.sql.tables_by_name import TableSpec, save_as_table

    name, source, mode, partition_by, options = _save_arguments(*args, **_save_arguments_of_table(kwargs))
    state = call_state(target)
    chosen = source if source is not None else state.format
    is_hudi = None if chosen is None else chosen.lower() in FORMATS
    if is_hudi or (is_hudi is None and state.layout and _is_hudi_table(state, name)):
        refuse_layout(target)
    if partition_by is None:
        partition_by = state.partition_by
    columns = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    spec = TableSpec(columns, with_options(state.options, options))
    saved = state.maker is not None and save_as_table(
        state.maker, name, spec, is_hudi=is_hudi, mode=mode or state.mode or "errorifexists"
    )
    return None if saved else original(target, *args, **kwargs)


def _is_hudi_table(state: CallState, name: str) -> bool:
    from pyhudi.spark.sql.tables_by_name import table_of_name

    return state.maker is not None and table_of_name(state.maker.sparkSession, name) is not None


def _save_arguments_of_table(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Rename the table name of ``saveAsTable`` to the path of ``save``."""
    return {"path" if key == "name" else key: value for key, value in kwargs.items()}


def write_to(original: Method, frame: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return sql_methods.write_to(original, frame, args, kwargs, call_state)


def using(original: Method, writer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if (args[0] if args else kwargs["provider"]).lower() in FORMATS:
        refuse_layout(writer)
    return sql_methods.using(original, writer, args, kwargs, call_state)


def set_table_property(original: Method, writer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    key, value = (*args, *(kwargs[name] for name in ("property", "value")[len(args) :]))
    keep_options(writer, {key: value})
    return original(writer, *args, **kwargs)


def set_partitioned_by(original: Method, writer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call_state(writer).partitioned_by = (*args, *kwargs.values())
    return original(writer, *args, **kwargs)


def insert_into_table(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from pyhudi.spark.sql.tables_by_name import insert_into

    arguments = dict(zip(("tableName", "overwrite"), args, strict=False)) | kwargs
    state, overwrite = call_state(target), arguments.get("overwrite")
    if overwrite is None:
        overwrite = (state.mode or "").lower() == "overwrite"
    if state.layout and _is_hudi_table(state, arguments["tableName"]):
        refuse_layout(target)
    if state.maker is not None and insert_into(
        state.maker,
        arguments["tableName"],
        overwrite=overwrite,
        writer_options=state.options,
        partition_by=tuple(state.partition_by),
    ):
        return None
    return original(target, *args, **kwargs)


def _save_arguments(
    path: Any = None,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: Any = None,  # noqa: N803
    **options: Any,
) -> tuple[Any, str | None, str | None, Any, dict[str, Any]]:
    return path, format, mode, partitionBy, options


def _write(path: str, state: CallState, mode: str) -> None:
    from pyhudi.spark.write.dataframe_writer import write

    options = {k: v for k, v in state.options.items() if k != "path"}
    if state.partition_by:
        options.setdefault(PARTITIONPATH_FIELD, ",".join(state.partition_by))
    frame = state.maker
    if frame is None:
        raise QueryError("this writer was created before pyhudi was activated; create a new one with df.write")
    if mode.lower() == "overwrite":
        refuse_dynamic_overwrite(options)
    write(frame, path, options, mode)
