"""Base file being written: its marker, name, meta columns and writer."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.format.base_file.base_file_footer import Footer
from pyhudi.format.base_file.base_file_writer import BaseFileSchema, BaseFileWriter, FileSummary
from pyhudi.format.base_file.column_bounds import unknown_columns
from pyhudi.format.base_file.orc import OrcFileWriter
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.format.base_file.row_group_copy.copied_row_groups import CopiedRowGroups
from pyhudi.format.file_names import base_file_name
from pyhudi.merge.base_file_readers import BaseFileReader
from pyhudi.metadata.writer.file_statistics import read_file_bounds
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from pyhudi.storage import join_path
from pyhudi.table.partition_metadata import write_partition_metadata
from pyhudi.table.view.file_group_keys import FileGroupId
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.base_file_copy import has_file_columns
from pyhudi.write.handles.marked_file import open_marked_file
from pyhudi.write.settings.write_context import TaskId, WriteContext

_KEYS = pa.schema([(RECORD_KEY, pa.string())])


class SequenceNumbers:
    """Generator of ``_hoodie_commit_seqno`` values: ``<instant>_<task partition>_<row number in the task>``."""

    def __init__(self, instant: str, task: TaskId) -> None:
        self._prefix = f"{instant}_{task.partition}_"
        self._next = 0

    def take(self, count: int) -> pa.Array:
        """Return the next ``count`` numbers."""
        numbers = pa.array(np.arange(self._next, self._next + count)).cast(pa.string())
        self._next += count
        return pc.binary_join_element_wise(self._prefix, numbers, "")


class RowLayout:
    """Conversion of incoming rows to rows of files with the columns of ``schema``, by default the table's own."""

    def __init__(
        self,
        context: WriteContext,
        task: TaskId,
        *,
        schema: pa.Schema | None = None,
        numbers: SequenceNumbers | None = None,
    ) -> None:
        self._context = context
        self._own = context.columns.schema if schema is None else schema
        self.numbers = numbers or SequenceNumbers(context.instant, task)
        names = (COMMIT_SEQNO, RECORD_KEY) if context.columns.populate_meta_fields else ()
        self._meta = [pa.field(name, pa.string()) for name in names]

    def lay_out(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with sequence number and record key first. Meta columns that are constant in a file are added
        by its writer. Dictionary-encoded texts are kept."""
        kinds = {f.name: f.type for f in rows.schema if pa.types.is_dictionary(f.type)}
        schema = self._own
        if kinds:
            schema = pa.schema(
                [f.with_type(kinds[f.name]) if f.name in kinds and f.type == pa.string() else f for f in schema]
            )
        data = conform(rows.select([n for n in rows.schema.names if n in schema.names]), schema)
        if not self._context.columns.populate_meta_fields:
            return data
        meta = [self.numbers.take(rows.num_rows), rows.column(RECORD_KEY)]
        return pa.RecordBatch.from_arrays([*meta, *data.columns], schema=pa.schema([*self._meta, *schema]))


@dataclass(frozen=True, slots=True)
class RowSource:
    """Source of the rows of a new base file.

    Attributes:
        replaced: Footer of the file that the new one replaces, whose bloom filter is continued.
        dictionary_columns: Text columns with few distinct values.
        copied: Rows of a new file group are copies, which keep their commit times.
    """

    replaced: Footer | None = None
    dictionary_columns: Collection[str] = ()
    copied: bool = False


class BaseFileOutput:
    """Base file being written. Its marker is created before the file; a file that is not closed never appears."""

    def __init__(
        self,
        context: WriteContext,
        task: TaskId,
        group: FileGroupId,
        io_type: IOType,
        source: RowSource | None = None,
    ) -> None:
        partition = group.partition
        source = source or RowSource()
        self.group = group
        self.name = base_file_name(group.file_id, task.token, context.instant, context.files.extension)
        self.path = join_path(partition, self.name)
        if io_type is IOType.CREATE:
            write_partition_metadata(
                context.storage, partition, context.instant, base_format=context.partition_metadata_format
            )
        self._context = context
        self._stack = ExitStack()
        try:
            sink = self._stack.enter_context(open_marked_file(context, partition, self.name, io_type))
            constants = self._constants(context, new=io_type is IOType.CREATE and not source.copied)
            self.writer = _open_writer(context, sink, constants, source)
        except BaseException as error:
            self._close_sink(error)
            raise

    def _constants(self, context: WriteContext, *, new: bool) -> dict[str, str | None]:
        if not context.columns.populate_meta_fields:
            return dict.fromkeys((COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME))
        constants: dict[str, str | None] = {PARTITION_PATH: self.group.partition, FILE_NAME: self.name}
        if new:
            constants[COMMIT_TIME] = context.instant
        return constants

    def write(self, rows: pa.RecordBatch, *, old_keys: bool = False) -> None:
        """Add rows in the form of `RowLayout` or a base file; ``old_keys``: the replaced file has all their keys."""
        self.writer.write(rows, old_keys=old_keys)

    def copyable(self, base: BaseFileReader) -> CopiedRowGroups | None:
        """Return the row groups of the replaced file; None if they have to be rewritten, because it stores other
        columns, or in another form, or because text may have to be replaced."""
        context = self._context
        if not isinstance(self.writer, ParquetFileWriter) or context.invalid_text is not InvalidText.FAIL:
            return None
        return self.writer.copyable(base.source) if has_file_columns(context, base.schema()) else None

    def copy_row_group(self, groups: CopiedRowGroups, base: BaseFileReader, number: int) -> None:
        """Add a row group of the replaced file as it is."""
        assert isinstance(self.writer, ParquetFileWriter)
        keys: Iterator[pa.RecordBatch] = iter(())
        if self._context.files.bloom is not None and self._context.columns.populate_meta_fields:
            keys = base.batches(_KEYS, row_groups=[number])
        self.writer.copy_row_group(groups, number, (batch.column(0) for batch in keys))

    def close(self) -> FileSummary:
        """Finish the file.

        Raises:
            TransactionError: The write has ended; the file has been deleted.
        """
        try:
            summary = self.writer.close()
        except BaseException as error:
            self._close_sink(error)
            raise
        self._stack.close()
        return self._with_all_bounds(summary)

    def _with_all_bounds(self, summary: FileSummary) -> FileSummary:
        """Complete the bounds that the footer lacks, because it omits long texts, from the file itself."""
        columns = self._context.columns.indexed
        if columns is None or summary.bounds is None or not unknown_columns(summary.bounds):
            return summary
        return replace(summary, bounds=read_file_bounds(self._context.storage, self.path, columns))

    def abort(self) -> None:
        """Discard the file."""
        self.writer.abort()
        self._close_sink(InterruptedError("the base file is discarded"))

    def _close_sink(self, error: BaseException) -> None:
        self._stack.__exit__(type(error), error, error.__traceback__)


def _open_writer(
    context: WriteContext,
    sink: object,
    constants: dict[str, str | None],
    source: RowSource,
) -> BaseFileWriter:
    files = context.files
    columns = context.columns
    bloom = files.bloom if columns.populate_meta_fields else None
    schema = BaseFileSchema(
        context.columns.file_schema,
        context.columns.avro_schema,
        constants,
        source.dictionary_columns,
        context.columns.indexed,
    )
    if files.extension == "orc":
        codec, stripe_size = files.orc_codec, files.orc_stripe_size
        return OrcFileWriter(sink, schema, codec=codec, stripe_size=stripe_size, bloom=bloom, replaced=source.replaced)
    return ParquetFileWriter(sink, schema, options=files.parquet, bloom=bloom, replaced=source.replaced)
