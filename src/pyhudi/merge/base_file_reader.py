"""Reader of base files of any format: batches of the table's columns in row order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.corruption import as_corruption
from pyhudi.merge.batch_sizes import BATCH_BYTES, pieces, rows_within
from pyhudi.merge.skeleton_file import open_skeleton
from pyhudi.schema.column_names import FileNames, file_columns, nested_columns, with_table_names
from pyhudi.schema.schema_evolution import conform
from pyhudi.schema.timestamp_units import with_actual_types
from pyhudi.storage import Storage
from pyhudi.table.bootstrap.bootstrap_index import is_skeleton


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


def read_base(
    storage: Storage,
    path: str,
    schema: pa.Schema,
    names: FileNames,
    batch_rows: int,
    condition: Condition | None = None,
    *,
    keys: pa.StringArray | None = None,
    batch_bytes: int = BATCH_BYTES,
    row_bytes: float = 0.0,
    invalid_text: InvalidText = InvalidText.FAIL,
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a base file with exactly the columns of ``schema``; missing columns are null.

    Batches have up to ``batch_rows`` rows with a total of ``batch_bytes``. The size of rows is determined from the file
    (which stores repeated values once) and ``row_bytes``, if known.

    With a ``condition`` only rows that meet it come; row groups whose statistics speak against it are not read, nor is
    a file whose footer says that it has none of the record ``keys``, the only ones that can meet it.
    ``invalid_text``: what becomes of text that is not UTF-8.

    Raises:
        NotFoundError: The file no longer exists.
        FormatError: The file is corrupt. The message names it.
    """
    inside = file_columns(schema, names)
    if is_skeleton(path):
        limits = (batch_rows, batch_bytes, row_bytes)
        for rows in _of_skeleton(storage, path, schema, inside, names, limits, invalid_text):
            yield rows if condition is None else rows.filter(condition.expression)
        return
    with as_corruption(storage.uri(path)), storage.open_input(path) as source:
        checked, is_labelled = False, False
        if path.endswith(".orc"):
            batches = orc.read_batches(source, list(inside), invalid_text=invalid_text)
        elif condition is None:
            file = parquet.open_file(source)
            is_labelled = not parquet.has_int96(file.metadata)
            width = max(parquet.row_bytes(file.metadata, inside), row_bytes)
            size = rows_within(batch_bytes, width, batch_rows)
            batches = parquet.read_batches(file, list(inside), batch_size=size, invalid_text=invalid_text)
        else:
            file = parquet.FilteredFile(source, invalid_text)
            if keys is not None and not file.may_have(keys):
                return
            batches, checked = _filtered(file, schema, inside, names, batch_rows, condition)
            is_labelled = not file.has_int96
        for batch in batches:
            for piece in pieces(batch, batch_bytes):
                named = with_table_names(piece, inside, names)
                rows = conform(with_actual_types(named, schema) if is_labelled else named, schema)
                yield rows if condition is None or checked else rows.filter(condition.expression)


def _of_skeleton(
    storage: Storage,
    path: str,
    schema: pa.Schema,
    inside: Mapping[str, str],
    names: FileNames,
    limits: tuple[int, int, float],
    invalid_text: InvalidText,
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a skeleton file and its source; ``limits`` as in `read_base`."""
    batch_rows, batch_bytes, row_bytes = limits
    with as_corruption(storage.uri(path)), open_skeleton(storage, path, invalid_text) as file:
        size = rows_within(batch_bytes, max(file.row_bytes(schema.names), row_bytes), batch_rows)
        stored = pa.schema([schema.field(name).with_name(there) for there, name in inside.items()])
        for batch in file.batches(stored, size):
            for piece in pieces(batch, batch_bytes):
                yield conform(with_table_names(piece, inside, names), schema)


def _filtered(
    file: parquet.FilteredFile,
    schema: pa.Schema,
    inside: Mapping[str, str],
    names: FileNames,
    batch_rows: int,
    condition: Condition,
) -> tuple[Iterator[pa.RecordBatch], bool]:
    """Return batches of a Parquet file, and whether the condition has been applied: it is if the file has its columns
    with the same names and types."""
    columns = [name for name in inside if name in file.schema.names]
    fits = nested_columns(names).isdisjoint(condition.columns) and all(
        inside.get(name) == name and name in file.comparable and file.schema.field(name).type == schema.field(name).type
        for name in condition.columns
    )
    expression = condition.expression if fits else None
    return file.batches(columns, expression, batch_rows, condition.columns if fits else ()), fits
