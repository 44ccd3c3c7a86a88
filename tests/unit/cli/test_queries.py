"""Commands that print rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import HudiTable
from tests.golden.expected import unpack
from tests.unit.cli.runner import json_rows, pyhudi
from tests.unit.services.merge_on_read_table import FILE_IDS, MorTable, row


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = MorTable(tmp_path_factory.mktemp("queries") / "t")
    made.load([row(f"{p}{n}", p, n, "x") for p in FILE_IDS for n in range(30)])
    made.delta([row("a0", "a", 100, "new")])
    return made.root


def test_rows_as_json(path: Path) -> None:
    rows = json_rows("scan", path)
    assert (
        sorted(rows, key=lambda r: r["id"]) == HudiTable.for_path(str(path)).scan().to_arrow().sort_by("id").to_pylist()
    )


def test_rows_as_csv(path: Path) -> None:
    text = pyhudi("scan", path, "--columns", "id,o", "--where", "o >= 29", "--output", "csv").stdout
    assert sorted(csv.reader(io.StringIO(text))) == [["a0", "100"], ["a29", "29"], ["b29", "29"], ["id", "o"]]


def test_a_table_has_twenty_rows(path: Path) -> None:
    text = pyhudi("scan", path).stdout
    assert "(first 20; --limit 0 prints all)" in text
    assert len(text.splitlines()) == 23
    assert "_hoodie_record_key" not in text
    assert len(pyhudi("scan", path, "--limit", 0).stdout.splitlines()) == 62


def test_wide_rows_are_blocks(path: Path) -> None:
    text = pyhudi("scan", path, "--meta", "--limit", 1, width=80).stdout
    assert "row 1" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_snapshots_and_ranges(path: Path) -> None:
    first, last = sorted(r["requested"] for r in json_rows("commits", "list", path))
    (old,) = json_rows("scan", path, "--as-of", first, "--where", "id = 'a0'")
    assert old["v"] == "x"
    completed = {r["requested"]: r["completed"] for r in json_rows("commits", "list", path)}
    assert [r["v"] for r in json_rows("scan", path, "--begin", completed[first], "--end", completed[last])] == ["new"]
    assert json_rows("scan", path, "--count") == [{"rows": 60}]
    assert len(json_rows("scan", path, "--read-optimized", "--where", "v = 'x'")) == 60


def test_explanation(path: Path) -> None:
    text = pyhudi("scan", path, "--where", "p = 'a'", "--explain").stdout
    assert "partitions  1 of 2" in text


def test_limits_end_the_scan(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def batches(*_: object) -> pa.RecordBatchReader:
        def numbered():
            for n in range(100):
                taken.append(n)
                yield pa.record_batch({"n": [n] * 10})

        return pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), numbered())

    monkeypatch.setattr("pyhudi.api.scan.Scan.to_batches", batches)
    assert len(json_rows("scan", path, "--limit", 15)) == 15
    assert len(taken) <= 3


def test_lookup(path: Path) -> None:
    assert json_rows("lookup", path, "a0", "b7", "--columns", "id,v") == [
        {"id": "a0", "v": "new"},
        {"id": "b7", "v": "x"},
    ]
    assert [r["id"] for r in json_rows("lookup", path, "new", "--by", "v")] == ["a0"]
    assert [r["id"] for r in json_rows("lookup", path, "100", "--by", "o")] == ["a0"]
    assert "int64" in pyhudi("lookup", path, "many", "--by", "o", code=2).stderr
    assert "nowhere" in pyhudi("lookup", path, "7", "--by", "nowhere", code=1).stderr
    assert "_hoodie" not in pyhudi("lookup", path, "a0").stdout


def test_changes(tmp_path: Path) -> None:
    golden = unpack("v8_cow_cdc", tmp_path)
    expected = HudiTable.for_path(str(golden.path)).changes("earliest").to_arrow().to_pylist()
    assert json_rows("changes", golden.path) == expected
    assert len(expected) > 5


def test_all_types_are_printed(tmp_path: Path) -> None:
    path = unpack("v9_cow_types", tmp_path).path
    (count,) = json_rows("scan", path, "--count")
    assert len(json_rows("scan", path)) == count["rows"]
    rows = list(csv.DictReader(io.StringIO(pyhudi("scan", path, "--output", "csv").stdout)))
    assert len(rows) == count["rows"]
    assert "row 1" in pyhudi("scan", path).stdout
