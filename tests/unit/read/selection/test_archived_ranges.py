"""Queries of a time that is archived, or of writes that are: between commits with savepoints, and those that ran
long."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import QueryError
from tests.concurrent_archival import archive_after_first_pin
from tests.tables import HandMadeTable, Rows, at

OPTIONS = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.metadata.enable": "false",
    "hoodie.archive.beyond.savepoint": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
STRICT = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false"}
VERSIONS = pytest.mark.parametrize("version", [6, 9])


def opened(table: HandMadeTable, **options: str) -> HudiTable:
    return HudiTable.for_path(str(table.root), {**OPTIONS, **options})


def rows(table: HandMadeTable, options: Mapping[str, str] | None = None, **query: Any) -> list[tuple[str, int]]:
    found = opened(table, **(options or {})).scan(columns=["id", "v"], **query).to_arrow().to_pylist()
    return sorted((row["id"], row["v"]) for row in found)


def active_writes(table: HandMadeTable) -> list[str]:
    return [i.requested for i in table.client().active_timeline().timeline.writes()]


def one_group(path: Path, version: int, numbers: Sequence[int], done: dict[int, int] | None = None) -> HandMadeTable:
    """A table with one file group, to which every commit adds a row."""
    table = HandMadeTable(path / "t", version)
    for n in numbers:
        so_far = [{"id": f"k{m}", "p": "a", "v": m, "_n": m} for m in numbers if m <= n]
        table.write(n, {("a", "f"): so_far}, done=(done or {}).get(n, n))
    return table


@VERSIONS
def test_time_travel_to_an_archived_commit_after_a_savepoint(tmp_path: Path, version: int) -> None:
    table = HandMadeTable(tmp_path / "t", version)
    for n in range(1, 9):
        table.write(n, {("a", "f"): [{"id": "k", "p": "a", "v": n}]})
    services = opened(table).services
    services.savepoint(at(1))
    services.archive()
    assert active_writes(table) == [at(n) for n in (1, 6, 7, 8)]
    assert rows(table, as_of=at(2)) == [("k", 2)]
    services.clean({"hoodie.clean.commits.retained": "2"})
    with pytest.raises(QueryError, match="cleaner has removed"):
        rows(table, as_of=at(2))
    assert rows(table, as_of=at(1)) == [("k", 1)]
    assert rows(table, as_of=at(8)) == [("k", 8)]


@VERSIONS
def test_ranges_over_commits_that_were_archived_after_a_savepoint(tmp_path: Path, version: int) -> None:
    table = one_group(tmp_path, version, range(1, 9))
    services = opened(table).services
    services.savepoint(at(1))
    services.archive()
    assert active_writes(table) == [at(n) for n in (1, 6, 7, 8)]
    assert rows(table, begin=at(3)) == [(f"k{n}", n) for n in range(4, 9)]
    assert rows(table, begin=at(3), end=at(7)) == [(f"k{n}", n) for n in range(4, 8)]
    assert rows(table, begin="earliest", end=at(3)) == [(f"k{n}", n) for n in range(1, 4)]
    assert rows(table, begin=at(6)) == [("k7", 7), ("k8", 8)]


def test_rows_between_a_savepoint_and_a_range_do_not_come_along(tmp_path: Path) -> None:
    """The first commit of the range was requested before the last one that is not in it."""
    table = one_group(tmp_path, 9, range(1, 8), {6: 120, 7: 60})
    services = opened(table).services
    services.savepoint(at(1))
    table.archive(2, 3, 4, 5)
    assert rows(table, begin=at(65)) == [("k6", 6)]


def test_files_that_an_archived_write_of_the_range_has_replaced_are_not_needed(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path / "t")
    table.write(1, {("b", "x"): [{"id": "x", "p": "b", "v": 1}]})
    table.write(2, {("a", "f"): [{"id": "k", "p": "a", "v": 2}]})
    overwritten = {("a", "g"): [{"id": "k", "p": "a", "v": 3}]}
    table.write(3, overwritten, action="replacecommit", operation="INSERT_OVERWRITE", replaced=[("a", "f")])
    for n in (4, 5, 6):
        table.write(n, {("a", "g"): [{"id": "k", "p": "a", "v": n}]})
    table.clean(7, keep_from=at(3), deleted=[(2, "a", "f")])

    def check() -> None:
        assert rows(table, STRICT, begin=at(1), end=at(3)) == [("k", 3)]
        assert rows(table, STRICT, begin=at(1), end=at(5)) == [("k", 5)]
        assert rows(table, STRICT, begin=at(1)) == [("k", 6)]
        with pytest.raises(QueryError, match="no longer exist"):
            rows(table, STRICT, begin=at(1), end=at(2))

    check()
    table.archive(1, 2, 3)
    check()


def test_a_range_that_ends_during_a_write_that_is_archived(tmp_path: Path) -> None:
    table = one_group(tmp_path, 9, (1, 3, 5, 7), {1: 2, 3: 4, 5: 6, 7: 8})
    table.archive(1, 3, 5)
    assert rows(table, STRICT, begin=at(2), end=at(5)) == [("k3", 3)]
    assert rows(table, STRICT, begin=at(2), end=at(6)) == [("k3", 3), ("k5", 5)]
    assert rows(table, STRICT, begin="earliest", end=at(5)) == [("k1", 1), ("k3", 3)]


def backfilled(table: HandMadeTable, backfill: Sequence[dict[str, Any]], operation: str = "UPSERT") -> HandMadeTable:
    """Return a table with a write that was requested at 3 and completed at 100, beside others up to 99."""
    for n in (1, 2, *range(40, 100, 10), 99):
        table.write(n, {("a", f"f{n}"): [{"id": f"k{n}", "p": "a", "v": n}]}, operation="INSERT")
    table.write(3, {("a", "f1"): backfill}, done=100, operation=operation)
    return table


def test_a_write_that_ran_long_is_read_from_the_archive(tmp_path: Path) -> None:
    table = backfilled(HandMadeTable(tmp_path / "t"), [{"id": "k1", "p": "a", "v": 3}])
    before_end = [("k1", 1), ("k2", 2), ("k40", 40), ("k50", 50)]
    after_50 = [("k60", 60), ("k70", 70), ("k80", 80), ("k90", 90), ("k99", 99)]

    def check() -> None:
        assert rows(table, begin=at(50)) == [("k1", 3), *after_50]
        assert rows(table, begin=at(99)) == [("k1", 3)]
        assert rows(table, begin=at(100)) == []
        assert rows(table, begin=at(50), end=at(99)) == after_50
        assert rows(table, begin="earliest", end=at(50)) == before_end
        assert rows(table, begin="earliest", end=at(99)) == before_end + after_50

    check()
    table.archive(1, 2, 3, 40)
    check()
    table.write(110, {("a", "f110"): [{"id": "k110", "p": "a", "v": 110}]})
    assert rows(table, begin=at(99)) == [("k1", 3), ("k110", 110)]
    table.clean(120, keep_from=at(50), deleted=[(1, "a", "f1")])
    assert rows(table, begin="earliest", end=at(99)) == before_end[1:] + after_50


class CountedTable(HandMadeTable):
    """A table whose commits count inserts and deletes, as change data queries need."""

    def write_file(self, n: int, partition: str, file_id: str, rows: Rows, schema: pa.Schema) -> dict[str, Any]:
        stat = super().write_file(n, partition, file_id, rows, schema)
        return {**stat, "numInserts": len(rows), "numDeletes": 0 if rows else 1}


def test_changes_of_a_write_that_ran_long_are_read_from_the_archive(tmp_path: Path) -> None:
    properties = {"hoodie.table.cdc.enabled": "true", "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER"}
    table = backfilled(CountedTable(tmp_path / "t", properties=properties), [], "DELETE")

    def changes() -> list[tuple[str, int | None, int | None]]:
        found = opened(table).changes(begin=at(80)).to_arrow().to_pylist()
        values = [[json.loads(row[name])["v"] if row[name] else None for name in ("before", "after")] for row in found]
        return [(row["op"], before, after) for row, (before, after) in zip(found, values, strict=True)]

    expected = [("i", None, 90), ("i", None, 99), ("d", 1, None)]
    assert changes() == expected
    table.archive(1, 2, 3, 40)
    assert changes() == expected


@pytest.mark.parametrize("query", ["snapshot", "range", "history"])
def test_an_instant_that_is_archived_while_a_query_begins(tmp_path: Path, query: str, monkeypatch: pytest.MonkeyPatch):
    """Whoever reads lists the timeline, then reads files of it, which a writer may have archived in between."""
    table, pinned = archive_after_first_pin(tmp_path, monkeypatch)
    if query == "history":
        assert opened(table).history().to_arrow()["requested"].to_pylist() == [at(3)]
    else:
        found = rows(table, begin=at(0)) if query == "range" else rows(table)
        assert found == [("x", 2), ("y", 3)]
    assert len(pinned) == 2


@pytest.mark.parametrize(
    ("read", "number"),
    [
        (lambda table: table.lookup(["x"]), 1),
        (lambda table: table.inspect.files(), 2),
        (lambda table: table.inspect.file_slices(), 2),
        (lambda table: table.inspect.partitions(), 1),
        (lambda table: table.inspect.commits(), 1),
        (lambda table: table.inspect.log_blocks(), 0),
        (lambda table: table.inspect.log_records().read_all(), 0),
        (lambda table: table.inspect.file_sizes(), 2),
        (lambda table: table.inspect.write_amplification(), 2),
        (lambda table: table.detail()["files"], 2),
    ],
    ids=lambda value: "" if isinstance(value, int) else value.__code__.co_names[-1],
)
def test_an_instant_that_is_archived_while_a_table_is_inspected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[HudiTable], Any], number: int
) -> None:
    table, pinned = archive_after_first_pin(tmp_path, monkeypatch)
    found = read(opened(table))
    assert (found if isinstance(found, int) else found.num_rows) == number
    assert len(pinned) == 2


def test_instants_are_exported_while_they_are_archived(tmp_path, monkeypatch):
    table, pinned = archive_after_first_pin(tmp_path / "t", monkeypatch)
    actions = ["commit", "replacecommit"]
    assert opened(table).inspect.export_instants(tmp_path / "exported", actions, newest_first=True) == 3
    assert len(pinned) == 2
    assert {file.name for file in (tmp_path / "exported").iterdir()} >= {f"{at(1)}.commit", f"{at(2)}.replacecommit"}
