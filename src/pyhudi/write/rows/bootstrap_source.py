"""Source files of a bootstrap: verified against their listing, with columns checked and rows converted to those of the
table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.config.enums import InvalidText
from pyhudi.errors import NotFoundError, SchemaError, SchemaMismatchError, StorageError
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.keygen.partition_value_extractor import decode_partition_paths
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.table_types import to_table_types
from pyhudi.storage import Storage, open_sibling
from pyhudi.table.bootstrap_index import SourceFile
from pyhudi.table.config.table_config import TableConfig

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads source files for a table with the columns of ``schema``. Can be pickled, so that it can be sent to tasks.

    ``all_columns``: files must not have columns that the table lacks. ``invalid_text``: treatment of text that is not
    valid UTF-8.
    """

    storage: Storage
    config: TableConfig
    schema: pa.Schema
    all_columns: bool
    invalid_text: InvalidText

    @contextmanager
    def open(self, source: SourceFile) -> Iterator[Any]:
        """Open a file, and check that it is unchanged and matches the table.

        Raises:
            SchemaMismatchError: It has columns that do not match the table.
            StorageError: It no longer exists, or has changed.
            FormatError: It is corrupt.
        """
        folder, _, name = source.uri.rpartition("/")
        try:
            file = open_sibling(self.storage, folder).open_input(name)
        except NotFoundError as e:
            raise StorageError(f"{source.uri} no longer exists; bootstrap again") from e
        with as_corruption(f"cannot bootstrap {source.uri}"), file:
            if source.size is not None and file.size() != source.size:
                raise StorageError(
                    f"{source.uri} has changed since it was listed: its size is {file.size():,} bytes and was "
                    f"{source.size:,}; bootstrap again when nobody writes to the source"
                )
            self._check_columns(source, file)
            yield file

    def batches(self, source: SourceFile, file: Any, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Return the rows of an open file, with the requested columns that it has."""
        if source.uri.endswith(".orc"):
            return orc.read_batches(file, names, invalid_text=self.invalid_text)
        return parquet.read_batches(file, names, batch_size=BATCH_ROWS, invalid_text=self.invalid_text)

    def rows(self, source: SourceFile) -> Iterator[pa.RecordBatch]:
        """Return the rows of a file with all columns of the table, including those in its path. Raises the errors of
        `open`."""
        decoded = decode_partition_paths(self.config, self.schema, [source.partition])
        with self.open(source) as file:
            for batch in self.batches(source, file, self.schema.names):
                for field in self.schema:
                    if field.name not in batch.schema.names and field.name in decoded.column_names:
                        column = pa.repeat(pa.scalar(decoded[field.name][0].as_py(), field.type), batch.num_rows)
                        batch = batch.append_column(field, column)
                yield conform(batch, self.schema)

    def _check_columns(self, source: SourceFile, file: Any) -> None:
        stored = (orc.read_footer(file) if source.uri.endswith(".orc") else parquet.read_footer(file)).schema
        data_columns = pa.schema([field for field in stored if not is_meta_column(field.name)])
        more = [name for name in data_columns.names if name not in self.schema.names]
        if more and self.all_columns:
            raise SchemaMismatchError(
                f"{source.uri} has the column {more[0]!r}, which the first file of the source does not have; pass "
                "an empty DataFrame with all columns"
            )
        table_columns = pa.schema([field for field in self.schema if field.name in data_columns.names])
        try:
            in_table = to_table_types(pa.schema([data_columns.field(name) for name in table_columns.names]))
            conform(
                pa.RecordBatch.from_arrays([pa.array([], f.type) for f in in_table], schema=in_table), table_columns
            )
        except (SchemaError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
            raise SchemaMismatchError(f"{source.uri} has columns with other types than the table: {e}") from e
