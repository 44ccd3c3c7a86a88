"""Tasks that write the merged log rows of file slices to Parquet files, which Spark's own reader reads."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.format.base_file.column_bounds import NanDetector
from pyhudi.format.base_file.parquet_footer_correction import TailBuffer, corrected_tail
from pyhudi.format.file_names import file_name_of
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.merge.log_changed_rows import write_changed_rows
from pyhudi.schema.logical_types.vectors import with_vector_bytes
from pyhudi.schema.required_fields import batch_with_required_fields_filled
from pyhudi.spark.read.merge_on_read.deletion_vectors import bitmap
from pyhudi.storage import Storage

NAME, WORDS = "file_name", "words"
REPLACED_SCHEMA = pa.schema([(NAME, pa.string()), (WORDS, pa.list_(pa.int64()))])
"""The replaced rows of a base file: its name, and a bitmap of the numbers of the rows."""
STATUS_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("rows_path", pa.string()),
        ("rows_size", pa.int64()),
        ("replaced_path", pa.string()),
        ("replaced_size", pa.int64()),
    ]
)
"""The files of a slice. Paths are null if the logs leave no rows, or replace none of the base file."""


@dataclass(frozen=True, slots=True)
class WriteMergedLogs:
    """Task that writes the merged log rows of a slice, and the numbers of the base rows that they replace.

    ``keys`` are the cache keys of slices by partition and file id.
    """

    context: SliceContext
    folder: Storage
    keys: Mapping[tuple[str, str], str]

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        key = self.keys[file_slice.partition, file_slice.file_id]
        # Concurrent attempts at a task write different files.
        name = f"{key}-{secrets.token_hex(4)}"
        with _ParquetSink(self.folder, f"{name}-rows.parquet") as rows:
            replaced = write_changed_rows(self.context, file_slice, rows.write)
        with _ParquetSink(self.folder, f"{name}-replaced.parquet") as numbers:
            if len(replaced):
                base_name = pa.array([file_name_of(file_slice.base_path or "")])
                numbers.write(pa.RecordBatch.from_arrays([base_name, bitmap(replaced)], schema=REPLACED_SCHEMA))
        status = [key, rows.written_path, rows.size, numbers.written_path, numbers.size]
        yield pa.RecordBatch.from_arrays(
            [pa.array([value], f.type) for value, f in zip(status, STATUS_SCHEMA, strict=True)], schema=STATUS_SCHEMA
        )


class _ParquetSink:
    """A Parquet file that is created with the first batch. Its footer is that of a base file, so that Spark finds NaN
    and -0.0 in it (`corrected_tail`)."""

    def __init__(self, folder: Storage, path: str) -> None:
        self._folder, self._path = folder, path
        self._stack = ExitStack()
        self._writer: pq.ParquetWriter | None = None
        self.size = 0
        """Bytes of the file, once it is closed."""

    @property
    def written_path(self) -> str | None:
        """Path of the file; None if it has no rows."""
        return None if self._writer is None else self._path

    def write(self, batch: pa.RecordBatch) -> None:
        batch = with_vector_bytes(batch)  # as in base files, which the same scan reads
        if self._writer is None:
            self._sink = self._stack.enter_context(self._folder.open_output(self._path))
            self._to_file, self._watch = TailBuffer(self._sink), NanDetector(batch.schema)
            # Read a few times at most, so codec and encodings are fast ones, and decimals are stored as integers.
            self._writer = pq.ParquetWriter(
                pa.PythonFile(self._to_file, mode="w"),
                batch.schema,
                compression="snappy",
                store_decimal_as_integer=True,
                store_schema=False,
            )
        self._watch.add(batch)
        self._writer.write_batch(batch_with_required_fields_filled(batch))

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None and error[0] is None:
            self._to_file.keep_back()
            self._writer.close()
            self._sink.write(corrected_tail(self._to_file.end, self._watch.nan_columns, self._watch.zeros))
            self.size = self._sink.tell()
        self._stack.__exit__(*error)  # type: ignore[arg-type]
