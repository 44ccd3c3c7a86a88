"""Writing of skeleton files: base files of a metadata-only bootstrap, with the meta columns of a source file's rows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pyhudi.errors import RecordKeyError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.keygen.record_key_formatter import check_texts_of_floats, record_keys, without_keys
from pyhudi.merge.skeleton_file import open_skeleton
from pyhudi.metadata.writer.file_statistics import skeleton_bounds
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.evolution.schema_projection import conform
from pyhudi.schema.meta_columns import META_SCHEMA
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.table.bootstrap_index import SourceFile
from pyhudi.table.view.file_group_keys import FileGroupId
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.markers import IOType
from pyhudi.write.handles.base_file_output import BaseFileOutput, RowLayout
from pyhudi.write.rows.bootstrap_source import SourceReader
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.write_status import RowCounts, file_stat

_AVRO = json.dumps(
    {"type": "record", "name": "HoodieRecordKey", "doc": "", "fields": json.loads(to_avro(META_SCHEMA, "t"))["fields"]},
    separators=(",", ":"),
)
"""Columns of skeleton files, as in the footers of Apache Hudi."""


@dataclass(frozen=True, slots=True)
class SkeletonHandle:
    """Writes the skeleton files of a task.

    Of a source file only the footer and the columns of the record key are read, and other columns if the metadata table
    needs their bounds and the footer lacks them. ``context`` is that of complete base files; ``keys`` specifies record
    keys. ``attempt`` is part of file names, because all attempts at a bootstrap have its instant and file ids.
    """

    context: WriteContext
    keys: KeySpec
    reader: SourceReader
    attempt: int

    def write(self, source: SourceFile, task: TaskId) -> WriteStat:
        """Write the skeleton file of one source file.

        Raises:
            SchemaMismatchError: The source has columns that do not match the table.
            RecordKeyError: A record key field is missing, or null in a row.
            StorageError: The source no longer exists, or has changed since it was listed.
            FormatError: The source is corrupt.
        """
        started = time.monotonic()
        task = replace(task, attempt=(self.attempt ^ task.attempt) & 0x7FFFFFFF)
        columns = replace(self.context.columns, schema=pa.schema([]), avro_schema=_AVRO, indexed=None)
        context = replace(self.context, columns=columns)
        layout = RowLayout(context, task)
        group = FileGroupId(source.partition, source.file_id)
        with self.reader.open(source) as file:
            output = BaseFileOutput(context, task, group, IOType.CREATE)
            try:
                for keys in self._keys(source, file):
                    output.write(layout.lay_out(keys))
            except BaseException:
                output.abort()
                raise
            summary = output.close()
        if self.context.columns.indexed is not None:
            with open_skeleton(context.storage, output.path, source=source) as skeleton:
                summary = replace(summary, bounds=skeleton_bounds(skeleton, self.context.columns.indexed))
        return file_stat(group, output.path, summary, RowCounts(inserts=summary.num_rows), started=started)

    def _keys(self, source: SourceFile, file: Any) -> Iterator[pa.RecordBatch]:
        """Yield the record keys of the rows, batch by batch. Fields have the types of the table, as in later writes:
        texts of other types differ, such as 2 and 2.0."""
        schema = self.context.columns.schema
        needed = {top_column(name, schema.names) for name in self.keys.record_fields}
        for stored in self.reader.batches(source, file, [name for name in schema.names if name in needed]):
            batch = conform(stored, pa.schema([schema.field(name) for name in stored.schema.names]))
            check_texts_of_floats(batch, self.keys.record_fields)
            missing = without_keys(batch, self.keys)
            if missing:
                raise RecordKeyError(
                    f"{missing:,} of {batch.num_rows:,} rows of {source.uri} have no record key: "
                    f"{', '.join(self.keys.record_fields)} is null or empty"
                )
            keys = record_keys(batch, self.keys)
            yield pa.RecordBatch.from_arrays([keys], names=[RECORD_KEY])
