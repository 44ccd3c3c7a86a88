"""Source files of a bootstrap: opened as they were listed, their columns checked, their rows as the table has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.config.enums import InvalidText
from pyhudi.errors import NotFoundError, SchemaError, SchemaMismatchError, StorageError
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.corruption import as_corruption
from pyhudi.keygen import decode_partition_paths
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.schema_evolution import conform
from pyhudi.schema.table_types import table_schema
from pyhudi.storage import Storage, open_sibling
from pyhudi.table.bootstrap.bootstrap_index import SourceFile
from pyhudi.table.config.table_config import TableConfig

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads source files for a table with the columns of ``schema``; pickles, so that it can go to tasks.

    ``all_columns``: files must not have columns that the table lacks. ``invalid_text``: what becomes of text that is
    not UTF-8.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    all_columns: bool = True
    invalid_text: InvalidText = InvalidText.FAIL

    @contextmanager
    def open(self, source: SourceFile) -> Iterator[Any]:
        """Open a file, and check that it is as it was listed and fits the table.

        Raises:
            SchemaMismatchError: it has columns that cannot be the table's.
            StorageError: it is gone, or has changed.
            FormatError: it is damaged.
        """
        folder, _, name = source.uri.rpartition("/")
        try:
            file = open_sibling(self.storage, folder).open_input(name)
        except NotFoundError as e:
            raise StorageError(f"{source.uri} is gone since it was listed; bootstrap again") from e
        with as_corruption(f"{source.uri} cannot be bootstrapped"), file:
            if source.size is not None and file.size() != source.size:
                raise StorageError(
                    f"{source.uri} has changed since it was listed: it has {file.size():,} bytes and had "
                    f"{source.size:,}; bootstrap again when nobody writes to the source"
                )
            self._check_columns(source, file)
            yield file

    def batches(self, source: SourceFile, file: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of an open file, with those columns that it has."""
        if source.uri.endswith(".orc"):
            return orc.read_batches(file, names, invalid_text=self.invalid_text)
        return parquet.read_batches(file, names, batch_size=BATCH_ROWS, invalid_text=self.invalid_text)

    def rows(self, source: SourceFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file with all columns of the table; those that only its folder tells come from there. Raises
        what `open` does."""
        told = decode_partition_paths(self.config, self.schema, [source.partition])
        with self.open(source) as file:
            for batch in self.batches(source, file, self.schema.names):
                for field in self.schema:
                    if field.name not in batch.schema.names and field.name in told.column_names:
                        column = pa.repeat(pa.scalar(told[field.name][0].as_py(), field.type), batch.num_rows)
                        batch = batch.append_column(field, column)
                yield conform(batch, self.schema)

    def _check_columns(self, source: SourceFile, file: Any) -> None:
        stored = (orc.read_footer(file) if source.uri.endswith(".orc") else parquet.read_footer(file)).schema
        own = pa.schema([field for field in stored if not is_meta_column(field.name)])
        more = [name for name in own.names if name not in self.schema.names]
        if more and self.all_columns:
            raise SchemaMismatchError(
                f"{source.uri} has the column {more[0]!r}, which the first file of the source does not have; name all "
                "columns by those of an empty DataFrame"
            )
        wanted = pa.schema([field for field in self.schema if field.name in own.names])
        try:
            held = table_schema(pa.schema([own.field(name) for name in wanted.names]))
            conform(pa.RecordBatch.from_arrays([pa.array([], f.type) for f in held], schema=held), wanted)
        except (SchemaError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
            raise SchemaMismatchError(f"{source.uri} has columns of other types than the table: {e}") from e
