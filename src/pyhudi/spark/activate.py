"""The drop-in: ``spark.read.format("hudi")`` and ``df.write.format("hudi")`` go to pyhudi.

The public reader and writer classes of PySpark, classic and Connect, get wrappers around the methods that name a
format, collect options, load and save. Other formats pass through untouched. Options are kept beside Spark's own,
because Spark offers no way to read them back.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.errors import QueryError
from pyhudi.spark.load import load_table

PARTITIONPATH_FIELD = "hoodie.datasource.write.partitionpath.field"
FORMATS = frozenset({"hudi", "org.apache.hudi", "pyhudi"})
_READERS = (("pyspark.sql.readwriter", "DataFrameReader"), ("pyspark.sql.connect.readwriter", "DataFrameReader"))
_WRITERS = (("pyspark.sql.readwriter", "DataFrameWriter"), ("pyspark.sql.connect.readwriter", "DataFrameWriter"))
_MAKERS = (
    ("pyspark.sql.session", "SparkSession", "read"),
    ("pyspark.sql.connect.session", "SparkSession", "read"),
    ("pyspark.sql.dataframe", "DataFrame", "write"),
    ("pyspark.sql.classic.dataframe", "DataFrame", "write"),
    ("pyspark.sql.connect.dataframe", "DataFrame", "write"),
)
_STATE = "_pyhudi_state"
_Method = Callable[..., Any]
_originals: dict[tuple[type, str], Any] = {}


class _State:
    """What was said to one reader or writer so far."""

    def __init__(self, maker: Any = None) -> None:
        self.maker = maker
        """The session of a reader, the DataFrame of a writer."""
        self.format: str | None = None
        self.options: dict[str, str] = {}
        self.mode: str | None = None
        self.partition_by: list[str] = []
        self.has_schema = False


def activate(spark: SparkSession | None = None) -> SparkSession | None:
    """Send ``format("hudi")`` (also ``org.apache.hudi``) of all sessions of this process to pyhudi; return ``spark``.

    Does nothing when active already; :func:`deactivate` undoes it.
    """
    for module, name, attribute in _MAKERS:
        for cls in _classes(((module, name),)):
            _wrap_maker(cls, attribute)
    for cls in _classes(_READERS):
        _wrap(cls, "format", _format)
        _wrap(cls, "schema", _schema)
        _wrap(cls, "option", _option)
        _wrap(cls, "options", _options)
        _wrap(cls, "load", _load)
    for cls in _classes(_WRITERS):
        _wrap(cls, "format", _format)
        _wrap(cls, "option", _option)
        _wrap(cls, "options", _options)
        _wrap(cls, "mode", _mode)
        _wrap(cls, "partitionBy", _partition_by)
        _wrap(cls, "save", _save)
    return spark


def deactivate() -> None:
    """Undo :func:`activate`."""
    for (cls, name), original in _originals.items():
        setattr(cls, name, original)
    _originals.clear()


def is_active() -> bool:
    """Whether ``format("hudi")`` goes to pyhudi."""
    return bool(_originals)


def _classes(names: tuple[tuple[str, str], ...]) -> list[type]:
    found = []
    for module, name in names:
        try:
            found.append(getattr(importlib.import_module(module), name))
        except ImportError:  # Connect needs packages that classic Spark does not
            continue
    return found


def _wrap(cls: type, name: str, wrapper: Callable[[_Method, Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    if (cls, name) in _originals:
        return
    original = cls.__dict__.get(name) or getattr(cls, name)

    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapper(original, self, args, kwargs)

    _originals[(cls, name)] = original
    setattr(cls, name, method)


def _wrap_maker(cls: type, name: str) -> None:
    """``spark.read`` and ``df.write``: what they return remembers where it came from."""
    original = cls.__dict__.get(name)
    if not isinstance(original, property) or (cls, name) in _originals:
        return
    getter = original.fget
    assert getter is not None

    def make(self: Any) -> Any:
        made = getter(self)
        made.__dict__[_STATE] = _State(self)
        return made

    _originals[(cls, name)] = original
    setattr(cls, name, property(make, doc=original.__doc__))


def _state(target: Any) -> _State:
    state = target.__dict__.get(_STATE)
    if state is None:
        state = _State()
        target.__dict__[_STATE] = state
    return state  # type: ignore[no-any-return]


# --- what both have --------------------------------------------------------------------------------------------------


def _format(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _state(target).format = args[0] if args else kwargs["source"]
    return original(target, *args, **kwargs)


def _option(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    key, value = (*args, *(kwargs[n] for n in ("key", "value")[len(args) :]))
    _keep(target, {key: value})
    return original(target, *args, **kwargs)


def _options(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _keep(target, kwargs)
    return original(target, *args, **kwargs)


def _keep(target: Any, options: Mapping[str, Any]) -> None:
    given = {key: _text(value) for key, value in options.items() if value is not None}
    _state(target).options.update(given)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- reading ---------------------------------------------------------------------------------------------------------


def _schema(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _state(target).has_schema = True
    return original(target, *args, **kwargs)


def _load(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    path, source, schema, options = _load_arguments(*args, **kwargs)
    state = _state(target)
    name = source if source is not None else state.format
    if name is None or name.lower() not in FORMATS:
        return original(target, *args, **kwargs)
    if schema is not None or state.has_schema:
        raise QueryError("a Hudi table has its own columns: leave out schema(…), and select or cast what it returns")
    _keep(target, options)
    where = path if path is not None else state.options.get("path")
    if where is None:
        raise QueryError("load() needs the path of the table")
    if not isinstance(where, str):
        raise QueryError(f"load() takes one path, the table's; got {where!r}")
    return load_table(_session_of(target), where, {k: v for k, v in state.options.items() if k != "path"})


def _load_arguments(
    path: Any = None, format: str | None = None, schema: Any = None, **options: Any
) -> tuple[Any, str | None, Any, dict[str, Any]]:
    return path, format, schema, options


def _session_of(target: Any) -> SparkSession:
    maker = _state(target).maker
    return maker if maker is not None else SparkSession.active()


# --- writing ---------------------------------------------------------------------------------------------------------


def _mode(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _state(target).mode = args[0] if args else kwargs.get("saveMode")
    return original(target, *args, **kwargs)


def _partition_by(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    columns = list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args)
    _state(target).partition_by = columns
    return original(target, *args, **kwargs)


def _save(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    path, source, mode, partition_by, options = _save_arguments(*args, **kwargs)
    state = _state(target)
    name = source if source is not None else state.format
    if name is None or name.lower() not in FORMATS:
        return original(target, *args, **kwargs)
    _keep(target, options)
    if partition_by is not None:
        state.partition_by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    where = path if path is not None else state.options.get("path")
    if not isinstance(where, str):
        raise QueryError(f"save() needs the path of the table, got {where!r}")
    return _write(where, state, mode or state.mode or "errorifexists")


def _save_arguments(
    path: Any = None,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: Any = None,  # noqa: N803
    **options: Any,
) -> tuple[Any, str | None, str | None, Any, dict[str, Any]]:
    return path, format, mode, partitionBy, options


def _write(path: str, state: _State, mode: str) -> None:
    from pyhudi.spark.writer import write

    options = {k: v for k, v in state.options.items() if k != "path"}
    if state.partition_by:
        options.setdefault(PARTITIONPATH_FIELD, ",".join(state.partition_by))
    frame = state.maker
    if frame is None:
        raise QueryError("this writer was made before pyhudi was activated; take a new one from df.write")
    write(frame, path, options, mode)
