"""Common base of the writers of base files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.base_file.base_file_footer import BloomOptions, Footer, KeyRecorder
from pyhudi.format.base_file.column_bounds import BoundsRecorder, NanDetector
from pyhudi.format.base_file.non_closing_sink import NonClosingSink
from pyhudi.schema.logical_types.vectors import is_vector, stored_type, vector_bytes
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.required_fields import has_required_fields, with_required_fields_filled

_FIRST_RATIO = 0.3
"""Ratio of file bytes to Arrow bytes that is assumed until the first block is written."""


@dataclass(frozen=True, slots=True)
class BaseFileSchema:
    """Columns of a base file, and how their values are stored.

    Attributes:
        columns: Columns of the file, including meta columns.
        avro: Avro schema for the footer as JSON text; None omits it, as Apache Hudi's row writer does.
        constants: Columns with the same value in every row, missing in the batches: name → text or None for null.
        dictionary_columns: Text columns with few distinct values, which Parquet writers buffer as dictionaries.
        bounds: Columns (dotted names are leaves) whose minimum and maximum are part of the summary of the file.
    """

    columns: pa.Schema
    avro: str | None = None
    constants: Mapping[str, str | None] = field(default_factory=dict)
    dictionary_columns: Collection[str] = ()
    bounds: pa.Schema | None = None


@dataclass(frozen=True, slots=True)
class FileSummary:
    """A finished base file: rows, bytes, and minimum and maximum record key by UTF-8 bytes (None without keys).

    ``bounds`` (`pyhudi.format.base_file.column_bounds`) are those of the requested columns.
    """

    num_rows: int
    size: int
    min_key: str | None
    max_key: str | None
    bounds: pa.StructArray | None


class BaseFileWriter(ABC):
    """Writes batches to one base file. Use as a context manager: after an error the file is left unfinished.

    Rows are buffered as Arrow batches until they fill a block. Subclasses write blocks and the footer. The attributes
    are the state of one open file: its output, the rows of the next block, and the footer's summary of all rows.

    Args:
        sink: A path, or an open binary file (which stays open).
        schema: Columns of the file, with the types in which rows are buffered.
        block_size: Arrow bytes per block.
        bloom: Settings of the bloom filter of the record keys; None omits filter and key range.
        replaced: Footer of the file that is rewritten, so that the keys of its rows need not be processed again.
    """

    def __init__(
        self,
        sink: Any,
        schema: BaseFileSchema,
        *,
        block_size: int,
        bloom: BloomOptions | None,
        replaced: Footer | None = None,
    ) -> None:
        self._sink = sink
        self._schema = schema.columns
        self._block_size = block_size
        self._keys = None if bloom is None else KeyRecorder(bloom, replaced)
        self._bounds = schema.bounds
        self._recorder = self._new_recorder(schema.bounds)
        self._constants = {name: pa.array([value], pa.string()) for name, value in schema.constants.items()}
        self._output = _open(sink)
        self._start = self._output.tell()
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._flushed_bytes = 0
        self._copied_bytes = 0
        self._num_rows = 0
        self._closed = False

    @abstractmethod
    def _write_block(self, table: pa.Table, arrow_bytes: int) -> None:
        """Write buffered rows."""

    @abstractmethod
    def _finish(self, entries: dict[str, str]) -> None:
        """Write the footer with these entries, also if there are no rows."""

    @abstractmethod
    def _discard(self) -> None:
        """Discard the writer, so that it does not write a footer later."""

    @abstractmethod
    def _new_recorder(self, columns: pa.Schema | None) -> BoundsRecorder | NanDetector | None:
        """Return the observer of all rows that computes bounds of columns; ``columns`` are those of the summary."""

    @abstractmethod
    def _column_bounds(self, columns: pa.Schema) -> pa.StructArray:
        """Return the bounds of the columns after the footer is written."""

    @property
    def num_rows(self) -> int:
        """Number of rows so far."""
        return self._num_rows

    @property
    def buffered_bytes(self) -> int:
        """Arrow bytes buffered for the next block."""
        return self._pending_bytes

    @property
    def estimated_size(self) -> int:
        """Size in bytes of the file if it were closed now, without the footer: measured for written blocks, estimated
        by the same ratio for buffered rows."""
        written = self._output.tell() - self._start
        encoded = written - self._copied_bytes
        ratio = encoded / self._flushed_bytes if self._flushed_bytes else _FIRST_RATIO
        return int(written + ratio * self._pending_bytes)

    def write(self, batch: pa.RecordBatch | pa.Table, *, old_keys: bool = False) -> None:
        """Write rows.

        Columns are matched by name. Types must be those of the schema, optionally dictionary-encoded. ``old_keys``: the
        keys of these rows are all in the file that is rewritten.
        """
        for part in batch.to_batches() if isinstance(batch, pa.Table) else [batch]:
            if part.num_rows == 0:
                continue
            laid = self._lay_out(part)
            if self._keys is not None:
                self._keys.add(laid.column(RECORD_KEY), old=old_keys)
            if self._recorder is not None:
                self._recorder.add(laid)
            self._pending.append(laid)
            self._pending_bytes += sum(column.nbytes for column in laid.columns)
            self._num_rows += part.num_rows
            if self._pending_bytes >= self._block_size:
                self.flush()

    def flush(self) -> None:
        """Write buffered rows."""
        if not self._pending:
            return
        table = pa.Table.from_batches(self._pending, self._schema).unify_dictionaries()
        self._write_block(table, self._pending_bytes)
        self._flushed_bytes += self._pending_bytes
        self._pending, self._pending_bytes = [], 0

    def close(self) -> FileSummary:
        """Write buffered rows and the footer. Return a summary of the file."""
        if self._closed:
            raise FormatError("the base file is closed")
        self.flush()
        keys = self._keys
        self._finish({} if keys is None else keys.footer())
        self._output.flush()
        size = self._output.tell() - self._start
        bounds = None if self._bounds is None else self._column_bounds(self._bounds)
        self._release()
        if keys is None:
            return FileSummary(self._num_rows, size, None, None, bounds)
        return FileSummary(self._num_rows, size, keys.min_key, keys.max_key, bounds)

    def abort(self) -> None:
        """Discard buffered rows. A file at a path is left unfinished; the caller deletes it."""
        if not self._closed:
            self._discard()
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self.abort()
        elif not self._closed:
            self.close()

    def _release(self) -> None:
        self._closed = True
        self._pending, self._pending_bytes = [], 0
        if self._output is not self._sink:
            self._output.close()

    def _lay_out(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [self._column(batch, name) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        stored = self._schema.field(name)
        constant = self._constants.get(name)
        if constant is not None:
            return _repeat(constant, batch.num_rows, stored.type)
        index = batch.schema.get_field_index(name)
        if index < 0:
            raise FormatError(f"column {name!r} of the base file is missing in the rows to write")
        return _as_type(batch.column(index), stored)


def _open(sink: Any) -> Any:
    if isinstance(sink, pa.NativeFile):
        return sink
    if hasattr(sink, "write"):
        return pa.PythonFile(NonClosingSink(sink), mode="w")
    return pa.OSFile(str(sink), mode="wb")


def _repeat(value: pa.Array, count: int, target: pa.DataType) -> pa.Array:
    """Return an array of ``count`` copies of the value; if the target is a dictionary, the text is stored once."""
    if not pa.types.is_dictionary(target):
        return pa.repeat(value[0], count).cast(target)
    if value.null_count:
        return pa.nulls(count, target)
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), value)


def _as_type(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return with_required_fields_filled(column, field.name) if has_required_fields(field.type) else column
    if is_vector(column.type) and field.type == stored_type(column.type):
        return vector_bytes(column)
    if pa.types.is_dictionary(field.type):
        if pa.types.is_dictionary(column.type):
            return column.cast(field.type)
        return column.cast(pa.string()).dictionary_encode()
    if pa.types.is_dictionary(column.type) and column.type.value_type == field.type:
        return column.dictionary_decode()
    raise FormatError(
        f"column {field.name!r} has type {column.type}, but the schema of the base file requires {field.type}"
    )
