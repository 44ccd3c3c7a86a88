"""What base files of every format share: footer keys, the record of key range and bloom filter, the way of rows in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError, RecordKeyError
from pyhudi.format import bloom
from pyhudi.format.bounds import BoundsRecorder, NanWatch
from pyhudi.schema.columns import RECORD_KEY

AVRO_SCHEMA_KEY = "parquet.avro.schema"
WRITER_MODEL_KEY = "writer.model.name"
BLOOM_KEY = "org.apache.hudi.bloomfilter"
OLD_BLOOM_KEY = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE_KEY = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"

_FIRST_RATIO = 0.3
"""File bytes for an Arrow byte, until the first block tells better."""


@dataclass(frozen=True, slots=True)
class FileSummary:
    """A finished base file: rows, bytes, and the least and greatest record key by UTF-8 bytes (None without keys).

    ``bounds`` (`pyhudi.format.bounds`) are those of the columns that were asked for.
    """

    num_rows: int
    size: int
    min_key: str | None
    max_key: str | None
    bounds: pa.StructArray | None = None


@dataclass(frozen=True, slots=True)
class BloomOptions:
    """How the bloom filter of a base file is made (`hoodie.index.bloom.*`, `hoodie.bloom.index.filter.*`)."""

    num_entries: int = bloom.DEFAULT_ENTRIES
    fpp: float = bloom.DEFAULT_FPP
    dynamic_max: int = bloom.DEFAULT_MAX_ENTRIES
    kind: str = bloom.DYNAMIC


@dataclass(frozen=True, slots=True)
class Footer:
    """What Hudi keeps in the footer of a base file; absent entries are None.

    ``schema`` is the file's Arrow schema; ``metadata`` the format's own description (``pyarrow.parquet.FileMetaData``
    for parquet, None for ORC).
    """

    num_rows: int
    schema: pa.Schema
    avro_schema: str | None
    min_key: str | None
    max_key: str | None
    bloom_type: str | None
    bloom_text: bytes | None
    metadata: Any

    def bloom_filter(self) -> bloom.BloomFilter | None:
        """Return the bloom filter, or None if the file has none."""
        if self.bloom_text is None:
            return None
        # files of the first releases have a filter and no type code: it is the simple one
        return bloom.BloomFilter.parse(self.bloom_text, self.bloom_type or bloom.SIMPLE)


class KeyRecorder:
    """Takes the record keys of a file as they are written and makes the footer entries of them.

    ``earlier`` is the footer of the file that is rewritten: if it can, the bloom filter goes on with that file's, so
    that the keys of its rows need not be hashed again. Keys that are deleted meanwhile stay in it, which makes it pass
    more than need be and never wrong.
    """

    def __init__(self, options: BloomOptions, earlier: Footer | None = None) -> None:
        self._kind = options.kind
        self._builder = bloom.BloomBuilder(options.num_entries, options.fpp, options.dynamic_max, options.kind)
        self._min: bytes | None = None
        self._max: bytes | None = None
        known = earlier.bloom_filter() if earlier is not None and earlier.bloom_type == self._kind else None
        self._resumed = earlier is not None and known is not None and self._builder.resume(known, earlier.num_rows)

    def add(self, keys: pa.Array | pa.ChunkedArray, *, old: bool = False) -> None:
        """Add the keys of the next rows; ``old``: the file that is rewritten has them."""
        if keys.null_count:
            raise RecordKeyError(f"{keys.null_count} of {len(keys)} records have no record key")
        if len(keys) == 0:
            return
        if not (old and self._resumed):
            self._builder.add(keys)
        span = pc.min_max(keys.cast(pa.binary()))
        low, high = span["min"].as_py(), span["max"].as_py()
        self._min = low if self._min is None else min(self._min, low)
        self._max = high if self._max is None else max(self._max, high)

    @property
    def min_key(self) -> str | None:
        """The least key so far."""
        return None if self._min is None else self._min.decode()

    @property
    def max_key(self) -> str | None:
        """The greatest key so far."""
        return None if self._max is None else self._max.decode()

    def footer(self) -> dict[str, str]:
        """Return the footer entries; a file without rows has no key range, as the original writes it."""
        entries = {BLOOM_KEY: self._builder.finish().serialize(), BLOOM_TYPE_KEY: self._kind}
        if self._min is not None and self._max is not None:
            entries |= {MIN_KEY: self._min.decode(), MAX_KEY: self._max.decode()}
        return entries


def as_text(entries: dict[bytes, bytes], key: str) -> str | None:
    """Return a footer entry as text.

    Raises:
        FormatError: it is not UTF-8.
    """
    value = entries.get(key.encode())
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError as e:
        raise FormatError(f"footer entry {key!r} is not UTF-8: {e}") from e


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
        """Let go of what would write a footer later on."""

    @abstractmethod
    def _new_watch(self, columns: pa.Schema | None) -> BoundsRecorder | NanWatch | None:
        """What looks at all rows for the sake of columns' bounds; ``columns``: those that the summary is to tell."""

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


class _LeftOpen:
    """A binary file that pyarrow may write to but not close."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def tell(self) -> int:
        return int(self._file.tell())

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Leave the file open: its owner closes it."""


def _open(sink: Any) -> Any:
    if isinstance(sink, pa.NativeFile):
        return sink
    if hasattr(sink, "write"):
        return pa.PythonFile(_LeftOpen(sink), mode="w")
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
