"""Data skipping: what is left out never has a row of the answer, whatever the statistics leave unsaid."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import MetadataTableError, MetadataTableWarning
from pyhudi.metadata.reader import partition_freshness
from pyhudi.read.pruning.indexes import column_stats_pruner
from pyhudi.read.pruning.indexes.bloom_filter_pruner import BloomFilterPruner
from pyhudi.read.pruning.indexes.column_stats_pruner import ColumnStatsPruner
from pyhudi.read.pruning.pruner_protocol import Indexes, Predicate, Pruning
from pyhudi.read.pruning.statistics import partition_files_pruning
from pyhudi.read.pruning.statistics.column_statistics import is_ordered_type
from pyhudi.table.view.file_listing import list_files
from pyhudi.timeline.plans.rollback_plan import RollbackMetadata
from tests.golden.expected import unpack
from tests.metadata_tables import FOLDER, file_lists
from tests.properties import examples
from tests.tables import HandMadeTable, at
from tests.unit.read.pruning.statistics_tables import NAN, OFF, SCHEMA, build, conditions, ids, plan, row, simple


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("with_logs", [False, True])
def test_the_same_rows(seed: int, with_logs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if seed:  # whole partitions go first
        monkeypatch.setattr(column_stats_pruner, "_MANY_PARTITIONS", 1)
    random = np.random.default_rng(seed)
    files = {
        (f"p{n % 3}", f"f{n}-0"): [row(random, f"k{n}-{i}", f"p{n % 3}", n) for i in range(int(random.integers(1, 6)))]
        for n in range(8)
    }
    logs = None
    if with_logs:
        logs = {
            key: [row(random, r["id"], key[0], int(random.integers(0, 8))) for r in rows[:2]]
            for key, rows in list(files.items())[::2]
        }
    table = build(tmp_path / "t", files, logs=logs, without=[("f1-0", "i"), ("f2-0", "s"), ("f3-0", "d")])
    skipped = 0
    count = examples(24)
    for condition in conditions(random, count):
        assert ids(table, condition) == ids(table, condition, OFF), condition
        skipped += any(" 0 of" not in line and " out" in line for line in plan(table, condition).skipped)
    assert skipped >= count * 5 // 24


def test_files_and_partitions_are_left_out(tmp_path: Path):
    files = {(f"p{n // 2}", f"f{n}-0"): [{"id": f"k{n}", "p": f"p{n // 2}", "i": n, "s": f"s{n}"}] for n in range(6)}
    table = build(tmp_path / "t", files)
    found = plan(table, [("i", "=", 3)])
    assert found.tasks["file_id"].to_pylist() == ["f3-0"]
    assert found.partitions == ["p1"]
    assert found.skipped == (
        "partition_stats: 2 of 3 partitions out, by i",
        "column_stats: 1 of 2 slices out, by i",
    )
    assert found.partitions_before_pruning == 3
    assert "skipping    column_stats: 1 of 2 slices out, by i" in found.explain()
    assert plan(table, [("s", "=", "s4")]).tasks.num_rows == 1
    assert "no condition on a column with exact statistics" in plan(table, [("s", "=", "s4")]).skipped[0]
    assert plan(table, [[("i", "=", 0)], [("i", "=", 5)]]).tasks["file_id"].to_pylist() == ["f0-0", "f5-0"]
    assert plan(table, [("p", "=", "p1"), ("i", ">", 2)]).tasks["file_id"].to_pylist() == ["f3-0"]
    off = HudiTable.for_path(str(table.root), OFF).scan([("i", "=", 3)]).plan()
    assert off.tasks.num_rows == 6
    assert off.skipped == ("indexes: not used: hoodie.enable.data.skipping is false",)
    assert plan(table, pc.field("i") == 3).tasks.num_rows == 6
    # statistics of partitions are those of now
    assert "latest state" in plan(table, [("i", "=", 3)], as_of=at(1)).skipped[0]


def test_whole_partitions_are_left_out_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before slices are made: what a partition has without statistics, or in several files of a slice, keeps it."""
    files = {(f"p{n}", f"f{n}-0"): [{"id": f"k{n}", "p": f"p{n}", "i": n, "l": 5}] for n in range(6)}
    files["p5", "f0-0"] = [{"id": "again", "p": "p5", "i": 50, "l": 5}]  # called like the file in p0
    logs = {("p4", "f4-0"): [{"id": "k4", "p": "p4", "i": 40, "l": 2}]}
    table = build(tmp_path / "t", files, logs=logs, without=[("f2-0", "i")], partition_stats=False)
    assert plan(table, [("i", "=", 50)]).partitions == ["p2", "p5"]
    monkeypatch.setattr(column_stats_pruner, "_MANY_PARTITIONS", 1)
    expected = {
        (("i", "=", 3),): ["p2", "p3"],
        (("i", "=", 50),): ["p2", "p5"],
        (("i", "=", 0),): ["p0", "p2"],
        (("i", "=", 4), ("l", "=", 2)): ["p4"],
        (("i", "=", 77), ("l", "=", 2)): [],
    }
    for condition, partitions in expected.items():
        found = plan(table, list(condition))
        assert found.partitions == partitions
        assert f"column_stats: {6 - len(partitions)} of 6 partitions out" in found.skipped[1]
        assert ids(table, list(condition)) == ids(table, list(condition), OFF)
    assert plan(table, [[("i", "=", 0)], [("i", "=", 5)]]).partitions == ["p0", "p2", "p5"]
    # where most partitions have such rows it is not worth to ask first
    monkeypatch.setattr(partition_files_pruning, "_TRIED", 2)
    assert "slices out" in plan(table, [("i", ">", 0)]).skipped[1]
    assert "4 of 6 partitions out" in plan(table, [("i", "=", 4)]).skipped[1]
    # a metadata table that cannot be read is found out by those who need it
    broken = next(path for path in (table.root / ".hoodie/metadata/column_stats").iterdir())
    broken.write_bytes(broken.read_bytes()[:-100])
    with pytest.warns(MetadataTableWarning):
        assert plan(table, [("i", "=", 3)]).tasks.num_rows == 7


@pytest.mark.parametrize("nulls", [0, 1])
def test_files_without_statistics_in_partitions_with_some(nulls: int, tmp_path: Path):
    """The trap that statistics of partitions are: they know nothing of files without statistics. Apache Hudi counts
    values without statistics, such as long texts, as nulls."""
    files = {("a", "f0-0"): [simple(0, d=1.0, s="a")], ("a", "f1-0"): [simple(1, d=NAN, s="z" * 9000)]}
    gone = {("f1-0", "s"): (None, None, 1, nulls)}
    table = build(tmp_path / "t", files, change=gone)
    assert ids(table, [("s", ">", "b")]) == ids(table, [("s", "=", "z" * 9000)]) == {"k1"}
    assert ids(table, [("s", "!=", None)]) == {"k0", "k1"}
    assert ids(table, [("d", "<", 0.5)]) == set()
    assert plan(table, [("d", ">", 3.0)]).tasks["file_id"].to_pylist() == ["f0-0", "f1-0"]


def test_bounds_that_leave_out_row_groups(tmp_path: Path):
    """Of Apache Hudi: row groups of long texts count as nulls, and those with NaN have the bounds 0.0."""
    rows = [simple(0, s="z" * 9000, d=5.0), simple(1, s="b", d=NAN)]
    change = {("f0-0", "s"): ("b", "b", 2, 1), ("f0-0", "d"): (0.0, 0.0, 2, 0)}
    table = build(tmp_path / "t", {("a", "f0-0"): rows}, change=change)
    assert ids(table, [("s", "=", "z" * 9000)]) == ids(table, [("s", ">", "c")]) == {"k0"}
    assert ids(table, [("d", "=", 5.0)]) == {"k0"}
    assert plan(table, [("d", "=", None)]).tasks.num_rows == 0


def test_statistics_of_partitions_built_from_files_that_were_rolled_back(tmp_path: Path):
    """By Apache Hudi 1.2.0, whose `rollback_to_instant` builds them from the files that it deletes then."""
    files = {("a", "f0-0"): [simple(0, i=1)], ("b", "f1-0"): [simple(1, i=5)]}
    table = build(tmp_path / "t", files, change={("f0-0", "i"): (90, 99, 1, 0)}, without=[("f0-0", "i")])
    assert ids(table, [("i", "=", 1)]) == set()
    record = RollbackMetadata(at(10), 1, at(2), "deltacommit", {}).encode()
    table.storage.write(f"{FOLDER}/.hoodie/timeline/{at(10)}_{at(11)}.rollback", record)
    assert ids(table, [("i", "=", 1)]) == {"k0"}
    assert f"built from files of {at(2)}, which was rolled back later" in plan(table, [("i", "=", 1)]).skipped[0]


def test_statistics_of_partitions_that_were_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A writer that keeps up the list of files alone, as a delta commit of the metadata table tells."""
    table = build(tmp_path / "t", {("a", "f0-0"): [simple(0, i=1)]}, partition_stats=True)
    asked: list[str] = []
    known = partition_freshness.written_by

    def written_by(active: Any, instant: Any) -> Any:
        asked.append(instant.requested)
        return known(active, instant)

    monkeypatch.setattr(partition_freshness, "written_by", written_by)
    assert ids(table, [("i", "=", 1)]) == {"k0"}
    assert not asked, "names of files tell enough"
    table.write(20, {("a", "f1-0"): [simple(1, i=50)]})
    from pyhudi.format.file_names import log_file_name
    from pyhudi.format.log import BlockType, Header
    from tests.unit.format.log.samples import block

    listed, _ = list_files(table.storage, ["a"])
    name = next(path for path in listed["path"].to_pylist() if at(20) in path)
    size = table.storage.stat(name).size
    every = pa.table({"partition": ["a"], "name": [name.rpartition("/")[2]], "size": [size]})
    key, values = file_lists(every)[0]
    from pyhudi.format.hfile.hfile_writer import write_hfile
    from pyhudi.metadata.records.metadata_record import record_schema

    order = pc.sort_indices(key.cast(pa.binary()))
    content = write_hfile(key.take(order), values.take(order), schema=record_schema(9))
    headers = {int(Header.INSTANT_TIME): at(20), int(Header.SCHEMA): record_schema(9)}
    path = "files/" + log_file_name("files-0000-0", at(20), 1, "0-0-0")
    table.storage.write(f"{FOLDER}/{path}", block(int(BlockType.HFILE_DATA), headers, content))
    from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats

    stats = [{"partitionPath": "files", "fileId": "files-0000-0", "path": path, "fileSizeInBytes": 1}]
    data = CommitMetadata("UPSERT_PREPPED", write_stats(stats), {}).encode(9, "deltacommit")
    table.storage.write(f"{FOLDER}/.hoodie/timeline/{at(20)}_{at(20)}.deltacommit", data)
    assert ids(table, [("i", "=", 50)]) == {"k1"}
    assert "has added files, but has not updated it" in plan(table, [("i", "=", 50)]).skipped[0]
    assert set(asked) == {at(20)}


def test_merged_rows_take_values_of_several_files(tmp_path: Path):
    """Partial updates: neither the base file nor the log file alone has a row that meets the filter."""
    base = {("a", "f0-0"): [simple(0, i=1, l=5)]}
    logs = {("a", "f0-0"): [simple(0, i=None, l=2)]}
    table = build(tmp_path / "t", base, logs=logs)
    assert plan(table, [("i", "=", 1), ("l", "=", 2)]).tasks.num_rows == 1
    assert plan(table, [("i", "=", 9)]).tasks.num_rows == 0


def test_other_mergers_make_other_values(tmp_path: Path):
    custom = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "pyhudi.test.sum"}
    table = build(
        tmp_path / "t", {("a", "f0-0"): [simple(0, i=1)]}, logs={("a", "f0-0"): [simple(0, i=2)]}, properties=custom
    )
    from pyhudi.errors import UnsupportedTableError

    # the plan wants the merger: the slice is not left out
    with pytest.raises(UnsupportedTableError):
        plan(table, [("i", "=", 3)])
    assert plan(table, [("id", "=", "other")], read_optimized=True).tasks.num_rows <= 1


def test_base_files_have_the_values_that_mergers_made(tmp_path: Path):
    custom = {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "pyhudi.test.sum"}
    table = build(tmp_path / "t", {(f"p{n}", f"f{n}-0"): [simple(n, i=n)] for n in range(2)}, properties=custom)
    found = plan(table, [("i", "=", 1)])
    assert found.partitions == ["p1"]
    assert found.skipped[0] == "partition_stats: 1 of 2 partitions out, by i"


@pytest.mark.parametrize("name", ["v9_cow_evolution", "v8_cow_alter"])
def test_columns_that_were_changed(name: str, tmp_path: Path):
    """Renamed, added, promoted and dropped columns, as Apache Hudi has done it."""
    path = str(unpack(name, tmp_path).path)
    table, plain = HudiTable.for_path(path), HudiTable.for_path(path, OFF)
    every = table.scan().to_arrow()
    for field in every.schema:
        if not is_ordered_type(field.type) or field.name.startswith("_hoodie"):
            continue
        values = every[field.name].unique().to_pylist()[:4]
        for condition in [(field.name, op, v) for v in values for op in ("=", "<") if v is not None or op == "="]:
            found, expected = (t.scan([condition], columns=[field.name]).to_arrow() for t in (table, plain))
            assert found.sort_by(field.name).equals(expected.sort_by(field.name)), condition


def test_rows_beside_row_groups_of_what_is_no_number(tmp_path: Path):
    """Statistics of row groups do not tell of it."""
    table = HandMadeTable(tmp_path / "t", schema=SCHEMA)
    rows = [{"id": "k1", "p": "1", "d": 0.5, "f": 0.5}, {"id": "k2", "p": "1", "d": NAN, "f": NAN}]
    table.write(1, {("1", "a"): rows})
    for column in ("d", "f"):
        for op, value in (("not in", [math.inf, 0.5]), ("not in", [0.5]), ("!=", 0.5), ("in", [NAN, 7.0])):
            found = HudiTable.for_path(str(tmp_path / "t")).scan(filter=[(column, op, value)]).to_arrow()
            assert found["id"].to_pylist() == ["k2"], (column, op, value)


def test_pruners_see_what_others_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = build(tmp_path / "t", {("a", f"f{n}-0"): [simple(n, i=n)] for n in range(4)}, partition_stats=False)
    by_statistics = ColumnStatsPruner.prune_slices
    seen: list[list[str]] = []

    def by_bloom_filter(*_: Any) -> Pruning:
        return Pruning(np.array([True, False, False, True]), ("bloom_filters: half",), is_final=is_final)

    def spied(pruner: ColumnStatsPruner, slices: pa.Table, predicate: Predicate, indexes: Indexes) -> Pruning:
        seen.append(slices["file_id"].to_pylist())
        if broken:
            raise MetadataTableError("the file is broken")
        return by_statistics(pruner, slices, predicate, indexes)

    monkeypatch.setattr(BloomFilterPruner, "prune_slices", by_bloom_filter)
    monkeypatch.setattr(ColumnStatsPruner, "prune_slices", spied)
    is_final = broken = False
    found = plan(table, [("i", ">", 1)])
    assert seen == [["f1-0", "f2-0"]]
    assert found.tasks["file_id"].to_pylist() == ["f2-0"]
    assert found.skipped[-2:] == ("bloom_filters: half", "column_stats: 1 of 2 slices out, by i")
    # a pruner that finds the records themselves is the last one
    is_final = True
    assert plan(table, [("i", ">", 1)]).tasks["file_id"].to_pylist() == ["f1-0", "f2-0"]
    assert len(seen) == 1
    # what others have left out comes back if the metadata table turns out to be broken
    is_final, broken = False, True
    with pytest.warns(MetadataTableWarning, match="the file is broken"):
        found = plan(table, [("i", ">", 1)])
    assert found.tasks.num_rows == 4
    assert found.skipped[-1] == "indexes: not used: the file is broken"
