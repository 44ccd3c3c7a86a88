"""Base rows merged with later versions, against the rules written as loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.config.enums import PartialUpdateMode
from pyhudi.merge.base_file_merge import merge_base
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions
from tests.properties import examples
from tests.unit.merge.model import ModelRules, Version
from tests.unit.merge.model import merge_base as model_merge
from tests.unit.merge.modes.test_merge_by_mode import COLUMNS, natural, versions

SCHEMA = pa.schema(
    [("k", pa.int64()), ("o", pa.int64()), ("a", pa.int64()), ("b", pa.int64()), ("n", pa.list_(pa.int64()))]
)
base_rows = st.builds(
    Version,
    values=st.fixed_dictionaries({c: st.one_of(st.none(), st.integers(0, 99)) for c in COLUMNS}),
    ordering=st.integers(0, 4),
)
bases = st.lists(st.tuples(base_rows, st.one_of(st.none(), versions, versions, natural)), max_size=12)


def batch(rows: list[tuple[int, Version]]) -> pa.RecordBatch:
    """Versions as rows, the number in front as ``k``."""
    columns: dict[str, list[Any]] = {
        "k": [k for k, _ in rows],
        "o": [v.ordering for _, v in rows],
        **{c: [v.values[c] for _, v in rows] for c in COLUMNS},
        "n": [[v.values["a"]] for _, v in rows],
    }
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


def updates_of(history: list[tuple[Version, Version | None]], partial: bool) -> tuple[np.ndarray, RecordVersions]:
    """The later versions of a history, with the rows they are of."""
    later = [(i, v) for i, (_, v) in enumerate(history) if v is not None]
    rows = batch(later)
    return np.array([i for i, _ in later], dtype=np.int64), RecordVersions(
        rows,
        np.array([v.delete for _, v in later], dtype=bool),
        np.array([v.natural for _, v in later], dtype=bool),
        (rows.column("o"),),
        {c: np.array([c not in v.absent for _, v in later], dtype=bool) for c in COLUMNS} if partial else {},
    )


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("by_ordering", [False, True])
@pytest.mark.parametrize("ignore_nulls", [False, True])
@settings(max_examples=examples(200), deadline=None)
@given(history=bases)
def test_merges_like_row_by_row(
    history: list[tuple[Version, Version | None]], by_ordering: bool, ignore_nulls: bool, partial: bool
) -> None:
    if not partial:
        history = [(b, v and Version(v.values, v.ordering, v.delete)) for b, v in history]
    mode = PartialUpdateMode.IGNORE_DEFAULTS if ignore_nulls else None
    rules = MergeRules(ordering_fields=("o",) if by_ordering else (), partial=mode)
    base = batch([(i, b) for i, (b, _) in enumerate(history)])
    merged = merge_base(base, *updates_of(history, partial), rules)
    got = {row["k"]: (row["o"], row["a"], row["b"]) for row in merged.rows.select(["k", "o", "a", "b"]).to_pylist()}
    model = ModelRules(by_ordering, None if ignore_nulls else ...)
    expected = {}
    for i, (old, new) in enumerate(history):
        row = old if new is None else model_merge(old, new, model)
        if row is not None:
            expected[i] = (row.ordering, row.values["a"], row.values["b"])
    assert got == expected
    assert merged.rows.schema == SCHEMA
    assert merged.deleted.sum() == len(history) - len(expected)


def test_a_row_that_was_only_filled_is_stamped() -> None:
    base = batch([(1, Version({"a": None, "b": 2}, 5)), (2, Version({"a": 1, "b": 2}, 5))])
    updates = updates_of([(Version(), Version({"a": 7, "b": 8}, 1)), (Version(), Version({"a": 7, "b": 8}, 1))], False)
    rules = MergeRules(("o",), PartialUpdateMode.IGNORE_DEFAULTS)
    merged = merge_base(base, *updates, rules, stamp=("k",))
    assert merged.changed.tolist() == [True, False]
    assert merged.rows.column("k").to_pylist() == [0, 2]
    assert merged.rows.column("a").to_pylist() == [7, 1]


def test_unavailable_values_stay() -> None:
    schema = pa.schema([("o", pa.int64()), ("t", pa.string()), ("r", pa.binary()), ("i", pa.int64())])
    base = pa.RecordBatch.from_pydict(
        {"o": [1, 9], "t": ["old", "?"], "r": [b"old", b"old"], "i": [1, None]}, schema=schema
    )
    rows = pa.RecordBatch.from_pydict(
        {"o": [2, 2], "t": ["?", "new"], "r": [b"?", b"?"], "i": [None, 3]}, schema=schema
    )
    none = np.zeros(2, dtype=bool)
    rules = MergeRules(("o",), PartialUpdateMode.FILL_UNAVAILABLE, unavailable="?")
    merged = merge_base(base, np.arange(2), RecordVersions(rows, none, none, (rows.column("o"),)), rules)
    assert merged.rows.to_pylist() == [
        {"o": 2, "t": "old", "r": b"old", "i": None},
        {"o": 9, "t": "new", "r": b"old", "i": None},
    ]
