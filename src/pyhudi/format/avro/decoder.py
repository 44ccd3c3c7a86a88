"""Decoder of consecutive Avro records into Arrow columns.

If polars (an optional package, 1.27 or newer) is installed, it decodes the records as an in-memory Avro container
directly into columns. Otherwise fastavro decodes them with one Python object per value. Both read the same layout
(`pyhudi.format.avro.binary_layout`), and further processing is the same.
"""

from __future__ import annotations

import functools
import importlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow as pa

from pyhudi.arrow.arrays import contiguous
from pyhudi.errors import FormatError
from pyhudi.format.avro.container import MAGIC, SYNC_SIZE, encode_long

_SYNC = b"\0" * SYNC_SIZE
_OLDEST_POLARS = (1, 27)
"""Older releases return projected columns in another order than requested."""


@functools.cache
def _polars() -> Any | None:
    try:
        polars = importlib.import_module("polars")
    except ImportError:
        return None
    return polars if _is_supported(polars.__version__) else None


def _is_supported(version: str) -> bool:
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= _OLDEST_POLARS


def has_fast_decoder() -> bool:
    """Return True if a supported release of polars is installed."""
    return _polars() is not None


@dataclass(frozen=True, slots=True)
class RecordProjection:
    """A field to decode: the Arrow type of its raw values, and the conversion of fastavro's values to them (None: not
    needed)."""

    raw: pa.DataType
    unwrap: Callable[[Any], Any] | None = None


def decode_columns(
    record: Mapping[str, Any],
    body: memoryview,
    count: int,
    columns: Mapping[str, RecordProjection],
    *,
    fast: bool = True,
) -> dict[str, pa.Array]:
    """Decode ``count`` consecutive records.

    ``record`` is an Avro record of primitive types, and ``columns`` are the fields to decode. With ``fast`` false,
    polars is not used, which is required if the record has unions of several types.

    Raises:
        FormatError: The bytes are not such records. The caller must check that they end with the last record.
    """
    polars = _polars() if fast else None
    if polars is None:
        return _with_fastavro(record, body, count, columns)
    return _with_polars(polars, record, body, count, columns)


def _container(schema: Mapping[str, Any], body: memoryview, count: int) -> bytes:
    text = json.dumps(schema).encode()
    head = [MAGIC, encode_long(1), encode_long(11), b"avro.schema", encode_long(len(text)), text, encode_long(0), _SYNC]
    return b"".join([*head, encode_long(count), encode_long(len(body)), body, _SYNC])


def _with_polars(
    polars: Any, record: Mapping[str, Any], body: memoryview, count: int, columns: Mapping[str, RecordProjection]
) -> dict[str, pa.Array]:
    try:
        frame = polars.read_avro(io.BytesIO(_container(record, body, count)), columns=list(columns))
    except Exception as error:
        raise FormatError(f"{count} Avro records in {len(body)} bytes cannot be decoded: {error}") from error
    except BaseException as error:
        # polars panics on some corrupt bytes; its panics are not Exceptions.
        if type(error).__name__ != "PanicException":
            raise
        raise FormatError(f"{count} Avro records in {len(body)} bytes cannot be decoded: {error}") from None
    if frame.height != count:
        raise FormatError(f"{frame.height} instead of {count} Avro records in {len(body)} bytes")
    table = frame.to_arrow(compat_level=polars.CompatLevel.oldest())
    return {name: _as_raw(contiguous(table[name]), column.raw) for name, column in columns.items()}


def _with_fastavro(
    record: Mapping[str, Any], body: memoryview, count: int, columns: Mapping[str, RecordProjection]
) -> dict[str, pa.Array]:
    try:
        data = io.BytesIO(_container(record, body, count))
        rows = list(fastavro.reader(data, return_record_name=True, return_record_name_override=True))
        if len(rows) != count:
            raise FormatError(f"{len(rows)} instead of {count} Avro records in {len(body)} bytes")
        return {name: pa.array(_values(rows, name, column.unwrap), column.raw) for name, column in columns.items()}
    except FormatError:
        raise
    except Exception as error:  # fastavro raises arbitrary exceptions for corrupt bytes.
        raise FormatError(
            f"{count} Avro records in {len(body)} bytes cannot be decoded: {type(error).__name__}: {error}"
        ) from error


def _values(rows: list[dict[str, Any]], name: str, unwrap: Callable[[Any], Any] | None) -> list[Any]:
    return [row[name] for row in rows] if unwrap is None else [unwrap(row[name]) for row in rows]


def _as_raw(array: pa.Array, raw: pa.DataType) -> pa.Array:
    """Return the values with 32-bit offsets, as in tables; data are not copied."""
    return array if array.type == raw else array.cast(raw)
