"""Reader of base files of any format: their rows in batches of bounded size, in order, and their footers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.config.enums import InvalidText
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.base_file.base_file_footer import Footer
from pyhudi.merge.skeleton_file import SkeletonFile, open_skeleton
from pyhudi.schema.evolution.schema_projection import FileNames, file_columns, with_table_names
from pyhudi.schema.timestamp_units import with_actual_types
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.bootstrap_index import is_skeleton

_BATCH_BYTES = 32 * 1024 * 1024
_MIN_ROWS, _MAX_ROWS = 1024, 131_072


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Row group of a Parquet file: its number, rows, and uncompressed bytes."""

    number: int
    num_rows: int
    size: int


class BaseFileReader:
    """An open base file. Created by `open_base`."""

    def __init__(self, source: Any, path: str, invalid_text: InvalidText) -> None:
        self._source, self._invalid_text = source, invalid_text
        self._file = None if path.endswith(".orc") else parquet.open_file(source, pre_buffer=False)

    def footer(self) -> Footer:
        """Hudi's entries in the file's footer."""
        return orc.read_footer(self._source) if self._file is None else parquet.read_footer(self._file)

    def schema(self) -> pa.Schema:
        """Columns of the file, as returned by `batches`."""
        return self.footer().schema

    def repeating(self) -> frozenset[str]:
        """Text columns with few distinct values, which can be read as dictionaries."""
        return frozenset() if self._file is None else parquet.dictionary_encoded_columns(self._file)

    def row_groups(self) -> list[RowGroup]:
        """Row groups that can be read one by one; empty: there are none."""
        if self._file is None:
            return []
        metadata = self._file.metadata
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        return [RowGroup(i, group.num_rows, group.total_byte_size) for i, group in enumerate(groups)]

    @property
    def source(self) -> Any:
        """The file (random access)."""
        return self._source

    def batches(
        self, schema: pa.Schema, dictionaries: Collection[str] = (), row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Return the rows, with those columns of ``schema`` that the file has; ``dictionaries`` are returned
        dictionary-encoded. ``row_groups``: numbers of the row groups that are read (Parquet only; None: all)."""
        if self._file is None:
            return orc.read_batches(self._source, schema.names, invalid_text=self._invalid_text)
        metadata = self._file.metadata
        size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        per_row = max(size // max(metadata.num_rows, 1), 1)
        rows = min(max(_BATCH_BYTES // per_row, _MIN_ROWS), _MAX_ROWS)
        file = self._file
        if dictionaries:
            file = parquet.open_file(
                self._source, dictionary_columns=sorted(dictionaries), pre_buffer=False, metadata=metadata
            )
        stored = parquet.read_batches(
            file, schema.names, batch_size=rows, row_groups=row_groups, invalid_text=self._invalid_text
        )
        return self.with_actual_types(stored, schema)

    def with_actual_types(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Return rows of the file with the actual types of timestamps, see `pyhudi.schema.timestamp_units`."""
        if self._file is None or parquet.has_int96(self._file.metadata):
            return iter(batches)
        return (with_actual_types(batch, schema) for batch in batches)

    def last(self, schema: pa.Schema, count: int) -> Iterator[pa.RecordBatch]:
        """Return the last ``count`` rows, in order, with those columns of ``schema`` that the file has. Of a Parquet
        file only the required row groups are read."""
        if self._file is None:
            skipped, batches = orc.read_footer(self._source).num_rows - count, self.batches(schema)
        else:
            metadata = self._file.metadata
            first, rows = metadata.num_row_groups, 0
            while first and rows < count:
                first -= 1
                rows += metadata.row_group(first).num_rows
            groups = range(first, metadata.num_row_groups)
            skipped = rows - count
            stored = parquet.read_batches(self._file, schema.names, row_groups=groups, invalid_text=self._invalid_text)
            batches = self.with_actual_types(stored, schema)
        return _without_first(batches, skipped)


class SkeletonReader(BaseFileReader):
    """An open base file whose data columns are in the bootstrapped source file."""

    def __init__(self, file: SkeletonFile) -> None:
        self._joined = file

    def footer(self) -> Footer:
        return self._joined.footer

    def schema(self) -> pa.Schema:
        return self._joined.schema

    def repeating(self) -> frozenset[str]:
        return frozenset()

    def row_groups(self) -> list[RowGroup]:
        return []

    def batches(
        self,
        schema: pa.Schema,
        dictionaries: Collection[str] = (),  # noqa: ARG002
        row_groups: Sequence[int] | None = None,  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        per_row = max(self._joined.row_bytes(schema.names), 1.0)
        rows = int(min(max(_BATCH_BYTES / per_row, _MIN_ROWS), _MAX_ROWS))
        return self._joined.batches(schema, rows)

    def with_actual_types(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - sources are not written by Hudi
        return iter(batches)

    def last(self, schema: pa.Schema, count: int) -> Iterator[pa.RecordBatch]:
        return _without_first(self.batches(schema), self._joined.footer.num_rows - count)


class RenamedReader(BaseFileReader):
    """An open base file with other names of columns, or nested fields, than the current ones of the table."""

    def __init__(self, reader: BaseFileReader, names: FileNames) -> None:
        self._reader, self._names = reader, names

    def footer(self) -> Footer:
        return self._reader.footer()

    def schema(self) -> pa.Schema:
        """Columns with the names in the file."""
        return self._reader.schema()

    def repeating(self) -> frozenset[str]:
        return frozenset()

    def row_groups(self) -> list[RowGroup]:
        return []

    def batches(
        self, schema: pa.Schema, dictionaries: Collection[str] = (), row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        assert not dictionaries
        assert row_groups is None
        return self._read_with_table_names(schema, self._reader.batches)

    def last(self, schema: pa.Schema, count: int) -> Iterator[pa.RecordBatch]:
        return self._read_with_table_names(schema, lambda stored: self._reader.last(stored, count))

    def _read_with_table_names(
        self, schema: pa.Schema, read: Callable[[pa.Schema], Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        inside = file_columns(schema, self._names)
        stored = pa.schema([schema.field(name).with_name(file_name) for file_name, name in inside.items()])
        named = (with_table_names(batch, inside, self._names) for batch in read(stored))
        return self.with_actual_types(named, schema)  # nested fields have the names of the table only now

    def with_actual_types(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return self._reader.with_actual_types(batches, schema)


def _without_first(batches: Iterable[pa.RecordBatch], skipped: int) -> Iterator[pa.RecordBatch]:
    """Yield rows without a number of first ones, which may be negative: none are omitted then."""
    for batch in batches:
        if skipped < batch.num_rows:
            yield batch.slice(max(skipped, 0))
        skipped -= batch.num_rows


@contextmanager
def open_base(
    storage: Storage, path: str, invalid_text: InvalidText = InvalidText.FAIL, names: FileNames | None = None
) -> Iterator[BaseFileReader]:
    """Open a base file of any format. ``invalid_text``: treatment of text that is not valid UTF-8. ``names``: names in
    the file of columns that were renamed."""
    with _opened(storage, path, invalid_text) as reader:
        yield RenamedReader(reader, names) if names else reader


@contextmanager
def _opened(storage: Storage, path: str, invalid_text: InvalidText) -> Iterator[BaseFileReader]:
    if is_skeleton(path):
        with open_skeleton(storage, path, invalid_text) as file:
            yield SkeletonReader(file)
        return
    with storage.open_input(path) as source:
        yield BaseFileReader(source, path, invalid_text)


def read_footer(storage: Storage, path: str) -> Footer:
    """Return Hudi's entries in the footer of a base file."""
    with open_base(storage, path) as base:
        return base.footer()


def read_schema(storage: Storage, path: str) -> pa.Schema:
    """Return the columns of a base file, as returned by `BaseFileReader`."""
    with open_base(storage, path) as base:
        return base.schema()


def row_counts(storage: Storage, paths: pa.ChunkedArray) -> list[int]:
    """Return the numbers of rows of base files, from their footers."""
    return concurrent_map(lambda path: read_footer(storage, path).num_rows, paths.to_pylist())
