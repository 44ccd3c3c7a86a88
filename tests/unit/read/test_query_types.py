"""Snapshot, time travel and incremental queries on hand-made tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.config.enums import QueryType
from pyhudi.errors import IncompleteRangeWarning, QueryError, UnsupportedTableError
from pyhudi.read.execution.arrow_scan import scan_table
from pyhudi.read.query.query import InstantRange, Query
from pyhudi.read.scan_planner import plan_scan
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Action
from tests.tables import HandMadeTable, at

TYPE = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"
FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
HOLES = "hoodie.read.timeline.holes.resolution.policy"

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9], indirect=True)


def read(table: HandMadeTable, **options: str) -> list[tuple[str, int, int]]:
    """(id, v, number of the instant) of the rows of a query, sorted."""
    pinned = TableSnapshot.load(table.client())
    query = Query.from_options(Options.parse(options), pinned.config)
    rows = scan_table(plan_scan(pinned, query), pinned.storage).to_pylist()
    return sorted((row["id"], row["v"], int(row["_hoodie_commit_time"][-5:])) for row in rows)


def as_of(n: int) -> dict[str, str]:
    return {"as.of.instant": at(n)}


def since(begin: int | str, end: int | None = None, **more: str) -> dict[str, str]:
    found = {TYPE: "incremental", BEGIN: at(begin) if isinstance(begin, int) else begin, **more}
    return found if end is None else {**found, END: at(end)}


def row(id_: str, v: int, n: int, p: str = "a") -> dict[str, object]:
    return {"id": id_, "p": p, "v": v, "_n": n}


@pytest.fixture
def version(request: pytest.FixtureRequest) -> int:
    return getattr(request, "param", 9)


@pytest.fixture
def table(version: int, tmp_path) -> HandMadeTable:
    """Three writes at 10, 20, 30 that complete at 12, 25, 33."""
    made = HandMadeTable(tmp_path / "t", version)
    made.write(10, {("a", "f1"): [row("x", 1, 10), row("y", 1, 10)], ("b", "f2"): [row("z", 1, 10, "b")]}, done=12)
    made.write(20, {("a", "f1"): [row("x", 2, 20), row("y", 1, 10)]}, done=25)
    made.write(30, {("b", "f2"): [row("z", 3, 30, "b")], ("b", "f3"): [row("w", 3, 30, "b")]}, done=33)
    return made


@VERSIONS
def test_snapshot_and_time_travel(table):
    assert read(table) == [("w", 3, 30), ("x", 2, 20), ("y", 1, 10), ("z", 3, 30)]
    assert read(table, **as_of(20)) == [("x", 2, 20), ("y", 1, 10), ("z", 1, 10)]
    assert read(table, **as_of(19)) == read(table, **as_of(10)) == [("x", 1, 10), ("y", 1, 10), ("z", 1, 10)]
    assert read(table, **as_of(9)) == []
    assert read(table, **{TYPE: "read_optimized", **as_of(20)}) == read(table, **as_of(20))


@VERSIONS
def test_before_the_first_write_there_are_columns_without_rows(table):
    opened = HudiTable.for_path(str(table.root))
    before = opened.scan(as_of=at(9)).to_arrow()
    assert (before.schema, before.num_rows) == (opened.scan().to_arrow().schema, 0)
    with opened.alter_schema() as columns:
        columns.rename_column("v", "w")
    before = opened.scan(as_of=at(9), filter=[("w", ">", 1)]).to_arrow()
    assert (before.schema.names[-1], before.num_rows) == ("w", 0)


@VERSIONS
def test_changes_since_the_start_are_everything(table):
    assert read(table, **since("earliest")) == read(table, **since("000")) == read(table, **since(1)) == read(table)


def test_a_range_of_completion_times(table):
    assert read(table, **since(12)) == [("w", 3, 30), ("x", 2, 20), ("z", 3, 30)]
    assert read(table, **since(20)) == read(table, **since(12))  # 20 completed at 25
    assert read(table, **since(25)) == [("w", 3, 30), ("z", 3, 30)]
    assert read(table, **since(33)) == []
    assert read(table, **since(12, 25)) == [("x", 2, 20)]
    assert read(table, **since(12, 24)) == []
    assert read(table, **since("000", 25)) == [("x", 2, 20), ("y", 1, 10), ("z", 1, 10)]
    assert read(table, **since(25, 12)) == []


@pytest.mark.parametrize("version", [6], indirect=True)
def test_a_range_of_requested_times(table):
    assert read(table, **since(10)) == [("w", 3, 30), ("x", 2, 20), ("z", 3, 30)]
    assert read(table, **since(20)) == [("w", 3, 30), ("z", 3, 30)]
    assert read(table, **since(30)) == []
    assert read(table, **since(10, 20)) == [("x", 2, 20)]
    assert read(table, **since("0", 20)) == [("x", 2, 20), ("y", 1, 10), ("z", 1, 10)]


def test_a_write_that_completes_late_is_read_late(tmp_path):
    table = HandMadeTable(tmp_path / "t")
    table.write(10, {("a", "f1"): [row("x", 1, 10)]}, done=40)
    table.write(20, {("a", "f2"): [row("y", 1, 20)]}, done=25)
    assert read(table, **since(20, 30)) == [("y", 1, 20)]
    assert read(table, **since(30)) == [("x", 1, 10)]
    assert read(table, **since("000", 30)) == [("y", 1, 20)]


@VERSIONS
def test_rewriting_services_do_not_emit_rows_again(table):
    rows = [row("x", 2, 20), row("y", 1, 10)]
    table.write(40, {("a", "f9"): rows}, action=Action.REPLACE_COMMIT, operation="CLUSTER", replaced=[("a", "f1")])
    assert read(table, **since(33)) == []
    assert read(table) == [("w", 3, 30), ("x", 2, 20), ("y", 1, 10), ("z", 3, 30)]
    assert read(table, **since("000")) == read(table)
    begin = 12 if table.version >= 8 else 10
    assert read(table, **since(begin)) == [("w", 3, 30), ("x", 2, 20), ("z", 3, 30)]
    assert read(table, **as_of(30)) == read(table)


@VERSIONS
def test_replaced_rows_are_no_changes(table):
    rows = {("b", "f7"): [row("n", 4, 40, "b")]}
    table.write(
        40, rows, action=Action.REPLACE_COMMIT, operation="INSERT_OVERWRITE", replaced=[("b", "f2"), ("b", "f3")]
    )
    assert read(table) == [("n", 4, 40), ("x", 2, 20), ("y", 1, 10)]
    assert read(table, **since(20)) == [("n", 4, 40), *([("x", 2, 20)] if table.version >= 8 else [])]
    assert read(table, **as_of(30)) == [("w", 3, 30), ("x", 2, 20), ("y", 1, 10), ("z", 3, 30)]


@VERSIONS
def test_pending_writes_are_invisible_and_leave_later_times_undecided(table):
    table.write(35, {("a", "f1"): [row("x", 9, 35)]}, pending=True)
    assert read(table) == [("w", 3, 30), ("x", 2, 20), ("y", 1, 10), ("z", 3, 30)]
    assert read(table, **as_of(34)) == read(table)
    with pytest.raises(QueryError, match=f"commit {at(35)} is pending"):
        read(table, **as_of(35))


@VERSIONS
def test_a_hole_in_the_timeline(table):
    table.write(35, {("a", "f1"): [row("x", 9, 35)]}, pending=True)
    table.write(40, {("b", "f4"): [row("q", 4, 40, "b")]}, done=41)
    if table.version >= 8:
        assert read(table, **since(33)) == [("q", 4, 40)]
    else:
        with pytest.raises(QueryError, match=r"35 is pending while later writes have completed.*BLOCK"):
            read(table, **since(30))
        assert read(table, **since(30, **{HOLES: "BLOCK"})) == []
        assert read(table, **since("000", **{HOLES: "BLOCK"})) == [
            ("w", 3, 30),
            ("x", 2, 20),
            ("y", 1, 10),
            ("z", 3, 30),
        ]


@VERSIONS
def test_time_travel_behind_the_last_clean_is_refused(table):
    table.clean(40, keep_from=at(20), deleted=[(10, "a", "f1")])
    assert read(table, **as_of(20)) == [("x", 2, 20), ("y", 1, 10), ("z", 1, 10)]
    with pytest.raises(QueryError, match=f"cleaner has removed files.*{at(20)}"):
        read(table, **as_of(19))


def test_a_savepointed_instant_stays_readable(table):
    table.clean(40, keep_from=at(30))
    (table.root / ".hoodie/timeline" / f"{at(10)}_{at(41)}.savepoint").write_bytes(b"Obj")
    assert read(table, **as_of(10)) == [("x", 1, 10), ("y", 1, 10), ("z", 1, 10)]
    with pytest.raises(QueryError, match="cleaner"):
        read(table, **as_of(20))


@VERSIONS
def test_time_travel_after_a_clean_by_versions(table):
    table.clean(26, deleted=[(10, "a", "f1")])
    assert read(table, **as_of(20)) == [("x", 2, 20), ("y", 1, 10), ("z", 1, 10)]
    with pytest.raises(QueryError, match="cleaner"):
        read(table, **as_of(15))


@VERSIONS
def test_a_cleaned_range_falls_back_to_rows_that_are_still_current(table):
    table.write(50, {("b", "f3"): [row("w", 5, 50, "b")]}, done=51)
    table.clean(55, keep_from=at(50), deleted=[(30, "b", "f3")])
    begin, end = (25, 40) if table.version >= 8 else (20, 40)
    with pytest.warns(IncompleteRangeWarning, match=r"1 of its files no longer exist.*b/f3.*overwritten.*'false'"):
        assert read(table, **since(begin, end)) == [("z", 3, 30)]
    with pytest.raises(QueryError, match=r"1 of its files no longer exist.*b/f3.*fulltablescan"):
        read(table, **since(begin, end, **{FALLBACK: "false"}))
    assert read(table, **since(begin)) == [("w", 5, 50), ("z", 3, 30)]
    with pytest.warns(IncompleteRangeWarning, match="cleaner has removed files of its end"):
        assert read(table, **since("000", end)) == [("x", 2, 20), ("y", 1, 10), ("z", 3, 30)]
    with pytest.raises(QueryError, match="cleaner has removed files of its end"):
        read(table, **since("000", end, **{FALLBACK: "false"}))


def test_path_globs_and_parts_of_the_table(table):
    assert read(table, **since("000", **{"hoodie.datasource.read.incr.path.glob": "/a/*"})) == [
        ("x", 2, 20),
        ("y", 1, 10),
    ]
    pinned = TableSnapshot.load(table.client())
    rows = scan_table(plan_scan(pinned, Query(subpath="b")), pinned.storage)
    assert sorted(rows["id"].to_pylist()) == ["w", "z"]


def test_no_incremental_query_without_meta_columns(tmp_path):
    table = HandMadeTable(tmp_path / "t", meta_columns=False)
    table.write(10, {("a", "f1"): [row("x", 1, 10)]})
    with pytest.raises(QueryError, match=r"populate\.meta\.fields=false"):
        read(table, **since("000"))


def test_slices_with_logs_are_merged(tmp_path):
    table = HandMadeTable(tmp_path / "t", properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(10, {("a", "f1"): [row("x", 1, 10)]}, action=Action.DELTA_COMMIT)
    table.write(20, {}, action=Action.DELTA_COMMIT)
    (table.root / "a" / f".f1_{at(20)}.log.1_0-0-0").write_bytes(b"")
    pinned = TableSnapshot.load(table.client())
    plan = plan_scan(pinned)
    assert plan.num_slices_with_logs == 1
    assert plan.with_logs().tasks.num_rows == 1
    assert plan.without_logs().tasks.num_rows == 0
    assert read(table) == read(table, **{TYPE: "read_optimized"}) == read(table, **as_of(10)) == [("x", 1, 10)]


def test_a_table_with_logs_and_an_unknown_merger_is_refused_before_reading(tmp_path):
    custom = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "nobody-knows"}
    table = HandMadeTable(tmp_path / "t", properties={"hoodie.table.type": "MERGE_ON_READ", **custom})
    table.write(10, {("a", "f1"): [row("x", 1, 10)]}, action=Action.DELTA_COMMIT)
    assert read(table) == [("x", 1, 10)]
    table.write(20, {}, action=Action.DELTA_COMMIT)
    (table.root / "a" / f".f1_{at(20)}.log.1_0-0-0").write_bytes(b"")
    with pytest.raises(UnsupportedTableError, match=r"nobody-knows.*register_merger"):
        read(table)
    assert read(table, **{TYPE: "read_optimized"}) == [("x", 1, 10)]


def test_an_empty_table(tmp_path):
    table = HandMadeTable(tmp_path / "t")
    assert read(table) == read(table, **since("000")) == read(table, **as_of(5)) == []


@VERSIONS
def test_a_compaction_beside_a_write_that_adds_a_column_does_not_take_it_away(version, tmp_path):
    table = HandMadeTable(tmp_path / "t", version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(10, {("a", "f1"): [row("x", 1, 10)]}, action=Action.DELTA_COMMIT, done=11)
    more = pa.schema([*table.schema, ("more", pa.string())])
    wider = [{**row("y", 2, 20, "b"), "more": "m"}]
    table.write(20, {("b", "f2"): wider}, action=Action.DELTA_COMMIT, schema=more, done=40)
    # planned after that write began, completed after it, and of other file groups
    table.write(30, {("a", "f1"): [row("x", 1, 10)]}, operation="COMPACT", done=50)
    pinned = TableSnapshot.load(table.client())
    found = scan_table(plan_scan(pinned, columns=["id", "more"]), pinned.storage).sort_by("id")
    assert found.to_pylist() == [{"id": "x", "more": None}, {"id": "y", "more": "m"}]


def test_columns_of_a_table_whose_other_writes_are_archived(tmp_path):
    table = HandMadeTable(tmp_path / "t")
    table.write(30, {("a", "f1"): [row("x", 1, 10)]}, operation="COMPACT")
    assert read(table) == [("x", 1, 10)]


@VERSIONS
def test_log_files_of_a_range_that_were_compacted_and_cleaned(version, tmp_path):
    table = HandMadeTable(tmp_path / "t", version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(10, {("a", "f1"): [row("x", 1, 10), row("y", 1, 10)]}, action=Action.DELTA_COMMIT)
    table.log(20, {("a", "f1"): [{"id": "x", "p": "a", "v": 2}]}, base=10)
    table.write(30, {("a", "f1"): [row("x", 2, 20), row("y", 1, 10)]}, operation="COMPACT")
    assert read(table, **since(15, 25)) == [("x", 2, 20)]
    table.clean(40, keep_from=at(30), deleted=[(10, "a", "f1")])
    (log,) = (table.root / "a").glob(".*.log.*")
    log.unlink()
    assert read(table, **since(15, 25)) == [("x", 2, 20)]
    with pytest.raises(QueryError, match=r"log files of it no longer exist.*'f1'.*fulltablescan"):
        read(table, **since(15, 25, **{FALLBACK: "false"}))


@pytest.fixture
def compacted_late(version: int, tmp_path) -> HandMadeTable:
    """Updates of x (10) and y (13); a compaction requested in between (12) that completed after both (20), whose older
    slice the cleaner has removed."""
    table = HandMadeTable(tmp_path / "t", version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    old = [row("x", 1, 5), row("y", 1, 5)]
    table.write(5, {("a", "f1"): old, ("b", "f2"): [row("z", 1, 5, "b")]}, action=Action.DELTA_COMMIT)
    table.log(10, {("a", "f1"): [{"id": "x", "p": "a", "v": 2}]}, base=5, done=11)
    table.log(13, {("a", "f1"): [{"id": "y", "p": "a", "v": 3}]}, base=12, done=14)
    table.write(12, {("a", "f1"): [row("x", 2, 10), row("y", 1, 5)]}, operation="COMPACT", done=20)
    table.log(30, {("a", "f1"): [{"id": "y", "p": "a", "v": 4}]}, base=12, done=31)
    table.clean(40, keep_from=at(13), deleted=[(5, "a", "f1")])
    name = f".f1_{at(5 if version < 8 else 10)}.log.*"
    (log,) = (table.root / "a").glob(name)
    log.unlink()
    return table


@VERSIONS
def test_a_range_that_ends_inside_a_compaction(compacted_late, version):
    end = 14 if version >= 8 else 13
    strict = {FALLBACK: "false"}
    changed = [("x", 2, 10), ("y", 3, 13)]
    assert read(compacted_late, **since(8, end, **strict)) == changed
    assert read(compacted_late, **since("earliest", end, **strict)) == [*changed, ("z", 1, 5)]
    assert read(compacted_late, **since(8, end - 1, **strict)) == [("x", 2, 10)]


@VERSIONS
def test_a_log_file_of_a_range_that_is_gone_beside_others_of_its_group(version, tmp_path):
    table = HandMadeTable(tmp_path / "t", version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(5, {("a", "f1"): [row("x", 1, 5), row("y", 1, 5)]}, action=Action.DELTA_COMMIT)
    table.log(10, {("a", "f1"): [{"id": "x", "p": "a", "v": 2}]}, base=5)
    (log,) = (table.root / "a").glob(".f1_*.log.*")
    table.log(13, {("a", "f1"): [{"id": "y", "p": "a", "v": 3}]}, base=5)
    log.unlink()
    assert read(table, **since(11, 14, **{FALLBACK: "false"})) == [("y", 3, 13)]
    with pytest.raises(QueryError, match=r"log files of it no longer exist.*'f1'.*fulltablescan"):
        read(table, **since(8, 14, **{FALLBACK: "false"}))


def test_a_write_that_completes_after_the_end_needs_what_it_replaced(tmp_path):
    table = HandMadeTable(tmp_path / "t")
    table.write(5, {("a", "f1"): [row("x", 1, 5)]})
    table.write(12, {("a", "f1"): [row("x", 2, 12)]}, done=20)
    table.write(13, {("a", "f2"): [row("y", 1, 13)]}, done=14)
    assert read(table, **since("earliest", 14, **{FALLBACK: "false"})) == [("x", 1, 5), ("y", 1, 13)]
    table.clean(40, keep_from=at(13), deleted=[(5, "a", "f1")])
    with pytest.raises(QueryError, match="the cleaner has removed files of its end"):
        read(table, **since("earliest", 14, **{FALLBACK: "false"}))


@VERSIONS
@pytest.mark.parametrize("operation", ["CLUSTER", "COMPACT"])
def test_commits_whose_rows_were_moved_before_they_are_read(tmp_path, version, operation):
    """A query of some commits, as of a stream, has the same rows after a service between them has completed."""
    table = HandMadeTable(tmp_path / "t", version)
    table.write(5, {("a", "f0"): [row("old", 0, 5)]})
    table.write(10, {("a", "f1"): [row("x", 1, 10), row("y", 1, 10)]})
    table.write(30, {("a", "f2"): [row("z", 1, 30)]}, done=30)
    query = Query(
        type=QueryType.INCREMENTAL,
        instants=InstantRange(at(9), at(30), by_completion=version >= 8, only=frozenset({at(10), at(30)})),
    )

    def keys() -> list[str]:
        plan = plan_scan(TableSnapshot.load(table.client()), query)
        return sorted(r["id"] for r in scan_table(plan, table.storage).to_pylist())

    assert keys() == ["x", "y", "z"]
    rows = [row("x", 1, 10), row("y", 1, 10)]
    if operation == "CLUSTER":
        replaced = [("a", "f1")]
        table.write(20, {("a", "f9"): rows}, action=Action.REPLACE_COMMIT, operation=operation, replaced=replaced)
    else:
        table.write(20, {("a", "f1"): rows}, operation=operation)
    assert keys() == ["x", "y", "z"]
