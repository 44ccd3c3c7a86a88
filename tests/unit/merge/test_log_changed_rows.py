"""Slices in two halves: base rows that stay, and rows that come from the logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

from pyhudi.errors import CorruptTableError, QueryError
from pyhudi.merge.file_slice import SliceContext
from pyhudi.merge.log_changed_rows import BASE_POSITION, NO_BASE_ROW, changed_rows, replaced_positions
from pyhudi.merge.mergers.record_merger import RecordMerger, Records
from pyhudi.merge.modes.merge_rules import MergeRules
from tests.unit.merge.slices import Slice

ROWS = [{"id": f"k{i}", "o": 10, "a": "base", "b": i} for i in range(8)]


class Total(RecordMerger):
    """Adds up the column ``b``."""

    strategy_id = "11111111-0000-0000-0000-000000000099"
    columns = ("b",)

    def merge(self, older: Records, newer: Records) -> Records:
        at = newer.rows.schema.get_field_index("b")
        total = pc.add(older.rows.column("b"), newer.rows.column("b"))
        return newer.with_rows(newer.rows.set_column(at, newer.rows.schema.field(at), total))


def context(made: Slice, rules: MergeRules = MergeRules()) -> SliceContext:  # noqa: B008
    return SliceContext(made.storage, made.whole_schema, tuple(made.schema.names), rules)


@pytest.fixture
def made(tmp_path: Path) -> Slice:
    found = Slice(tmp_path / "s")
    found.base(1, ROWS)
    return found


def changed(made: Slice, rules: MergeRules = MergeRules()) -> list[tuple[str, str]]:  # noqa: B008
    batches = changed_rows(context(made, rules), made.slice)
    return sorted((row["id"], row["a"]) for batch in batches for row in batch.to_pylist())


@pytest.mark.parametrize("positions", [True, False], ids=["positions", "keys"])
def test_only_what_the_logs_touch(made: Slice, positions: bool) -> None:
    rows = [{"id": "k2", "o": 9, "a": "late", "b": 0}, {"id": "k5", "o": 11, "a": "new", "b": 0}]
    made.log(2, rows, [("k7", None)], with_positions=positions)
    assert replaced_positions(context(made), made.slice).tolist() == [2, 5, 7]
    assert changed(made) == [("k2", "late"), ("k5", "new")]
    by_time = MergeRules(("o",))
    assert replaced_positions(context(made, by_time), made.slice).tolist() == [5, 7]
    assert changed(made, by_time) == [("k5", "new")]


def test_places_by_headers_alone(made: Slice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where positions say it all no record is decoded."""
    made.log(2, [{"id": "k2", "o": 9, "a": "late", "b": 0}], [("k3", None)], with_positions=True)
    monkeypatch.setattr("pyhudi.merge.file_group_reader.add_block_versions", None)
    assert replaced_positions(context(made), made.slice).tolist() == [2, 3]


@pytest.mark.parametrize("deletes", [[("k3", 11)], [("k3", 9)], [("k3", None), ("new", 1)]])
def test_deletes_alone_leave_no_rows_to_compare(
    made: Slice, monkeypatch: pytest.MonkeyPatch, deletes: list[tuple[str, int | None]]
) -> None:
    made.log(2, [], deletes)
    monkeypatch.setattr("pyhudi.merge.log_changed_rows.read_base", None)
    assert changed(made, MergeRules(("o",))) == []


def test_positions_without_use_are_not_searched(made: Slice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers find base rows by key as soon as one block has no positions, so those of later blocks are of no use."""
    made.log(2, [{"id": "k2", "o": 9, "a": "log", "b": 0}])
    monkeypatch.setattr("pyhudi.merge.log_changed_rows.read_base", None)
    found = list(changed_rows(context(made), made.slice, with_positions=True))
    assert [row[BASE_POSITION] for batch in found for row in batch.to_pylist()] == [NO_BASE_ROW]


@pytest.mark.parametrize("positions", [True, False], ids=["positions", "keys"])
def test_mergers_get_the_base_row(made: Slice, positions: bool) -> None:
    made.log(2, [{"id": "k2", "o": 9, "a": "log", "b": 5}], with_positions=positions)
    rules = MergeRules(("o",), merger=Total())
    assert sorted(made.overlaid(context(made, rules)), key=str) == sorted(made.read(context(made, rules)), key=str)


def test_positions_that_are_not_there(made: Slice) -> None:
    made.positions["k9"] = 8
    made.log(2, [{"id": "k9", "o": 9, "a": "log", "b": 5}], with_positions=True)
    for rules in (MergeRules(), MergeRules(("o",))):
        with pytest.raises(CorruptTableError, match=r"has 8 rows.*of row 8"):
            replaced_positions(context(made, rules), made.slice)


def test_no_base_file_and_no_logs(tmp_path: Path, made: Slice) -> None:
    assert replaced_positions(context(made), made.slice).tolist() == []
    assert changed(made) == []
    alone = Slice(tmp_path / "alone")
    alone.log(1, [{"id": "k1", "o": 1, "a": "log", "b": 1}])
    assert replaced_positions(context(alone), alone.slice).tolist() == []
    assert changed(alone) == [("k1", "log")]


def test_a_missing_log_is_named(made: Slice) -> None:
    made.log(2, [{"id": "k2", "o": 9, "a": "log", "b": 5}])
    gone = replace(made.slice, log_paths=(".gone.log.1_0-0-0",))
    for read in (lambda: replaced_positions(context(made), gone), lambda: list(changed_rows(context(made), gone))):
        with pytest.raises(QueryError, match="a cleaner has removed it"):
            read()
