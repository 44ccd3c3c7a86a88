"""Texts with few distinct values travel as dictionaries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa
import pytest

from pyhudi.config.enums import PartialUpdateMode
from pyhudi.merge.base_file_readers import BaseFileReader
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.write.rows.dictionary_encoding import (
    as_dictionaries,
    as_texts,
    dictionary_columns,
    kept_as_dictionaries,
    with_dictionaries,
)


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


@dataclass
class Base:
    """A base file whose texts all have few distinct values."""

    columns: pa.Schema

    def repeating(self) -> frozenset[str]:
        return frozenset(self.columns.names)


@pytest.mark.parametrize(
    ("ordering", "keys", "kept"),
    [
        ((), (), {"a", "a.b", "c"}),
        (("a",), (), {"a.b", "c"}),
        (("a.b",), (), {"a", "c"}),
        (("c.d",), ("a",), {"a.b"}),
        ((), ("a.b", "c"), {"a"}),
    ],
)
def test_columns_that_a_merge_compares_are_no_dictionaries(
    ordering: tuple[str, ...], keys: tuple[str, ...], kept: set[str]
) -> None:
    columns = pa.schema([("a", pa.string()), ("a.b", pa.string()), ("c", pa.string()), ("n", pa.int64())])
    rules = MergeRules(ordering)
    assert kept_as_dictionaries(cast(BaseFileReader, Base(columns)), columns, rules, keys) == kept
    encoded = with_dictionaries(columns, kept)
    assert {f.name for f in encoded if pa.types.is_dictionary(f.type)} == kept
    partial = replace(rules, partial=PartialUpdateMode.IGNORE_DEFAULTS)
    assert not kept_as_dictionaries(cast(BaseFileReader, Base(columns)), columns, partial, keys)
