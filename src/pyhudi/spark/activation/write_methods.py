"""Methods of ``df.write`` and ``df.writeTo``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    partition_columns,
    refuse_layout,
)
from pyhudi.spark.activation.method_wrapping import Method


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


def set_mode(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call_state(target).mode = args[0] if args else kwargs.get("saveMode")
    return original(target, *args, **kwargs)


def partition_by(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    columns = list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args)
    call_state(target).partition_by = columns
    return original(target, *args, **kwargs)


def save(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    arguments = _SaveArguments.from_save(*args, **kwargs)
    state = call_state(target)
    if not state.is_hudi(arguments.format):
        return original(target, *args, **kwargs)
    refuse_layout(target)
    keep_options(target, arguments.options)
    if arguments.partition_by is not None:
        state.partition_by = list(arguments.partition_by)
    path = arguments.target if arguments.target is not None else state.options.get("path")
    if not isinstance(path, str):
        raise QueryError(f"save() requires the path of the table, got {path!r}")
    return _write(path, state, arguments.mode or state.mode or "errorifexists")


def save_as_named_table(original: Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from pyhudi.spark.sql.writes_by_name import TableSpec, save_as_table

    arguments = _SaveArguments.from_save_as_table(*args, **kwargs)
    state = call_state(target)
    is_hudi = state.is_hudi(arguments.format)
    if is_hudi or (is_hudi is None and state.layout and _is_hudi_table(state, arguments.target)):
        refuse_layout(target)
    columns = tuple(state.partition_by) if arguments.partition_by is None else arguments.partition_by
    spec = TableSpec(columns, with_options(state.options, arguments.options))
    mode = arguments.mode or state.mode or "errorifexists"
    saved = state.creator is not None and save_as_table(
        state.creator, arguments.target, spec, is_hudi=is_hudi, mode=mode
    )
    return None if saved else original(target, *args, **kwargs)


def _is_hudi_table(state: CallState, name: str) -> bool:
    from pyhudi.spark.sql.tables_by_name import table_of_name

    return state.creator is not None and table_of_name(state.creator.sparkSession, name) is not None


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
    from pyhudi.spark.sql.writes_by_name import insert_into

    arguments = dict(zip(("tableName", "overwrite"), args, strict=False)) | kwargs
    state, overwrite = call_state(target), arguments.get("overwrite")
    if overwrite is None:
        overwrite = (state.mode or "").lower() == "overwrite"
    if state.layout and _is_hudi_table(state, arguments["tableName"]):
        refuse_layout(target)
    if state.creator is not None and insert_into(
        state.creator,
        arguments["tableName"],
        overwrite=overwrite,
        writer_options=state.options,
        partition_by=tuple(state.partition_by),
    ):
        return None
    return original(target, *args, **kwargs)


def _write(path: str, state: CallState, mode: str) -> None:
    from pyhudi.spark.write.dataframe_writer import write

    options = {k: v for k, v in state.options.items() if k != "path"}
    if state.partition_by:
        options.setdefault(PARTITIONPATH_FIELD, ",".join(state.partition_by))
    frame = state.creator
    if frame is None:
        raise QueryError("this writer was created before pyhudi was activated; create a new one with df.write")
    if mode.lower() == "overwrite":
        refuse_dynamic_overwrite(options)
    write(frame, path, options, mode)
