"""Avro containers and schemas of the timeline.

Apache Hudi stores one record per file, in an Avro object container whose header holds only ``avro.schema``. The
``avro.codec`` entry is omitted, which means "null". General Avro libraries write this entry, so the header is encoded
here, and only the record is encoded by fastavro.
"""

from __future__ import annotations

import functools
import importlib.resources
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
from fastavro.schema import SchemaParseException

from pyhudi.errors import FormatError
from pyhudi.format.varint import unsigned

MAGIC = b"Obj\x01"
"""Magic number of Avro object containers."""

SYNC_SIZE = 16

AvroSchema: TypeAlias = dict[str, Any]

_JAVA_STRING = {"avro.java.string": "String"}


def is_container(data: bytes) -> bool:
    """Return True if the bytes start like an Avro object container."""
    return data[:4] == MAGIC


def encode_long(value: int) -> bytes:
    """Return Avro's zigzag variable-length form of a 64-bit integer."""
    return unsigned((value << 1) ^ (value >> 63))


@functools.cache
def _schema_text(name: str) -> str:
    folder = importlib.resources.files("pyhudi.format") / "avsc"
    file = folder / f"{name}.avsc"
    if not file.is_file():
        names = ", ".join(sorted(p.name.removesuffix(".avsc") for p in folder.iterdir() if p.name.endswith(".avsc")))
        raise FormatError(f"no Avro schema {name!r} in Hudi's format; available: {names}")
    return file.read_text(encoding="utf-8")


def load_schema(name: str) -> AvroSchema:
    """Return a schema of the format by file name without suffix, e.g. ``HoodieCommitMetadata.v8-v9``.

    A suffix (``.v6``, ``.v8-v9``) denotes the table versions that use the schema; without one, all do. The caller may
    modify the returned dict.
    """
    schema: AvroSchema = json.loads(_schema_text(name))
    return schema


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    """Parse a schema, cached by its text; the parsed form is specific to fastavro."""
    try:
        return fastavro.parse_schema(json.loads(text), named_schemas={})
    except (SchemaParseException, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"not a valid Avro schema: {error}") from error


def schema_json(schema: AvroSchema | str) -> str:
    """Return the schema as compact JSON, as stored in files."""
    return schema if isinstance(schema, str) else json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def with_java_strings(schema: Any) -> Any:
    """Return the schema with the property that makes Avro's Java readers return ``java.lang.String``.

    Apache Hudi's classes have it. Its readers of archived timelines fail for files without it.
    """
    if schema == "string":
        return {"type": "string", **_JAVA_STRING}
    if isinstance(schema, list):
        return [with_java_strings(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: with_java_strings(schema[key]) for key in ("items", "values") if key in schema}
    if "fields" in schema:
        inner["fields"] = [field | {"type": with_java_strings(field["type"])} for field in schema["fields"]]
    return schema | inner | (_JAVA_STRING if schema["type"] in ("map", "string") else {})


def encode_datum(schema: AvroSchema | str, record: Mapping[str, Any]) -> bytes:
    """Return one record as Avro binary without any header."""
    buffer = io.BytesIO()
    try:
        fastavro.schemaless_writer(buffer, _parsed(schema_json(schema)), record)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise FormatError(f"the record does not match its Avro schema: {error}") from error
    return buffer.getvalue()


def decode_datum(schema: AvroSchema | str, data: bytes, *, named_unions: bool = False) -> Any:
    """Return the record in ``data`` (Avro binary, no header).

    With ``named_unions``, records in unions of several types are returned as pairs of type name and value.
    """
    buffer = io.BytesIO(data)
    try:
        record = fastavro.schemaless_reader(buffer, _parsed(schema_json(schema)), None, return_record_name=named_unions)
    except FormatError:
        raise
    except Exception as error:  # fastavro raises arbitrary exceptions for corrupt bytes.
        raise FormatError(
            f"cannot decode an Avro record of {len(data)} bytes: {type(error).__name__}: {error}"
        ) from error
    if buffer.tell() != len(data):
        raise FormatError(f"an Avro record ends after {buffer.tell()} of {len(data)} bytes")
    return record


def write_container(schema: AvroSchema | str, records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return an Avro object container as written by Apache Hudi for timeline files: one block, no codec entry."""
    text = schema_json(schema)
    return container_of(text, [encode_datum(text, record) for record in records])


def container_of(text: str, bodies: Sequence[bytes]) -> bytes:
    """Return a container of encoded records with the schema in ``text``."""
    sync = os.urandom(SYNC_SIZE)
    header = _header(text, sync)
    if not bodies:
        return header
    body = b"".join(bodies)
    return header + encode_long(len(bodies)) + encode_long(len(body)) + body + sync


def containers_of(text: str, bodies: pa.BinaryArray) -> pa.BinaryArray:
    """Return, for each of many encoded records, a container with this one record."""
    sync = os.urandom(SYNC_SIZE)
    sizes = pc.binary_length(bodies).dictionary_encode()
    encoded_sizes = pa.array(map(encode_long, sizes.dictionary.to_pylist()), pa.binary()).take(sizes.indices)
    return pc.binary_join_element_wise(_header(text, sync) + encode_long(1), encoded_sizes, bodies, sync, b"")


def _header(text: str, sync: bytes) -> bytes:
    key, value = b"avro.schema", text.encode()
    entry = encode_long(len(key)) + key + encode_long(len(value)) + value
    return MAGIC + encode_long(1) + entry + encode_long(0) + sync


def read_container(data: bytes, reader_schema: AvroSchema | str | None = None) -> tuple[AvroSchema, list[Any]]:
    """Return the writer's schema and all records of an Avro object container.

    ``reader_schema`` resolves the records to another version of the schema, by field names and defaults.

    Raises:
        FormatError: The bytes are not a complete container.
    """
    if not is_container(data):
        raise FormatError(f"not an Avro container: it starts with {data[:4]!r} instead of {MAGIC!r}")
    resolve = None if reader_schema is None else _parsed(schema_json(reader_schema))
    try:
        reader = fastavro.reader(io.BytesIO(data), reader_schema=resolve)
        schema: AvroSchema = json.loads(reader.metadata["avro.schema"])
        _check_bounded(schema)
        records = list(reader)
    except FormatError:
        raise
    except Exception as error:  # fastavro raises arbitrary exceptions for corrupt bytes.
        raise FormatError(
            f"cannot read an Avro container of {len(data)} bytes: {type(error).__name__}: {error}"
        ) from error
    return schema, records


def single_record(data: bytes) -> tuple[str, memoryview]:
    """Return the schema (Avro JSON) and the encoded record of a container with one record.

    Raises:
        FormatError: The bytes are not such a container.
    """
    try:
        reader = fastavro.block_reader(io.BytesIO(data))
        blocks = list(reader)
        text = reader.metadata["avro.schema"]
    except Exception as error:  # fastavro raises arbitrary exceptions for corrupt bytes.
        raise FormatError(
            f"cannot read an Avro container of {len(data)} bytes: {type(error).__name__}: {error}"
        ) from error
    if len(blocks) != 1 or blocks[0].num_records != 1 or blocks[0].codec != "null":
        raise FormatError(f"an Avro container of {len(data)} bytes does not hold exactly one record")
    _check_bounded(json.loads(text))
    return text, memoryview(blocks[0].bytes_.getbuffer())


def _check_bounded(schema: Any) -> None:
    """Refuse a schema whose values may take no bytes, because a few corrupt bytes could then encode any number of them.

    A record without ``fields`` is such a type, which fastavro accepts.
    """
    if not _takes_bytes(schema):
        raise FormatError("the Avro schema of the container has records without content")
    for item in _array_items(schema):
        if not _takes_bytes(item):
            raise FormatError(f"the Avro schema of the container has an array of values without content: {item}")


def _takes_bytes(schema: Any) -> bool:
    """Return True if every value of the type takes at least one byte."""
    if not isinstance(schema, dict):
        return bool(schema != "null")
    kind = schema.get("type")
    if kind in ("record", "error"):
        return any(_takes_bytes(field["type"]) for field in schema.get("fields", ()))
    if kind == "fixed":
        return bool(schema["size"] > 0)
    return _takes_bytes(kind)


def _array_items(schema: Any) -> Iterator[Any]:
    """Return the item types of all arrays in a schema."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _array_items(branch)
    if isinstance(schema, dict):
        if schema.get("type") == "array":
            yield schema["items"]
        for key in ("type", "items", "values"):
            yield from _array_items(schema.get(key))
        for field in schema.get("fields", ()):
            yield from _array_items(field["type"])
