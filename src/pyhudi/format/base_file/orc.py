"""Base files in ORC, written and read as streams of Arrow batches.

As in Apache Hudi, an instant is stored as an ORC ``timestamp``, which is a wall-clock time. pyhudi writes it in UTC and
reads that of other writers in the time zone of the file. Local timestamps are stored as ``bigint``, the only form that
Apache Hudi has for them. The user metadata of the footer has the same entries as a Parquet footer, and the Avro schema
under ``orc.avro.schema``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po

from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError, SchemaMismatchError
from pyhudi.format.base_file import base_file_footer, base_file_writer
from pyhudi.format.base_file.base_file_footer import BloomOptions, Footer
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.column_bounds import BoundsRecorder
from pyhudi.format.base_file.orc_footer import with_user_metadata, writer_timezone
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.format.utf8_validation import with_valid_text

AVRO_SCHEMA_KEY = "orc.avro.schema"
CODECS = ("uncompressed", "snappy", "zlib", "lz4", "zstd")
STRIPE_SIZE = 64 * 1024 * 1024
_UTC = ("UTC", "GMT", "Etc/UTC", "Z")
_FIRST_MICROS, _LAST_MICROS = -(2**63) // 1000 + 1, (2**63 - 1) // 1000
"""Range of 64-bit nanoseconds, in microseconds."""
_FAR_TIME = "a time before 1677-09-22 or after 2262-04-11, which Arrow's reader of ORC cannot represent"


class OrcFileWriter(base_file_writer.BaseFileWriter):
    """Writes batches to one ORC file; see `BaseFileWriter`."""

    def __init__(
        self,
        sink: Any,
        schema: BaseFileSchema,
        *,
        codec: str = "zstd",
        stripe_size: int = STRIPE_SIZE,
        bloom: BloomOptions | None = None,
        replaced: Footer | None = None,
    ) -> None:
        buffered = replace(schema, columns=schema.columns.remove_metadata())
        super().__init__(sink, buffered, block_size=stripe_size, bloom=bloom, replaced=replaced)
        self._avro_schema = schema.avro
        self._stored = pa.schema([field.with_type(_stored_type(field.type)) for field in self._schema])
        self._held = _WithheldTail(self._output)
        self._writer = po.ORCWriter(
            pa.PythonFile(self._held, mode="w"), compression=codec.lower(), stripe_size=stripe_size
        )

    def _write_block(self, table: pa.Table, arrow_bytes: int) -> None:  # noqa: ARG002 - ORC counts for itself
        _check_times(table)
        self._writer.write(table.cast(self._stored, safe=False))

    def _finish(self, entries: dict[str, str]) -> None:
        if self._num_rows == 0:
            self._writer.write(self._stored.empty_table())  # Otherwise the file would have no columns.
        with self._held.until_done() as tail:
            self._writer.close()
        if self._avro_schema is not None:
            entries[AVRO_SCHEMA_KEY] = self._avro_schema
        self._output.write(with_user_metadata(bytes(tail), entries))

    def _discard(self) -> None:
        self._writer.is_open = False  # Otherwise it would write a footer when it is garbage-collected.

    def _new_recorder(self, columns: pa.Schema | None) -> BoundsRecorder | None:
        return None if columns is None else BoundsRecorder(columns)

    def _column_bounds(self, columns: pa.Schema) -> pa.StructArray:  # noqa: ARG002 - the recorder knows them
        assert isinstance(self._recorder, BoundsRecorder)
        return self._recorder.finish()


class _WithheldTail:
    """Passes bytes on to a file, except the last ones, which are withheld so that they can be changed."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self._kept: bytearray | None = None

    @contextmanager
    def until_done(self) -> Iterator[bytearray]:
        """Withhold bytes that are written from now on."""
        self._kept = bytearray()
        yield self._kept

    def write(self, data: bytes) -> None:
        if self._kept is None:
            self._file.write(data)
        else:
            self._kept += bytes(data)

    def tell(self) -> int:
        return int(self._file.tell()) + len(self._kept or b"")

    def flush(self) -> None:
        """Do nothing; there is no buffer."""

    def close(self) -> None:
        """Leave the file open; its owner closes it."""


def _check_times(table: pa.Table) -> None:
    """Refuse times that Arrow's reader of ORC cannot represent, because it reads nanoseconds.

    Raises:
        SchemaMismatchError: A column has such a time.
    """
    for field in table.schema:
        if not _has_timestamps(field.type):
            continue
        for times in (found for chunk in table[field.name].chunks for found in _instants(chunk)):
            ends = pc.min_max(times.cast(pa.timestamp("us", "UTC")).cast(pa.int64())).as_py()
            if ends["min"] is not None and not _FIRST_MICROS <= ends["min"] <= ends["max"] <= _LAST_MICROS:
                raise SchemaMismatchError(
                    f"column {field.name!r} has {_FAR_TIME}; use Parquet base files, or correct the time"
                )


def _instants(array: pa.Array) -> Iterator[pa.Array]:
    """Return the instants of a column, also those inside of structs, lists and maps."""
    kind = array.type
    if _is_instant(kind):
        yield array
    elif pa.types.is_struct(kind):
        for child in array.flatten():
            yield from _instants(child)
    elif pa.types.is_list(kind):
        yield from _instants(array.flatten())
    elif pa.types.is_map(kind):
        start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        yield from _instants(array.items.slice(start, stop - start))


def _stored_type(data_type: pa.DataType) -> pa.DataType:
    """Return the Arrow type with which values are stored in ORC."""
    return _mapped(data_type, lambda leaf: _STORED.get(leaf) or (pa.timestamp("us") if _is_instant(leaf) else leaf))


_STORED = {
    pa.timestamp("us"): pa.int64(),
    pa.timestamp("ms"): pa.int64(),
    pa.time32("ms"): pa.int32(),
    pa.time64("us"): pa.int64(),
}


def _is_instant(data_type: pa.DataType) -> bool:
    return pa.types.is_timestamp(data_type) and data_type.tz is not None


def _read_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of values read from ORC: timestamps are instants with microseconds."""
    return _mapped(data_type, lambda leaf: pa.timestamp("us", "UTC") if pa.types.is_timestamp(leaf) else leaf)


def _mapped(data_type: pa.DataType, change: Any) -> pa.DataType:
    """Return a type with its leaves changed."""
    if pa.types.is_struct(data_type):
        fields = [data_type.field(i) for i in range(data_type.num_fields)]
        return pa.struct([field.with_type(_mapped(field.type, change)) for field in fields])
    if pa.types.is_map(data_type):
        item = data_type.item_field
        return pa.map_(_mapped(data_type.key_type, change), item.with_type(_mapped(item.type, change)))
    if pa.types.is_list(data_type):
        item = data_type.value_field
        return pa.list_(pa.field("element", _mapped(item.type, change), item.nullable))
    return change(data_type)


def open_file(source: Any) -> po.ORCFile:
    """Open a base file (path, buffer or random-access file).

    Raises:
        FormatError: The file is not an ORC file, or its tail is corrupt.
    """
    with as_corruption("not a valid ORC file"):
        file = po.ORCFile(source)
        _ = file.schema.names  # Decodes the file's tail.
    return file


def user_metadata(source: Any) -> dict[bytes, bytes]:
    """Return the user metadata of the footer unchanged."""
    return dict(open_file(source).metadata or {})


def read_footer(source: Any) -> Footer:
    """Return Hudi's entries in the footer of a base file; ``schema`` has the types that `read_batches` returns."""
    file = open_file(source)
    entries = dict(file.metadata or {})
    schema = pa.schema([field.with_type(_read_type(field.type)) for field in file.schema])
    return Footer(
        num_rows=file.nrows,
        schema=schema.remove_metadata(),
        avro_schema=base_file_footer.entry_text(entries, AVRO_SCHEMA_KEY),
        min_key=base_file_footer.entry_text(entries, base_file_footer.MIN_KEY),
        max_key=base_file_footer.entry_text(entries, base_file_footer.MAX_KEY),
        bloom_type=base_file_footer.entry_text(entries, base_file_footer.BLOOM_TYPE_KEY),
        bloom_text=entries.get(base_file_footer.BLOOM_KEY.encode()),
        metadata=None,
    )


def read_batches(
    source: Any, columns: Sequence[str] | None = None, *, invalid_text: InvalidText = InvalidText.FAIL
) -> Iterator[pa.RecordBatch]:
    """Read a base file as a stream of batches in row order, one stripe at a time.

    ``columns`` are top-level names (None: all); those that the file does not have are omitted. ``invalid_text``
    determines the treatment of text that is not valid UTF-8.
    """
    if not hasattr(source, "read"):
        with pa.BufferReader(source) if isinstance(source, pa.Buffer | bytes) else pa.OSFile(str(source)) as opened:
            yield from read_batches(opened, columns, invalid_text=invalid_text)
        return
    random_access = source if isinstance(source, pa.NativeFile) else pa.PythonFile(source, mode="r")
    file = open_file(random_access)
    names = file.schema.names
    selected = names if columns is None else [name for name in columns if name in names]
    zone = _zone(random_access, file.schema, selected)
    for number in range(file.nstripes):
        with as_corruption(f"cannot read stripe {number} of the ORC file"):
            batch = with_valid_text(_stripe(file, number, selected or names[:1]), invalid_text)
        if not selected:
            yield batch.select([])
            continue
        arrays = [_as_read(batch.column(name), name, zone) for name in selected]
        fields = [batch.schema.field(name).with_type(a.type) for name, a in zip(selected, arrays, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _stripe(file: po.ORCFile, number: int, columns: list[str]) -> pa.RecordBatch:
    """Read a stripe. Without columns, Arrow does not return the number of rows."""
    try:
        return file.read_stripe(number, columns=columns)
    except pa.ArrowInvalid as error:
        if "nanosecond resolution" not in str(error):
            raise
        raise FormatError(
            f"one of the columns {', '.join(columns)} has {_FAR_TIME}; read other columns, or copy the table to one "
            "with Parquet base files by Apache Hudi"
        ) from error


def _zone(source: pa.NativeFile, schema: pa.Schema, selected: list[str]) -> str:
    """Return the time zone of the file's wall-clock times; requested only if there are any."""
    if all(_read_type(schema.field(name).type) == schema.field(name).type for name in selected):
        return "UTC"
    zone = writer_timezone(source)
    return "UTC" if zone is None or zone in _UTC else zone


def _as_read(array: pa.Array, name: str, zone: str) -> pa.Array:
    target = _read_type(array.type)
    if array.type == target:
        return array
    if zone != "UTC" and pa.types.is_timestamp(array.type):
        try:
            # A local time that occurs twice at a clock change is ambiguous in such files; use the first one.
            local = array.cast(pa.timestamp("us"), safe=False)
            return pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest").cast(target)
        except (pa.ArrowInvalid, KeyError) as error:
            raise FormatError(f"column {name!r} of the ORC file has an unknown time zone {zone!r}: {error}") from error
    if zone != "UTC" and _has_timestamps(array.type):
        raise FormatError(
            f"column {name!r} of the ORC file has nested timestamps in time zone {zone}; only UTC is supported"
        )
    return array.cast(target, safe=False)


def _has_timestamps(data_type: pa.DataType) -> bool:
    if pa.types.is_timestamp(data_type):
        return True
    return any(_has_timestamps(data_type.field(i).type) for i in range(data_type.num_fields))
