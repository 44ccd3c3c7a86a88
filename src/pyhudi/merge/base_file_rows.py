"""Reader of base files of any format: batches of the table's columns in row order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.base_file.filtered_parquet_file import FilteredFile
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.merge.batch_sizes import BatchLimits, pieces
from pyhudi.merge.skeleton_file import open_skeleton
from pyhudi.schema.evolution.schema_projection import FileNames, conform, file_columns, nested_columns, with_table_names
from pyhudi.schema.timestamp_units import with_actual_types
from pyhudi.storage import Storage
from pyhudi.table.bootstrap_index import is_skeleton


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on rows, and the top-level columns that it refers to."""

    expression: pc.Expression
    columns: tuple[str, ...]

    def and_(self, other: Condition | None) -> Condition:
        """Return the conjunction of both conditions."""
        if other is None:
            return self
        columns = tuple(dict.fromkeys((*self.columns, *other.columns)))
        return Condition(self.expression & other.expression, columns)


@dataclass(frozen=True, slots=True)
class BaseRead:
    """Read of the rows of a base file.

    Attributes:
        schema: Columns to return; those that the file lacks are null.
        names: Names in the file of columns that were renamed since.
        limits: Limits of the batches.
        condition: Only rows that meet it are returned; row groups whose statistics contradict it are not read.
        keys: Record keys of all rows that can meet the condition; a file whose footer excludes them is not read.
        invalid_text: Treatment of text that is not UTF-8.
    """

    schema: pa.Schema
    names: FileNames
    limits: BatchLimits
    condition: Condition | None
    keys: pa.StringArray | None = None
    invalid_text: InvalidText = InvalidText.FAIL

    @property
    def file_columns(self) -> dict[str, str]:
        """Names of the columns in the file, with those in the table."""
        return file_columns(self.schema, self.names)


def read_base(storage: Storage, path: str, read: BaseRead) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a base file.

    Args:
        storage: Storage of the table.
        path: Path of the file, relative to the root of the table.
        read: Columns, rows and batches to read.

    Yields:
        Batches with the columns of the read.

    Raises:
        NotFoundError: The file no longer exists.
        FormatError: The file is corrupt. The message names it.
    """
    schema, names, condition, invalid_text = read.schema, read.names, read.condition, read.invalid_text
    inside = read.file_columns
    if is_skeleton(path):
        for rows in _skeleton_rows(storage, path, read):
            yield rows if condition is None else rows.filter(condition.expression)
        return
    with as_corruption(storage.uri(path)), storage.open_input(path) as source:
        checked, is_labelled = False, False
        if path.endswith(".orc"):
            batches = orc.read_batches(source, list(inside), invalid_text=invalid_text)
        elif condition is None:
            file = parquet.open_file(source)
            is_labelled = not parquet.has_int96(file.metadata)
            size = read.limits.rows_of(parquet.row_bytes(file.metadata, inside))
            batches = parquet.read_batches(file, list(inside), batch_size=size, invalid_text=invalid_text)
        else:
            file = FilteredFile(source, invalid_text)
            if read.keys is not None and not file.may_have(read.keys):
                return
            batches, checked = _filtered(file, read, condition)
            is_labelled = not file.has_int96
        for batch in batches:
            for piece in pieces(batch, read.limits.num_bytes):
                named = with_table_names(piece, inside, names)
                rows = conform(with_actual_types(named, schema) if is_labelled else named, schema)
                yield rows if condition is None or checked else rows.filter(condition.expression)


def _skeleton_rows(storage: Storage, path: str, read: BaseRead) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a skeleton file and its source."""
    schema, inside = read.schema, read.file_columns
    with as_corruption(storage.uri(path)), open_skeleton(storage, path, read.invalid_text) as file:
        size = read.limits.rows_of(file.row_bytes(schema.names))
        stored = pa.schema([schema.field(name).with_name(file_name) for file_name, name in inside.items()])
        for batch in file.batches(stored, size):
            for piece in pieces(batch, read.limits.num_bytes):
                yield conform(with_table_names(piece, inside, read.names), schema)


def _filtered(file: FilteredFile, read: BaseRead, condition: Condition) -> tuple[Iterator[pa.RecordBatch], bool]:
    """Return batches of a Parquet file, and whether the condition has been applied: it is if the file has its columns
    with the same names and types."""
    schema, inside = read.schema, read.file_columns
    columns = [name for name in inside if name in file.schema.names]
    fits = nested_columns(read.names).isdisjoint(condition.columns) and all(
        inside.get(name) == name and name in file.comparable and file.schema.field(name).type == schema.field(name).type
        for name in condition.columns
    )
    expression = condition.expression if fits else None
    return file.batches(columns, expression, read.limits.rows, condition.columns if fits else ()), fits
