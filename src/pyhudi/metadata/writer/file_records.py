"""Conversion of a table's files to records of its metadata table: statistics of columns, bloom filters."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.format.file_names import LOG
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.records.record_factory import bloom_records, column_stats_records
from pyhudi.metadata.writer.file_statistics import blooms_of_files, bounds_of_files
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig


@dataclass(frozen=True, slots=True)
class FileRecords:
    """Conversion of files to records of the metadata table.

    Attributes:
        storage: Storage of the table.
        version: Version of the table.
        columns: Columns with statistics.
        logs_have_statistics: Log files have statistics of their own (`logs_have_statistics`).
        newest: Instant that is recorded for bloom filters.
    """

    storage: Storage
    version: int
    columns: pa.Schema
    logs_have_statistics: bool
    newest: str

    @classmethod
    def from_table(cls, storage: Storage, config: TableConfig, columns: pa.Schema, newest: str) -> FileRecords:
        """Return the conversion for files of a table."""
        return cls(storage, config.version, columns, logs_have_statistics(config), newest)

    def bounds(self, files: pa.Table) -> pa.StructArray:
        """Return the bounds of files, row by row; read on threads."""
        return bounds_of_files(self.storage, files, self.columns)

    def column_stats(self, files: pa.Table, bounds: pa.StructArray) -> RecordChanges:
        """Return the records of files with these bounds."""
        if not self.logs_have_statistics:
            other = contiguous(pc.not_equal(files["kind"], LOG))
            files, bounds = files.filter(other), bounds.filter(other)
        return column_stats_records(files, bounds, self.version)

    def blooms(self, files: pa.Table) -> RecordChanges:
        """Return the records of base files that have a bloom filter, in the order of the files; read on threads."""
        filters = blooms_of_files(self.storage, files["path"].to_pylist()).combine_chunks()
        return bloom_records(files, contiguous(filters["text"]), contiguous(filters["type"]), self.newest, self.version)


def logs_have_statistics(config: TableConfig) -> bool:
    """Return True if log files have statistics of their own.

    Apache Hudi evaluates a filter by file: if a row combines values of several files, none of these files may satisfy
    all conditions. Files without statistics are always read.
    """
    return not config.merging.combines_versions
