"""Common part of the writers of base files of every format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from pyhudi.errors import FormatError
from pyhudi.format.base_file.base_file_footer import BloomOptions, Footer, KeyRecorder
from pyhudi.format.base_file.column_bounds import BoundsRecorder, NanDetector
from pyhudi.format.base_file.non_closing_sink import NonClosingSink
from pyhudi.schema.meta_fields import RECORD_KEY

_FIRST_RATIO = 0.3
"""File bytes for an Arrow byte, until the first block tells better."""


@dataclass(frozen=True, slots=True)
class FileSummary:
    """A finished base file: rows, bytes, and the least and greatest record key by UTF-8 bytes (None without keys).

    ``bounds`` (`pyhudi.format.base_file.column_bounds`) are those of the columns that were asked for.
    """

    num_rows: int
    size: int
    min_key: str | None
    max_key: str | None
    bounds: pa.StructArray | None = None


class FileWriter(ABC):
    """Streams batches into one base file. Use as a context manager: an error inside leaves the file unfinished.

    Rows wait in memory as Arrow batches until they fill a block; a format writes blocks and, at the end, the footer.

    Args:
        sink: a path, or an open binary file (which stays open).
        schema: the file's columns, meta columns included, as the rows are buffered.
        block_size: Arrow bytes that make a block.
        bloom: how the bloom filter of ``key_column`` is made; None leaves filter and key range out.
        constants: columns that are the same in every row, missing in the batches: name → text or None for null.
        earlier: the footer of the file that is rewritten, so that the keys of its rows need not be looked at again.
        bounds: columns (dotted names are leaves) whose least and greatest values the summary is to tell.
    """

    def __init__(
        self,
        sink: Any,
        schema: pa.Schema,
        *,
        block_size: int,
        bloom: BloomOptions | None,
        key_column: str = RECORD_KEY,
        constants: Mapping[str, str | None] | None = None,
        earlier: Footer | None = None,
        bounds: pa.Schema | None = None,
    ) -> None:
        self._sink = sink
        self._schema = schema
        self._block_size = block_size
        self._keys = None if bloom is None else KeyRecorder(bloom, earlier)
        self._key_column = key_column
        self._bounds = bounds
        self._watch = self._new_watch(bounds)
        self._constants = {name: pa.array([value], pa.string()) for name, value in (constants or {}).items()}
        self._output = _open(sink)
        self._start = self._output.tell()
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._flushed_bytes = 0
        self._num_rows = 0
        self._closed = False

    @abstractmethod
    def _write_block(self, table: pa.Table, arrow_bytes: int) -> None:
        """Write rows that waited."""

    @abstractmethod
    def _finish(self, entries: dict[str, str]) -> None:
        """Write the footer with these entries, also when there were no rows."""

    @abstractmethod
    def _discard(self) -> None:
        """Drop the writer that would write a footer later."""

    @abstractmethod
    def _new_watch(self, columns: pa.Schema | None) -> BoundsRecorder | NanDetector | None:
        """Observer of all rows that computes bounds of columns; ``columns`` are those to report in the summary."""

    @abstractmethod
    def _found_bounds(self, columns: pa.Schema) -> pa.StructArray:
        """The columns' bounds, when the footer is written."""

    @property
    def num_rows(self) -> int:
        """Rows taken so far."""
        return self._num_rows

    @property
    def buffered_bytes(self) -> int:
        """Arrow bytes that wait in memory for the next block."""
        return self._pending_bytes

    @property
    def estimated_size(self) -> int:
        """Bytes that the file would have if it were closed now, without the footer: measured for what is written,
        estimated by the same ratio for what waits."""
        written = self._output.tell() - self._start
        ratio = written / self._flushed_bytes if self._flushed_bytes else _FIRST_RATIO
        return int(written + ratio * self._pending_bytes)

    def write(self, batch: pa.RecordBatch | pa.Table, *, old_keys: bool = False) -> None:
        """Take rows. Columns are matched by name; types must be the schema's, dictionary-encoded or not. ``old_keys``:
        the keys of these rows are all in the file that is rewritten."""
        for part in batch.to_batches() if isinstance(batch, pa.Table) else [batch]:
            if part.num_rows == 0:
                continue
            laid = self._lay_out(part)
            if self._keys is not None:
                self._keys.add(laid.column(self._key_column), old=old_keys)
            if self._watch is not None:
                self._watch.add(laid)
            self._pending.append(laid)
            self._pending_bytes += sum(column.nbytes for column in laid.columns)
            self._num_rows += part.num_rows
            if self._pending_bytes >= self._block_size:
                self.flush()

    def flush(self) -> None:
        """Write what waits in memory."""
        if not self._pending:
            return
        table = pa.Table.from_batches(self._pending, self._schema).unify_dictionaries()
        self._write_block(table, self._pending_bytes)
        self._flushed_bytes += self._pending_bytes
        self._pending, self._pending_bytes = [], 0

    def close(self) -> FileSummary:
        """Write what waits and the footer; return what the file holds."""
        if self._closed:
            raise FormatError("the base file is closed already")
        self.flush()
        keys = self._keys
        self._finish({} if keys is None else keys.footer())
        self._output.flush()
        size = self._output.tell() - self._start
        bounds = None if self._bounds is None else self._found_bounds(self._bounds)
        self._release()
        if keys is None:
            return FileSummary(self._num_rows, size, None, None, bounds)
        return FileSummary(self._num_rows, size, keys.min_key, keys.max_key, bounds)

    def abort(self) -> None:
        """Drop what waits; a file at a path stays unfinished, for the caller to delete."""
        if not self._closed:
            self._discard()
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        columns = []
        for field in self._schema:
            constant = self._constants.get(field.name)
            if constant is not None:
                column = _repeat(constant, batch.num_rows, field.type)
            else:
                index = batch.schema.get_field_index(field.name)
                if index < 0:
                    raise FormatError(f"column {field.name!r} of the base file is missing in the rows to write")
                column = _as_type(batch.column(index), field)
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _open(sink: Any) -> Any:
    if isinstance(sink, pa.NativeFile):
        return sink
    if hasattr(sink, "write"):
        return pa.PythonFile(NonClosingSink(sink), mode="w")
    return pa.OSFile(str(sink), mode="wb")


def _repeat(value: pa.Array, n: int, target: pa.DataType) -> pa.Array:
    """Return ``n`` times the only value; without the text in memory n times where the target is a dictionary."""
    if not pa.types.is_dictionary(target):
        return pa.repeat(value[0], n).cast(target)
    if value.null_count:
        return pa.nulls(n, target)
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), n), value)


def _as_type(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    if pa.types.is_dictionary(field.type):
        if pa.types.is_dictionary(column.type):
            return column.cast(field.type)
        return column.cast(pa.string()).dictionary_encode()
    if pa.types.is_dictionary(column.type) and column.type.value_type == field.type:
        return column.dictionary_decode()
    raise FormatError(f"column {field.name!r} has type {column.type}; the base file's schema says {field.type}")
