"""Comparisons of values with bounds whose order, precision or time zone is not that of the comparison."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.errors import QueryError
from pyhudi.metadata.records.metadata_record import RecordType
from pyhudi.read.execution.arrow_scan import scan_table
from pyhudi.read.planning_context import FilterSession
from pyhudi.read.scan_planner import plan_scan
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_listing import list_files
from tests.metadata_tables import attach, file_lists, grouped
from tests.tables import HandMadeTable, at
from tests.unit.read.pruning.statistics_tables import NAN, SCHEMA, build, ids, one, plan, simple

TRAPS = {
    "not a number is greater than all": ("d", [NAN, 1.0], (1.0, 1.0, 2, 0), [(">", 5.0), (">=", 5.0), ("!=", 1.0)]),
    "not a number in the bounds": ("d", [NAN, 7.0], (NAN, NAN, 2, 0), [("=", 7.0), ("<", 8.0), (">", 1.0)]),
    "minus zero": ("d", [-0.0], (0.0, 0.0, 1, 0), [("=", -0.0), ("=", 0.0), ("<=", 0.0), (">=", 0.0)]),
    "no bounds is not no values": ("i", [3], (None, None, 1, 0), [("=", 3), (">", 1), ("!=", None)]),
    "no bounds, and no word on nulls": ("i", [3, None], (None, None, 2, -1), [("=", 3), ("=", None)]),
    "bounds of nothing": ("s", ["x"], (None, None, 0, 0), [("=", "x"), ("!=", None)]),
    "bounds the wrong way round": ("i", [3], (5, 1, 1, 0), [("=", 3), (">", 2), ("<", 4)]),
    "texts in the order of UTF-16": ("s", ["😀", "\uff5e"], ("😀", "\uff5e", 2, 0), [("=", "😀"), (">=", "\uff5e")]),
    "a day that Java's older calendar lacks": (
        "day",
        [dt.date(1582, 10, 14)],
        (dt.date(1582, 10, 24), dt.date(1582, 10, 24), 1, 0),
        [("=", dt.date(1582, 10, 14)), ("<", dt.date(1582, 10, 15)), ("!=", dt.date(1582, 10, 24))],
    ),
    "half of a float": ("f", [0.1], (0.1, 0.1, 1, 0), [("=", 0.1), ("<=", 0.1)]),
}
WIDENED = {
    "as short": pa.array([0.1], pa.float32()),
    "bit by bit": pa.array([0.1], pa.float32()).cast(pa.float64()),
    "by their text": pa.array([0.1], pa.float64()),
}
NOON = dt.datetime(2024, 1, 1, 12)
WEST = dt.timezone(dt.timedelta(hours=-5))
MEANT = {
    "a time without a zone": (
        "t",
        [("=", NOON), (">=", NOON), ("in", [NOON]), ("=", pa.scalar(NOON)), ("=", str(NOON))],
    ),
    "a date as a time": ("t", [(">", dt.date(2024, 1, 1)), ("<=", dt.date(2024, 1, 2))]),
    "a time as a date": ("day", [("<", NOON), ("!=", NOON), ("<=", NOON.replace(tzinfo=WEST)), ("<", "2024-01-02")]),
    "a time of a zone": ("t", [("=", NOON.replace(tzinfo=WEST)), ("=", "2024-01-01 17:00:00+00:00")]),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_traps(trap: str, tmp_path: Path):
    column, values, stats, terms = TRAPS[trap]
    rows = [simple(i, **{column: v}) for i, v in enumerate(values)]
    table = build(tmp_path / "t", {("a", "f0-0"): rows}, change={("f0-0", column): stats})
    for op, operand in terms:
        assert plan(table, [(column, op, operand)]).tasks.num_rows == 1, (op, operand)


@pytest.mark.parametrize("form", WIDENED)
def test_short_floats_that_have_become_long_ones(form: str, tmp_path: Path):
    """Old files have 0.1 as a short float, and readers 0.1; statistics may have either, or what the short one is bit by
    bit, which is greater."""
    fields = [("id", pa.string()), ("p", pa.string())]
    old, new = (pa.schema([*fields, ("f", kind)]) for kind in (pa.float32(), pa.float64()))
    table = HandMadeTable(tmp_path / "t", schema=old)
    table.write(1, {("a", "f0-0"): [{"id": "k0", "p": "a", "f": 0.1}]})
    table.write(2, {("a", "f1-0"): [{"id": "k1", "p": "a", "f": 5.25}]}, schema=new)
    listed, _ = list_files(table.storage, None)
    names = pc.replace_substring_regex(listed["path"].combine_chunks(), "^.*/", "")
    every = pa.table({"partition": listed["partition"], "name": names, "size": listed["size"]})
    values = {"f0-0": WIDENED[form], "f1-0": pa.array([5.25], pa.float64())}
    parts = [
        one(RecordType.COLUMN_STATS, "f", "a", name, end.type, end[0].as_py(), end[0].as_py(), 1, 0)
        for name, end in zip(names.to_pylist(), map(values.get, listed["file_id"].to_pylist()), strict=True)
        if end is not None
    ]
    key, value = (pa.concat_arrays(column) for column in zip(*parts, strict=True))
    attach(table.storage, {"files": file_lists(every), "column_stats": grouped(key, value, 2)}, at(9))
    for condition in ([("f", "=", 0.1)], [("f", "<=", 0.1)], "f < 0.100000001", [("f", "in", [0.1, 7.0])]):
        assert plan(table, condition).tasks["file_id"].to_pylist() == ["f0-0"], condition
    assert ids(table, [("f", "=", 0.1)]) == {"k0"}
    assert plan(table, [("f", "=", 5.25)]).tasks["file_id"].to_pylist() == ["f1-0"]


@pytest.mark.parametrize("name", MEANT)
def test_what_has_no_zone_is_of_that_of_who_plans(name: str, tmp_path: Path):
    column, terms = MEANT[name]
    row = simple(0, t=NOON.replace(hour=17, tzinfo=dt.UTC), day=NOON.date())
    table = build(tmp_path / "t", {("a", "f0-0"): [row]})
    by_day = HandMadeTable(tmp_path / "days", schema=SCHEMA, partition_fields="day")
    by_day.write(1, {("2024-01-01", "f0-0"): [row]})
    for op, operand in terms:
        for each in (table, by_day):
            found = plan_scan(
                TableSnapshot.load(each.client()), filter=[(column, op, operand)], session=FilterSession(WEST)
            )
            assert found.tasks.num_rows == 1, (op, operand)
            assert scan_table(found, each.storage).num_rows == 1
    found = plan_scan(TableSnapshot.load(table.client()), filter=[("t", "=", NOON)])
    assert found.tasks.num_rows == 0, "without a zone it is UTC"
    for term in (("t", "<", NOON), ("day", ">", dt.datetime(2024, 1, 1)), ("day", "=", NOON)):
        assert plan_scan(
            TableSnapshot.load(by_day.client()), filter=[term], session=FilterSession(WEST)
        ).tasks.num_rows == (term[0] == "t")
        assert (
            plan_scan(TableSnapshot.load(table.client()), filter=[term], session=FilterSession(WEST)).tasks.num_rows
            == 0
        )


@pytest.mark.parametrize("column", ["t", "day"])
@pytest.mark.parametrize("value", [5, "soon", True, b"x", dt.time(12), "2024-01-01 00:00:00.0000001"])
def test_what_is_no_time_is_refused_whatever_there_is_to_read(column: str, value: object, tmp_path: Path):
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA)
    table.write(1, {("a", "f0-0"): [simple(0)]})
    for op, operand in (("=", value), ("in", [value])):
        with pytest.raises(QueryError, match=f"cannot be compared with column '{column}'.*2024-01-31"):
            plan(table, [(column, op, operand), ("p", "=", "nowhere")])
