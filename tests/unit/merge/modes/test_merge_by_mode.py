"""Folding versions, against the rules written as loops."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.merge.modes.merge_by_mode import Versions, dense, fold
from pyhudi.merge.ordering_values import ordering_ranks
from tests.properties import examples
from tests.unit.merge.model import ModelRules, Version
from tests.unit.merge.model import fold as model_fold

COLUMNS = ("a", "b")


def _version(values: dict[str, int | None], ordering: int, delete: bool, absent: frozenset[str]) -> Version:
    return Version({c: None if c in absent else v for c, v in values.items()}, ordering, delete, absent)


versions = st.builds(
    _version,
    values=st.fixed_dictionaries({c: st.one_of(st.none(), st.integers(0, 99)) for c in COLUMNS}),
    ordering=st.integers(0, 4),
    delete=st.booleans(),
    absent=st.frozensets(st.sampled_from(COLUMNS), max_size=2),
)
natural = st.just(Version(dict.fromkeys(COLUMNS), None, True))
histories = st.lists(st.tuples(st.integers(0, 3), st.one_of(versions, versions, versions, natural)), max_size=24)


def _run(history: list[tuple[int, Version]], rules: ModelRules, partial: bool) -> dict[int, Version]:
    """Fold the history with the kernel and say what came out, as versions."""
    record, count = dense(np.array([key for key, _ in history], dtype=np.int64))
    seen = [version for _, version in history]
    ordering = pa.array([v.ordering for v in seen], pa.int64())

    def has(column: str) -> np.ndarray:
        there = [column not in v.absent if partial else True for v in seen]
        value = [v.values[column] != rules.unchanged for v in seen]
        return np.array(there) & np.array(value)

    masks = {c: has(c) for c in COLUMNS}
    folded = fold(
        Versions(
            record,
            np.array([v.delete for v in seen], dtype=bool),
            np.array([v.natural for v in seen], dtype=bool),
            (lambda rows: ordering_ranks([ordering.take(pa.array(rows))], len(rows))) if rules.by_ordering else None,
            {c: (lambda rows, c=c: masks[c][rows]) for c in COLUMNS} if partial or rules.unchanged is not ... else None,
        )
    )
    assert len(folded.winner) == count
    result = {}
    for place, row in enumerate(folded.winner):
        source = {c: seen[folded.sources[c][place]] if c in folded.sources else seen[row] for c in COLUMNS}
        absent = frozenset(c for c in COLUMNS if partial and c in source[c].absent) - (
            set(COLUMNS) if seen[row].delete else set()
        )
        values = {c: source[c].values[c] for c in COLUMNS}
        result[history[row][0]] = Version(values, seen[row].ordering, seen[row].delete, absent)
    return result


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("by_ordering", [False, True])
@pytest.mark.parametrize("unchanged", [..., None])
@settings(max_examples=examples(100), deadline=None)
@given(history=histories)
def test_folds_like_one_after_the_other(
    history: list[tuple[int, Version]], by_ordering: bool, unchanged: object, partial: bool
) -> None:
    rules = ModelRules(by_ordering, unchanged)
    groups: dict[int, list[Version]] = defaultdict(list)
    for key, version in history:
        groups[key].append(version if partial else Version(version.values, version.ordering, version.delete))
    if not history:
        return
    got = _run(history, rules, partial)
    for key, group in groups.items():
        expected = model_fold(group, rules)
        assert (got[key].delete, got[key].natural) == (expected.delete, expected.natural)
        if expected.delete:
            assert got[key].natural or got[key].ordering == expected.ordering or not by_ordering
        else:
            visible = [c for c in COLUMNS if c not in expected.absent]
            assert {c: got[key].values[c] for c in visible} == {c: expected.values[c] for c in visible}
            assert got[key].ordering == expected.ordering
            if unchanged is ...:  # else a value that stands for "unchanged" and none at all are the same
                assert got[key].absent == (expected.absent if partial else frozenset())


def _merged_in_batch(older: Version, newer: Version) -> Version:
    """The method preCombine of PartialUpdateAvroPayload."""
    assert older.ordering is not None
    assert newer.ordering is not None
    first, second = (older, newer) if older.ordering > newer.ordering else (newer, older)
    if first.delete:
        return newer
    values = {c: second.values[c] if value is None else value for c, value in first.values.items()}
    return Version(values, first.ordering, False)


@settings(max_examples=examples(200), deadline=None)
@given(history=st.lists(st.tuples(st.integers(0, 3), versions), min_size=1, max_size=24))
def test_rows_of_a_batch_where_deletes_are_replaced(history: list[tuple[int, Version]]) -> None:
    seen = [Version(v.values, v.ordering, v.delete) for _, v in history]
    record, count = dense(np.array([key for key, _ in history], dtype=np.int64))
    ordering = pa.array([v.ordering for v in seen], pa.int64())
    masks = {c: np.array([v.values[c] is not None for v in seen]) for c in COLUMNS}
    folded = fold(
        Versions(
            record,
            np.array([v.delete for v in seen], dtype=bool),
            np.zeros(len(seen), dtype=bool),
            lambda rows: ordering_ranks([ordering.take(pa.array(rows))], len(rows)),
            {c: (lambda rows, c=c: masks[c][rows]) for c in COLUMNS},
            replaces_deletes=True,
        )
    )
    for number in range(count):
        expected = reduce(_merged_in_batch, (v for v, of in zip(seen, record, strict=True) if of == number))
        winner = seen[folded.winner[number]]
        assert (winner.delete, winner.ordering) == (expected.delete, expected.ordering)
        sources = {c: folded.sources.get(c, folded.winner)[number] for c in COLUMNS}
        assert {c: seen[row].values[c] for c, row in sources.items()} == expected.values


def test_nothing_to_fold() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert len(fold(Versions(none, none.astype(bool), none.astype(bool))).winner) == 0


def test_dense_numbers_count_from_the_first_seen() -> None:
    codes, count = dense(np.array([7, 3, 7, 9]))
    assert codes.tolist() == [0, 1, 0, 2]
    assert count == 3
