"""Drop-in for Spark: ``spark.read.format("hudi")`` and ``df.write.format("hudi")`` go to pyhudi.

The methods of PySpark's public reader and writer classes, classic and Connect, that name a format, collect options,
load and save are wrapped. Other formats pass through untouched. Options are kept beside Spark's own, because Spark
offers no way to read them back.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from pyspark.sql import SparkSession

from pyhudi.errors import ConfigError, QueryError, SetupError
from pyhudi.spark import activate_sql
from pyhudi.spark.read.load_table import load_table
from pyhudi.spark.session import check_workers

PARTITIONPATH_FIELD = "hoodie.datasource.write.partitionpath.field"
FORMATS = frozenset({"hudi", "org.apache.hudi", "pyhudi"})
_READERS = (("pyspark.sql.readwriter", "DataFrameReader"), ("pyspark.sql.connect.readwriter", "DataFrameReader"))
_WRITERS = (("pyspark.sql.readwriter", "DataFrameWriter"), ("pyspark.sql.connect.readwriter", "DataFrameWriter"))
_STREAM_READERS = (
    ("pyspark.sql.streaming.readwriter", "DataStreamReader"),
    ("pyspark.sql.connect.streaming.readwriter", "DataStreamReader"),
)
_STREAM_WRITERS = (
    ("pyspark.sql.streaming.readwriter", "DataStreamWriter"),
    ("pyspark.sql.connect.streaming.readwriter", "DataStreamWriter"),
)
_MAKERS = (
    ("pyspark.sql.session", "SparkSession", "readStream"),
    ("pyspark.sql.connect.session", "SparkSession", "readStream"),
    ("pyspark.sql.dataframe", "DataFrame", "writeStream"),
    ("pyspark.sql.classic.dataframe", "DataFrame", "writeStream"),
    ("pyspark.sql.connect.dataframe", "DataFrame", "writeStream"),
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
    """Settings given to one reader or writer so far."""

    def __init__(self, maker: Any = None) -> None:
        self.maker = maker
        """The session of a reader, the DataFrame of a writer."""
        self.format: str | None = None
        self.options: dict[str, str] = {}
        self.mode: str | None = None
        self.partition_by: list[str] = []
        self.has_schema = False
        self.table: str | None = None
        """The name that ``writeTo`` was given."""
        self.output_mode = "append"


def activate(spark: SparkSession | None = None) -> SparkSession | None:
    """Send ``format("hudi")`` (also ``org.apache.hudi``) of all sessions of this process to pyhudi.

    Where sqlglot is installed, SQL on Hudi tables and their names go there, too.

    Does nothing if active already. :func:`deactivate` reverts it.

    Args:
        spark: Session whose Python workers are checked; None to skip the check.

    Returns:
        ``spark``.

    Raises:
        SetupError: The workers of ``spark`` run a Python that cannot import pyhudi.
    """
    if spark is not None:
        check_workers(spark)
    for module, name, attribute in _MAKERS:
        for cls in _classes(((module, name),)):
            _wrap_maker(cls, attribute)
    for cls in _classes(_READERS):
        _wrap(cls, "format", _format)
        _wrap(cls, "schema", _schema)
        _wrap(cls, "option", _option)
        _wrap(cls, "options", _options)
        _wrap(cls, "load", _load)
    for cls in _classes(_STREAM_READERS):
        _wrap(cls, "format", _format)
        _wrap(cls, "schema", _schema)
        _wrap(cls, "option", _option)
        _wrap(cls, "options", _options)
        _wrap(cls, "load", _load_stream)
    for cls in _classes(_STREAM_WRITERS):
        _wrap(cls, "format", _format)
        _wrap(cls, "option", _option)
        _wrap(cls, "options", _options)
        _wrap(cls, "outputMode", _output_mode)
        _wrap(cls, "partitionBy", _partition_stream)
        _wrap(cls, "start", _start)
        _wrap(cls, "toTable", _to_table)
    for cls in _classes(_WRITERS):
        _wrap(cls, "format", _format)
        _wrap(cls, "option", _option)
        _wrap(cls, "options", _options)
        _wrap(cls, "mode", _mode)
        _wrap(cls, "partitionBy", _partition_by)
        _wrap(cls, "save", _save)
    if activate_sql.can_parse():
        _wrap_names()
    return spark


def _wrap_names() -> None:
    """Let everything that takes the name of a table, or SQL, know Hudi tables."""
    for cls in _classes(activate_sql.SESSIONS):
        _wrap(cls, "sql", activate_sql.sql)
        _wrap(cls, "table", activate_sql.table)
    for cls in _classes(_READERS):
        _wrap(cls, "table", _table)
    for cls in _classes(_WRITERS):
        _wrap(cls, "saveAsTable", _save_as_table)
        _wrap(cls, "insertInto", _insert_into)
    for cls in _classes(activate_sql.FRAMES):
        _wrap(cls, "writeTo", _write_to)
    for cls in _classes(activate_sql.WRITERS_V2):
        _wrap(cls, "using", _using)
        _wrap(cls, "option", _option)
        _wrap(cls, "options", _options)


def deactivate() -> None:
    """Revert :func:`activate`."""
    for (cls, name), original in _originals.items():
        setattr(cls, name, original)
    _originals.clear()


def is_active() -> bool:
    """Return True if ``format("hudi")`` goes to pyhudi."""
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
    asked = _load_from(target, args, kwargs)
    return original(target, *args, **kwargs) if asked is None else load_table(_session_of(target), *asked)


def _load_stream(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    asked = _load_from(target, args, kwargs)
    if asked is None:
        return original(target, *args, **kwargs)
    _refuse_connect(target)
    from pyhudi.spark.streaming.source import load_stream

    return load_stream(_session_of(target), *asked)


def _load_from(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, dict[str, str]] | None:
    """Path and options of a table to read; None: the reader is of another format."""
    path, source, schema, options = _load_arguments(*args, **kwargs)
    state = _state(target)
    name = source if source is not None else state.format
    if name is None or name.lower() not in FORMATS:
        return None
    if schema is not None or state.has_schema:
        raise QueryError("a Hudi table has its own columns: leave out schema(…), and select or cast what it returns")
    _keep(target, options)
    where = path if path is not None else state.options.get("path")
    if where is None:
        raise QueryError("load() needs the path of the table")
    if not isinstance(where, str):
        raise QueryError(f"load() takes one path, the table's; got {where!r}")
    return where, {k: v for k, v in state.options.items() if k != "path"}


def _table(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = _state(target).options
    return activate_sql.read_table(
        _session_of(target), given, lambda: original(target, *args, **kwargs), *args, **kwargs
    )


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


def _save_as_table(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from pyhudi.spark.sql.writers import save_as_table

    name, source, mode, partition_by, options = _save_arguments(*args, **_places(kwargs))
    state = _state(target)
    chosen = source if source is not None else state.format
    if partition_by is None:
        partition_by = state.partition_by
    saved = state.maker is not None and save_as_table(
        state.maker,
        name,
        is_hudi=None if chosen is None else chosen.lower() in FORMATS,
        mode=mode or state.mode or "errorifexists",
        partition_by=(partition_by,) if isinstance(partition_by, str) else tuple(partition_by),
        given={**state.options, **{key: _text(value) for key, value in options.items() if value is not None}},
    )
    return None if saved else original(target, *args, **kwargs)


def _places(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The name of a table stands where ``save`` has the path."""
    return {"path" if key == "name" else key: value for key, value in kwargs.items()}


def _write_to(original: _Method, frame: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return activate_sql.write_to(original, frame, args, kwargs, _state)


def _using(original: _Method, writer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return activate_sql.using(original, writer, args, kwargs, _state)


def _insert_into(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from pyhudi.spark.sql.writers import insert_into

    given = dict(zip(("tableName", "overwrite"), args, strict=False)) | kwargs
    state, overwrite = _state(target), given.get("overwrite")
    if overwrite is None:
        overwrite = (state.mode or "").lower() == "overwrite"
    if state.maker is not None and insert_into(
        state.maker, given["tableName"], overwrite=overwrite, given=state.options
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


def _write(path: str, state: _State, mode: str) -> None:
    from pyhudi.spark.write.dataframe_writer import write

    options = {k: v for k, v in state.options.items() if k != "path"}
    if state.partition_by:
        options.setdefault(PARTITIONPATH_FIELD, ",".join(state.partition_by))
    frame = state.maker
    if frame is None:
        raise QueryError("this writer was made before pyhudi was activated; take a new one from df.write")
    write(frame, path, options, mode)


# --- streams ---------------------------------------------------------------------------------------------------------

_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


def _output_mode(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _state(target).output_mode = args[0] if args else kwargs["outputMode"]
    return original(target, *args, **kwargs)


def _partition_stream(_: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _partition_by(lambda *_: None, target, args, kwargs)  # told to Spark when the format is known
    return target


def _start(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    path, source, mode, partition_by, name, options = _start_arguments(*args, **kwargs)
    state = _state(target)
    given = source if source is not None else state.format
    if given is None or given.lower() not in FORMATS:
        _tell_partitions(target)
        return original(target, *args, **kwargs)
    _refuse_connect(target)
    target.options(**options)
    if mode is not None:
        target.outputMode(mode)
    if name is not None:
        target.queryName(name)
    if partition_by is not None:
        state.partition_by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    where = path if path is not None else state.options.get("path")
    if not isinstance(where, str):
        raise QueryError(f"start() needs the path of the table, got {where!r}")
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


def _start_sink(original: _Method, target: Any, path: str) -> Any:
    from pyhudi.spark.streaming.sink import start

    state = _state(target)
    kept = any(key.lower() == "checkpointlocation" for key in state.options)
    if not kept and not _session_of_writer(state).conf.get(_CHECKPOINTS, None):
        raise ConfigError(
            "a stream into a Hudi table needs the option 'checkpointLocation' (or the session's setting "
            f"{_CHECKPOINTS}): without it a restart would begin anew"
        )
    options = {k: v for k, v in state.options.items() if k.lower() not in ("path", "checkpointlocation")}
    if state.partition_by:
        options.setdefault(PARTITIONPATH_FIELD, ",".join(state.partition_by))
    return start(target, path, options, state.output_mode, type(target).foreachBatch, original)


def _session_of_writer(state: _State) -> SparkSession:
    if state.maker is None:
        raise QueryError("this writer was made before pyhudi was activated; take a new one from df.writeStream")
    session: SparkSession = state.maker.sparkSession
    return session


def _to_table(original: _Method, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name = kwargs.get("format", args[1] if len(args) > 1 else None) or _state(target).format
    if name is not None and name.lower() in FORMATS:
        raise QueryError("a stream goes into a Hudi table by its path: start(path) instead of toTable(name)")
    _tell_partitions(target)
    return original(target, *args, **kwargs)


def _tell_partitions(target: Any) -> None:
    columns = _state(target).partition_by
    if columns:
        cls = next(c for c in type(target).__mro__ if (c, "partitionBy") in _originals)
        _originals[(cls, "partitionBy")](target, *columns)


def _refuse_connect(target: Any) -> None:
    if ".connect." in type(target).__module__:
        raise SetupError(
            "streams of Hudi tables run in classic sessions only: Spark Connect does not tell which query a "
            "micro-batch is of. Batch reads and writes work, also inside of your own foreachBatch"
        )
