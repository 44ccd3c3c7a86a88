"""Pruning by conditions in SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from tests.tables import HandMadeTable
from tests.unit.read.pruning.statistics_tables import SCHEMA, build, plan

SQL = {
    "i = 3": ["f3-0"],
    "I > 1 and s like 's%' and i < 4": ["f2-0", "f3-0"],
    "s like 's4%' or i in (0, 99)": ["f0-0", "f4-0"],
    "p = 'p1' and i <> 2": ["f3-0"],
    "p = 'p1' and length(s) > 100": ["f2-0", "f3-0"],
    "length(s) > 100": [f"f{n}-0" for n in range(6)],
    "not (i >= 1) or x.y = 5": ["f0-0", "f5-0"],
}


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> HandMadeTable:
    """A table whose file ``f{n}-0`` has one row of number n."""
    files = {
        (f"p{n // 2}", f"f{n}-0"): [{"id": f"k{n}", "p": f"p{n // 2}", "i": n, "s": f"s{n}", "x": {"y": n}}]
        for n in range(6)
    }
    return build(tmp_path_factory.mktemp("numbered") / "t", files)


@pytest.mark.parametrize("text", SQL)
def test_conditions_in_sql(text: str, numbered: HandMadeTable):
    assert plan(numbered, text).tasks["file_id"].to_pylist() == SQL[text]
    if text == "length(s) > 100":
        assert "the filter has no supported SQL comparison" in plan(numbered, text).skipped[0]


def test_settings_in_sql_leave_nothing_out(tmp_path: Path):
    """What they stand for is known to the session alone."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA)
    table.write(1, {("1", "a"): [{"id": "k1", "p": "1", "i": 5}]})
    for condition in ("id = '${x}'", "i = 6 AND ${c}", "p = '2' AND ${c}"):
        assert HudiTable.for_path(str(tmp_path / "t")).scan(filter=condition).plan().tasks.num_rows == 1
