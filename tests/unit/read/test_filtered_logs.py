"""Filters of merge-on-read queries: the rows are those of all that meet the filter, whatever is left out."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

from pyhudi.api.hudi_table import HudiTable
from pyhudi.read.scan_plan import ScanPlan
from tests.properties import examples
from tests.tables import HandMadeTable

TYPES = {"id": pa.string(), "n": pa.int32(), "p": pa.string(), "v": pa.int64(), "w": pa.string()}
SCHEMA = pa.schema(list(TYPES.items()))
GROUPS = [("a", "f1"), ("a", "f2"), ("b", "f3")]
MOR = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.recordkey.fields": "id"}
EVENT_TIME = {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields": "v"}
IN_PART = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING", "hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
NUMBERS = st.integers(0, 7)
NAMES = [f"{group[1]}-{i}" for group in GROUPS for i in range(8)]
WRITES = st.lists(
    st.tuples(
        st.sampled_from(GROUPS),
        st.dictionaries(NUMBERS, st.tuples(st.integers(0, 9), st.sampled_from(["x", "y", None])), max_size=5),
        st.sets(NUMBERS, max_size=2),
        st.sampled_from(["avro", "parquet"]),
    ),
    max_size=5,
)


def _row(group: tuple[str, str], number: int, v: int, w: str | None) -> dict[str, Any]:
    return {"id": f"{group[1]}-{number}", "n": number, "p": group[0], "v": v, "w": w}


def _table(folder: Path, properties: dict[str, str], writes: list[Any], *, positions: bool) -> HandMadeTable:
    table = HandMadeTable(folder / "t", schema=SCHEMA, properties={**MOR, **properties})
    table.write(10, {group: [_row(group, n, 5, "base") for n in range(6)] for group in GROUPS})
    for at, (group, rows, deletes, data_format) in enumerate(writes, 20):
        gone = [f"{group[1]}-{n}" for n in deletes - set(rows)]
        changed = [_row(group, n, *values) for n, values in rows.items()]
        if changed or gone:
            how = {"base": 10, "positions": positions, "data_format": data_format}
            table.log(at, {group: changed} if changed else {}, deletes={group: gone} if gone else {}, **how)
    return table


def _term() -> st.SearchStrategy[tuple[str, str, Any]]:
    names = st.sampled_from(NAMES)
    return st.one_of(
        st.tuples(st.just("id"), st.sampled_from(["=", "<", ">=", "!="]), names),
        st.tuples(st.just("id"), st.just("in"), st.lists(names, max_size=3)),
        st.tuples(st.just("n"), st.sampled_from(["=", "<=", ">", "!="]), NUMBERS),
        st.tuples(st.just("v"), st.sampled_from(["=", "<", ">"]), st.integers(0, 9)),
        st.tuples(st.just("w"), st.sampled_from(["=", "!="]), st.sampled_from(["x", "base", None])),
        st.tuples(st.just("n"), st.sampled_from(["=", "!="]), st.none()),
    )


FILTERS = st.lists(st.lists(_term(), min_size=1, max_size=3), min_size=1, max_size=2)


@pytest.mark.parametrize("properties", [{}, EVENT_TIME, IN_PART], ids=["commit time", "event time", "in part"])
@settings(max_examples=examples(6), deadline=None)
@given(WRITES, st.lists(FILTERS, min_size=4, max_size=4), st.booleans())
def test_rows_of_a_filter(
    tmp_path_factory: pytest.TempPathFactory,
    properties: dict[str, str],
    writes: list[Any],
    filters: list[list[list[tuple[str, str, Any]]]],
    positions: bool,
) -> None:
    table = HudiTable.for_path(str(_table(tmp_path_factory.mktemp("t"), properties, writes, positions=positions).root))
    every = table.scan().to_arrow()
    whole = every.num_rows
    by_keys = [
        [[("id", "=", "f1-1")]],
        [[("_hoodie_record_key", "in", ["f2-2", "f2-6"])]],
        [[("id", "in", NAMES[2:])]],  # too many to look for each in the bytes of a block
    ]
    for one in [*filters, *by_keys]:
        found = table.scan(one).to_arrow()
        wanted = every.filter(table.scan(one).row_filter.arrow(every.schema))
        assert sorted(found.to_pylist(), key=str) == sorted(wanted.to_pylist(), key=str), one
    assert table.scan().to_arrow().num_rows == whole


def test_what_a_plan_says_of_keys(tmp_path: Path) -> None:
    table = _table(tmp_path, {}, [(GROUPS[0], {1: (7, "x")}, set(), "avro")], positions=False)

    def planned(filter: Any) -> tuple[tuple[str, ...], tuple[str, ...] | None] | None:
        plan: ScanPlan = HudiTable.for_path(str(table.root)).scan(filter).plan()
        assert plan.merging is not None
        rows = plan.key_rows
        return None if rows is None else (rows.columns, rows.keys)

    assert planned([("id", "=", "f1-1"), ("n", "=", 1)]) == (("id",), ("f1-1",))
    assert planned("id = 'f1-1' AND length(w) > 3") == (("id",), ("f1-1",))
    assert planned([("id", ">", "f1"), ("v", "=", 1)]) == (("id",), None)
    assert planned([[("id", ">", "f2")], [("id", "=", "f1-1")]]) == (("id",), None)
    assert planned([("_hoodie_record_key", "=", "k")]) == (("_hoodie_record_key",), ("k",))
    for nothing in ([("v", "=", 1)], [[("id", ">", "f")], [("v", "=", 1)]], [("id", "!=", None)], "upper(id) = 'F'"):
        assert planned(nothing) is None


def test_instants_of_one_millisecond_in_keys(tmp_path: Path) -> None:
    """With hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled they make the same key, so that
    the versions of a record may have several."""
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("t", pa.timestamp("us", "UTC")), ("v", pa.int64())])
    made = HandMadeTable(tmp_path / "t", schema=schema, properties={**MOR, "hoodie.table.recordkey.fields": "t"})
    older, newer = (dt.datetime(2024, 1, 2, 3, 4, 5, micros, dt.UTC) for micros in (678_901, 678_902))
    record = {"id": "2024-01-02 03:04:05.678", "p": "a"}
    made.write(10, {("a", "f1"): [{**record, "t": older, "v": 1}]})
    made.log(20, {("a", "f1"): [{**record, "t": newer, "v": 2}]}, base=10)
    table = HudiTable.for_path(str(made.root))
    for at, values in ((older, []), (newer, [2])):
        assert table.scan([("t", "=", at)]).to_arrow()["v"].to_pylist() == values
        assert table.scan(pc.field("t") == pa.scalar(at, schema.field("t").type)).to_arrow()["v"].to_pylist() == values
