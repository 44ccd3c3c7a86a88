"""Texts with few distinct values, kept dictionary-encoded from the input to the files.

Moving and writing dictionary indexes costs a fraction of moving and writing the texts, and the files are the same.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE_ROWS, _MIN_ROWS = 8_192, 1_024
_MOST_VALUES = 256


def dictionary_columns(sample: pa.RecordBatch, names: Collection[str]) -> frozenset[str]:
    """Return those of the named columns that are texts with few distinct values in the first rows."""
    if sample.num_rows < _MIN_ROWS:
        return frozenset()
    head = sample.slice(0, _SAMPLE_ROWS)
    texts = [f.name for f in sample.schema if f.name in names and f.type == pa.string()]
    return frozenset(name for name in texts if pc.count_distinct(head.column(name)).as_py() <= _MOST_VALUES)


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
