"""What the tester of random sequences consists of, without tables: minimization, drawn plans, and the model."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from tests.interop.harness.scenarios import LAYOUTS
from tests.random_sequences.minimizer import minimal
from tests.random_sequences.model import TableModel
from tests.random_sequences.rows import IS_DELETED, Row, new_row
from tests.random_sequences.table_kinds import (
    COMMIT_TIME,
    CUSTOM,
    EVENT_TIME,
    NON_DEFAULTS,
    PARTIAL,
    TableKind,
    draw_kind,
)

ONE_PARTITION_COLUMN = next(layout for layout in LAYOUTS if layout.name == "one")


@pytest.mark.parametrize("needed", [(), (3,), (1, 9), (4, 5, 6), (1, 2, 3, 4, 5, 6, 7, 8, 9)])
def test_the_steps_that_a_failure_needs(needed: tuple[int, ...]):
    def fails(steps: Sequence[int]) -> bool:
        return set(needed) <= set(steps)

    assert minimal(range(10), fails) == (0, *needed)


def test_kinds_are_drawn_by_their_seed_alone():
    assert [draw_kind(Random(seed)) for seed in range(50)] == [draw_kind(Random(seed)) for seed in range(50)]
    kinds = [draw_kind(Random(seed)) for seed in range(300)]
    assert {kind.version for kind in kinds} == {6, 8, 9}
    assert {kind.merging for kind in kinds} == {COMMIT_TIME, EVENT_TIME, PARTIAL, NON_DEFAULTS, CUSTOM}
    assert all(kind.version != 6 for kind in kinds if kind.merging == CUSTOM)


def _model(merging: str, index: str = "SIMPLE", *, moves: bool = False) -> TableModel:
    return TableModel(TableKind(9, True, index, merging, ONE_PARTITION_COLUMN, moves=moves, flagged=True))


def _row(model: TableModel, tag: str, seq: int, place: int = 0, **more: object) -> tuple[tuple[int, str], Row]:
    return model.place_of(7, place), {**new_row(model.kind, 7, place, seq, tag, 1), **more}


@pytest.mark.parametrize(
    ("merging", "tag", "name"),
    [
        (COMMIT_TIME, "late", None),
        (EVENT_TIME, "first", "n"),
        (PARTIAL, "first", "n"),
        (NON_DEFAULTS, "late", "n"),
        (CUSTOM, "firstlate", None),
    ],
)
def test_a_late_version(merging: str, tag: str, name: str | None):
    model = _model(merging)
    model.commit(model.insert([_row(model, "first", 5, name="n")]), "1", "1")
    model.commit(model.upsert([_row(model, "late", 4, name=None)]), "2", "2")
    (stored,) = model.records.values()
    assert (stored.row["tag"], stored.row["name"]) == (tag, name)


def test_a_record_moves_with_its_partition_column_or_keeps_it():
    for moves, path, part in ((True, "b", "b"), (False, "a", "a")):
        model = _model(EVENT_TIME, "GLOBAL_SIMPLE", moves=moves)
        model.commit(model.insert([_row(model, "first", 5)]), "1", "1")
        model.commit(model.upsert([_row(model, "second", 6, place=1)]), "2", "2")
        ((place, stored),) = model.records.items()
        assert (place, stored.row["part"], stored.row["tag"]) == ((7, path), part, "second")


def test_change_data_and_the_way_back():
    model = _model(EVENT_TIME)
    model.commit(model.insert([_row(model, "first", 5)]), "1", "1")
    model.commit(model.upsert([_row(model, "second", 6)]), "2", "2")
    model.commit(model.upsert([_row(model, "late", 1), _row(model, "gone", 6, **{IS_DELETED: True})]), "3", "3")
    told = [
        (op, instant, before and before["tag"], after and after["tag"])
        for op, instant, before, after in model.change_data(-1, 2)
    ]
    assert told == [("i", "1", None, "first"), ("u", "2", "first", "second"), ("d", "3", "second", None)]
    assert [stored.row["tag"] for stored in model.changes_between(0, 1).values()] == ["second"]
    model.go_back_to(0)
    assert [stored.row["tag"] for stored in model.records.values()] == ["first"]
