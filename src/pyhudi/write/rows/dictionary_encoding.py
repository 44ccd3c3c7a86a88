"""Texts with few distinct values, kept dictionary-encoded from the input to the files.

Moving and writing dictionary indexes costs a fraction of moving and writing the texts, and the files are the same.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.base_file.parquet_writer import UNIQUE
from pyhudi.merge.base_file_readers import BaseFileReader
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.name_resolution import top_column

_SAMPLE_ROWS, _MIN_ROWS = 8_192, 1_024
_MAX_VALUES = 256
_TEXTS = pa.dictionary(pa.int32(), pa.string())


def kept_as_dictionaries(
    base: BaseFileReader, columns: pa.Schema, rules: MergeRules, keys: Collection[str] = ()
) -> frozenset[str]:
    """Return the columns of a base file whose values a merge only moves, and which have few distinct ones. Those with
    unique values are as small only in row groups of few rows.

    Args:
        base: The base file.
        columns: Columns that the merge reads.
        rules: How it selects between versions.
        keys: Record key fields by which it finds rows.
    """
    if rules.combines_versions:
        return frozenset()
    texts = {f.name for f in columns if f.type == pa.string()}
    compared = {top_column(path, columns.names) for path in (*rules.ordering_fields, *keys)}
    return (base.repeating() & texts) - compared - UNIQUE


def with_dictionaries(columns: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return the schema in which the named text columns are dictionary-encoded."""
    return pa.schema([f.with_type(_TEXTS) if f.name in names else f for f in columns])


def dictionary_columns(sample: pa.RecordBatch, names: Collection[str]) -> frozenset[str]:
    """Return those of the named columns that are texts with few distinct values in the first rows."""
    if sample.num_rows < _MIN_ROWS:
        return frozenset()
    head = sample.slice(0, _SAMPLE_ROWS)
    texts = [f.name for f in sample.schema if f.name in names and f.type == pa.string()]
    return frozenset(name for name in texts if pc.count_distinct(head.column(name)).as_py() <= _MAX_VALUES)


def as_dictionaries(rows: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Return the rows with these columns dictionary-encoded."""
    if not names:
        return rows
    columns = [
        column.dictionary_encode() if name in names and column.type == pa.string() else column
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def as_texts(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows without dictionaries."""
    if not any(pa.types.is_dictionary(kind) for kind in rows.schema.types):
        return rows
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
