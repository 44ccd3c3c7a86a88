"""Texts with few distinct values travel as dictionaries."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.write.rows.dictionary_encoding import as_dictionaries, as_texts, dictionary_columns


def test_only_texts_that_repeat_are_chosen() -> None:
    n = 5_000
    rows = pa.record_batch(
        {
            "few": pa.array([f"v{i % 7}" for i in range(n)]),
            "many": pa.array([f"v{i}" for i in range(n)]),
            "nulls": pa.nulls(n, pa.string()),
            "number": pa.array([i % 2 for i in range(n)]),
            "other": pa.array(["x"] * n),
        }
    )
    assert dictionary_columns(rows, ["few", "many", "nulls", "number"]) == {"few", "nulls"}
    assert dictionary_columns(rows.slice(0, 100), ["few"]) == frozenset(), "too few rows to tell"
    encoded = as_dictionaries(rows, {"few", "nulls"})
    assert [pa.types.is_dictionary(kind) for kind in encoded.schema.types] == [True, False, True, False, False]
    assert as_texts(encoded).equals(rows)
    assert as_texts(rows) is rows
