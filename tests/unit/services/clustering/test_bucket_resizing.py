"""Splitting and merging of buckets of consistent hashing: which, and where rows go then."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import ConfigError, FormatError, TransactionError
from pyhudi.format.file_names import new_file_id
from pyhudi.index.bucket_counts import BucketCounts
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.consistent_hashing import (
    FOLDER,
    HashingMetadata,
    NodeTag,
    VisibleGroups,
    delete_metadata,
    load_metadata,
    mark_completed,
    store_first_metadata,
    store_metadata,
)
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.services.clustering.bucket_resizing import PLAN_STRATEGY, BucketRouting, ResizingRules, new_buckets
from pyhudi.services.clustering.clustering_job import ClusteringJob
from pyhudi.services.clustering.clustering_planner import reschedule_clustering, schedule_clustering
from pyhudi.services.restore import Restorer, pending_restore
from pyhudi.services.rollback import roll_back
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView, OpenTable
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action
from pyhudi.timeline.plans.clustering_plan import INPUT_SCHEMA, ClusteringPlan
from pyhudi.timeline.plans.rollback_plan import RollbackPlan
from pyhudi.transaction.rollback.late_data_files import delete_slices_of_removed_plans
from tests.tables import HandMadeTable, at
from tests.unit.transaction.test_writer_death import deaths

SIZES = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_size", pa.int64()),
        ("log_sizes", pa.list_(pa.int64())),
    ]
)
BUCKETING = BucketIndex(("id",), BucketCounts(4))
MAX = 0x7FFFFFFF
ROWS = [{"id": "1", "p": "a", "v": 1}, {"id": "2", "p": "a", "v": 1}]


def _rules(**options: object) -> ResizingRules:
    named = {f"hoodie.bucket.index.{name.replace('_', '.')}": str(value) for name, value in options.items()}
    return ResizingRules.from_options(Options.parse({"hoodie.bucket.index.num.buckets": "4", **named}), 100)


def _slices(metadata: HashingMetadata, sizes: list[int | None]) -> pa.Table:
    """Slices of the buckets that have a size; a tenth of it is in logs."""
    rows = [
        {"partition": "p", "file_id": file_id, "base_size": size - size // 10, "log_sizes": [size // 10]}
        for file_id, size in zip(metadata.file_ids(), sizes, strict=True)
        if size is not None
    ]
    return pa.Table.from_pylist(rows, schema=SIZES)


def _planned(
    metadata: HashingMetadata, sizes: list[int | None], rules: ResizingRules
) -> tuple[list[list[str]], HashingMetadata]:
    """The file groups of each group of a plan, and the buckets that are left."""
    groups: list[list[str]] = []

    def inputs(rows: pa.Table, number: int) -> pa.Table:
        assert number == len(groups)
        groups.append(rows["file_id"].to_pylist())
        return INPUT_SCHEMA.empty_table()

    plan = rules.plan(_slices(metadata, sizes), {"p": metadata}, inputs)
    assert len(plan) == len(plan.extra) == len(groups)
    return groups, new_buckets({"p": metadata}, "1", plan.extra).get("p", metadata)


def test_large_buckets_are_split_and_small_neighbours_merged():
    first = HashingMetadata.first("p", 4)
    ids = first.file_ids()
    groups, after = _planned(first, [201, 10, 20, 199], _rules(max_num_buckets=8, min_num_buckets=1))
    assert groups == [[ids[0]], [ids[1], ids[2]]]
    assert after.ends.tolist() == [first.ends[0] // 2 - 1, first.ends[0], first.ends[2], first.ends[3]]
    assert (after.prefixes[3], after.sequence, after.instant) == (first.prefixes[3], 1, "1")
    assert not set(after.prefixes[:3]) & set(first.prefixes)


@pytest.mark.parametrize(
    ("sizes", "options", "groups"),
    [
        ([201, 202, 203, 204], {"max_num_buckets": 6}, [[0], [1]]),  # as many as may be
        ([201, 202, 203, 204], {}, []),
        ([10, 10, 10, 10], {}, []),  # as few as must be
        ([10, 10, 10, 10], {"min_num_buckets": 2}, [[0, 1, 2]]),
        ([10, None, 10, 10], {"min_num_buckets": 1}, [[2, 3]]),  # who has no file is not told of
        ([17, 1, 1, 1], {"min_num_buckets": 1}, [[0, 1, 2, 3]]),
        ([20, 1, 1, 1], {"min_num_buckets": 1}, [[0, 1], [2, 3]]),  # full enough with the second
        ([20, 20, 20, 1], {"min_num_buckets": 1}, [[0, 1], [2, 3]]),
        ([21, 21, 21, 21], {"min_num_buckets": 1}, []),
    ],
)
def test_limits(sizes: list[int | None], options: dict[str, int], groups: list[list[int]]):
    first = HashingMetadata.first("p", 4)
    found, after = _planned(first, sizes, _rules(**{"max_num_buckets": 4, **options}))
    ids = first.file_ids()
    assert [[ids.index(name) for name in group] for group in found] == groups
    assert after.ends[-1] == first.ends[-1]


def test_other_buckets_are_rewritten_to_be_sorted():
    first = HashingMetadata.first("p", 4)
    rules = replace(_rules(), sorts=True)
    groups, after = _planned(first, [50, 50, None, 50], rules)
    assert len(groups) == 3
    assert after.ends.tolist() == first.ends.tolist()
    assert [a == b for a, b in zip(after.prefixes, first.prefixes, strict=True)] == [False, False, True, False]


@given(st.lists(st.integers(0, MAX), min_size=1, max_size=9, unique=True), st.data())
def test_hashes_stay_with_the_buckets_that_are_not_told_of(ends: list[int], data: st.DataObject):
    places = np.array(sorted(ends), dtype=np.int64)
    before = HashingMetadata("p", "0", places, tuple(f"old{n}" for n in range(len(ends))))
    bucket = data.draw(st.integers(0, len(ends) - 1))
    hashes = np.array([*data.draw(st.lists(st.integers(0, MAX), max_size=50)), *ends, 0, MAX], dtype=np.int64)
    mine = before.buckets_of(hashes) == bucket
    halves = before.split(bucket, ("a", "b"))
    if halves:
        after = before.with_children("1", halves)
        names = np.array(after.prefixes)[after.buckets_of(hashes)]
        assert set(names[mine]) <= {"a", "b"}
        assert (names[~mine] == np.array(before.prefixes)[before.buckets_of(hashes)][~mine]).all()
    if len(ends) > 1:
        other = before.bucket_before(bucket)
        run = [other, bucket]
        merged = before.with_children("1", before.merge(run, "m"))
        names = np.array(merged.prefixes)[merged.buckets_of(hashes)]
        both = np.isin(before.buckets_of(hashes), run)
        assert set(names[both]) <= {"m"}
        assert (names[~both] == np.array(before.prefixes)[before.buckets_of(hashes)][~both]).all()


def test_a_bucket_of_one_hash_is_not_split():
    places = np.array([5, 6, MAX], dtype=np.int64)
    assert HashingMetadata("p", "0", places, ("a", "b", "c")).split(1, ("x", "y")) == ()


def test_rows_go_where_writes_look_for_them():
    first = HashingMetadata.first("p", 4)
    halves = first.split(1, ("a", "b"))
    assert [child.tag for child in halves] == [NodeTag.REPLACE] * 2
    routing = BucketRouting(BUCKETING, first, first.with_children("1", halves), frozenset(first.file_ids()[1:2]))
    keys = pa.array([f"k{n:04d}" for n in range(1000)])
    with pytest.raises(ConfigError, match=r"hash\.field=id it belongs to another bucket"):
        routing.parts(keys)
    everything = replace(routing, sources=frozenset(first.file_ids()))
    parts = everything.parts(keys)
    assert sorted(row for rows in parts.values() for row in rows.to_pylist()) == list(range(1000))
    mine = keys.take(pa.concat_arrays([parts["a-0"], parts["b-0"]]))
    assert {name: len(rows) for name, rows in routing.parts(mine).items()} == {
        name: len(parts[name]) for name in ("a-0", "b-0")
    }


def test_plans_that_are_too_old_or_broken():
    first = HashingMetadata.first("p", 4)
    plan = _rules(max_num_buckets=5).plan(
        _slices(first, [300, 1, 1, 1]), {"p": first}, lambda *_: INPUT_SCHEMA.empty_table()
    )
    known = {"p": replace(first, sequence=1)}
    with pytest.raises(TransactionError, match="split or merged since"):
        new_buckets(known, "1", plan.extra)
    with pytest.raises(FormatError, match="lacks its new buckets"):
        new_buckets({"p": first}, "1", [{"clustering.group.partition": "p"}])
    with pytest.raises(ConfigError, match=r"max\.num\.buckets=2 is less than .*min\.num\.buckets=4"):
        _rules(max_num_buckets=2)


def test_what_is_stored_counts_when_it_is_completed(tmp_path: Path):
    storage = open_storage(str(tmp_path))
    first = HashingMetadata.first("a/b", 4)
    storage.write(f"{FOLDER}/a/b/00000000000000.hashing_meta", first.encode())
    after = first.with_children("20260101000000000", first.split(2, ("a", "b")))
    store_metadata(storage, after)

    def found(*completed: str, marks: bool = False) -> str:
        return load_metadata(storage, ["a/b"], completed, marks=marks)["a/b"].instant

    assert found() == first.instant
    assert found(after.instant) == after.instant
    assert found() == first.instant
    assert found(after.instant, marks=True) == after.instant
    assert found() == after.instant  # by the mark, when the timeline has forgotten it
    loaded = load_metadata(storage, ["a/b"], ())["a/b"]
    assert (loaded.prefixes, loaded.sequence, loaded.ends.tolist()) == (after.prefixes, 1, after.ends.tolist())
    storage.delete(f"{FOLDER}/a/b/{after.instant}.commit")  # It was archived without a mark.
    for file_ids, pending, instant in (
        (after.file_ids(), (), after.instant),
        (after.file_ids(), (after.instant,), first.instant),
        (first.file_ids(), (), first.instant),
    ):
        groups = VisibleGroups(pending, pa.chunked_array([file_ids]))
        assert load_metadata(storage, ["a/b"], (), groups=groups)["a/b"].instant == instant
    delete_metadata(storage, [after.instant])
    assert found(after.instant) == first.instant
    mark_completed(storage, ["a/b"], "20250101000000000")
    assert found() == first.instant


def test_a_job_lists_its_partitions_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if each of them has buckets of an archived clustering, which count if they have file groups."""
    table = HandMadeTable(tmp_path / "t", 9, properties={"hoodie.table.type": "MERGE_ON_READ"})
    first = {partition: HashingMetadata.first(partition, 1) for partition in "abc"}
    rows = {(p, one.file_ids()[0]): [{"id": "1", "p": p, "v": 1}] for p, one in first.items()}
    table.write(1, rows, action=Action.DELTA_COMMIT)
    store_first_metadata(table.storage, first)
    for one in first.values():
        store_metadata(table.storage, one.with_children("20250101000000000", one.split(0, ("x", "y"))))
    options = {
        "hoodie.metadata.enable": "false",
        "hoodie.clustering.plan.strategy.class": PLAN_STRATEGY,
        "hoodie.bucket.index.num.buckets": "1",
        "hoodie.bucket.index.max.num.buckets": "2",
        "hoodie.parquet.max.file.size": "100",
    }
    plan = HudiTable.for_path(str(table.root), options).services.schedule_clustering()
    assert len(plan) == 3
    listed, load = [], FileSystemView.load

    def recorded(client: OpenTable, *_: object, partitions: Sequence[str] | None = None) -> FileSystemView:
        listed.append(partitions)
        return load(client, partitions=partitions)

    monkeypatch.setattr(FileSystemView, "load", recorded)
    job = ClusteringJob.from_plan(TableSnapshot.load(table.client()), plan, Options.parse(options))
    assert listed == [["a", "b", "c"]]
    assert {len(buckets.file_ids()) for buckets in job.buckets.values()} == {2}


HALF = new_file_id("11111111-b4af-3680-bc5a-5ac61c04d8f0", 0)
"""A bucket that a resize creates."""
ARCHIVING = {
    "hoodie.metadata.enable": "false",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def _updated_during_resize(root: Path) -> tuple[HandMadeTable, str]:
    """A table with a planned resize, during which Apache Hudi has written an update to the bucket that is
    split and to one of its halves, whose log file has the instant of the resize; and the id of the former."""
    table = HandMadeTable(root, 6, properties={"hoodie.table.type": "MERGE_ON_READ"})
    first = HashingMetadata.first("a", 1)
    (old,) = first.file_ids()
    store_first_metadata(table.storage, {"a": first})
    table.write(1, {("a", old): ROWS}, action=Action.DELTA_COMMIT)
    plan = ClusteringPlan().encode(6, table.storage.uri)
    table.active.create_requested(Action.REPLACE_COMMIT, at(2), plan)
    table.log(3, {("a", old): [ROWS[0] | {"v": 7}]}, base=1)
    table.log(4, {("a", HALF): [ROWS[0] | {"v": 7}]}, base=2)
    return table, old


def _values(table: HandMadeTable) -> list[int]:
    found: list[int] = HudiTable.for_path(str(table.root)).scan(columns=["v"]).to_arrow()["v"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("removed_by", ["pyhudi", "Apache Hudi"])
def test_updates_written_to_old_and_new_buckets_are_there_once(tmp_path: Path, removed_by: str) -> None:
    """Also when the resize was rolled back, and archival has passed its instant."""
    table, old = _updated_during_resize(tmp_path / "t")
    services = HudiTable.for_path(str(table.root), ARCHIVING).services
    copies = list((table.root / "a").glob(f".{HALF}_{at(2)}*"))
    assert len(copies) == 1
    assert _values(table) == [1, 7]
    if removed_by == "pyhudi":
        services.rollback(at(2))
    else:  # It leaves the log file.
        table.instant(5, Action.ROLLBACK, _rollback_of(2))
        plan = RollbackPlan(at(2), Action.REPLACE_COMMIT).encode()
        table.storage.write(f".hoodie/{at(5)}.rollback.requested", plan)
        table.active.delete_pending(at(2), Action.REPLACE_COMMIT)
    assert at(2) not in table.active.reload().timeline
    assert copies[0].exists() == (removed_by == "Apache Hudi")
    assert _values(table) == [1, 7]
    for n in range(6, 12):
        table.log(n, {("a", old): [ROWS[1] | {"v": n}]}, base=1)
    services.archive()
    start = table.active.reload().timeline.start
    assert start is not None
    assert start > at(2)
    assert _values(table) == [7, 11]
    assert not copies[0].exists()


def test_copies_of_updates_are_deleted_after_a_death(tmp_path: Path) -> None:
    """Of the rollback, at any operation: by the next one, or before archival passes the resize."""
    table, old = _updated_during_resize(tmp_path / "t")
    options = Options.parse(ARCHIVING)

    def act(storage: Storage) -> object:
        return roll_back(TableMetaClient.open(storage, options), options, LOCAL, at(2))

    for storage in deaths(table.root, act):
        dead = copy(table)
        dead.root, dead.active = tmp_path / "dead", ActiveTimeline.load(storage, table.active.layout)
        services = HudiTable.for_path(str(dead.root), ARCHIVING).services
        assert _values(dead) == [1, 7]
        for _ in range(2):
            if at(2) in dead.active.timeline:
                services.rollback(at(2))
                dead.active.refresh()
        assert at(2) not in dead.active.timeline
        for n in range(6, 12):
            dead.log(n, {("a", old): [ROWS[1] | {"v": n}]}, base=1)
        assert services.archive()
        assert _values(dead) == [7, 11]


def test_updates_of_a_resize_that_is_still_planned_stay(tmp_path: Path) -> None:
    """A failed attempt is rolled back, and the plan executed later."""
    table, old = _updated_during_resize(tmp_path / "t")
    (copy,) = (table.root / "a").glob(f".{HALF}_{at(2)}*")
    table.active.to_inflight(table.active.timeline.find(at(2)))
    services = HudiTable.for_path(str(table.root), ARCHIVING).services
    services.rollback(at(2))
    for n in range(6, 12):
        table.log(n, {("a", old): [ROWS[1] | {"v": n}]}, base=1)
    services.archive()
    assert copy.exists()


def test_updates_of_a_resize_that_was_begun_stay_in_version_9(tmp_path: Path) -> None:
    """Their log files have the instant of the resize, too, but the attempt at it has not written them."""
    table = HandMadeTable(tmp_path / "t", 9, properties={"hoodie.table.type": "MERGE_ON_READ"})
    first = HashingMetadata.first("a", 1)
    (old,) = first.file_ids()
    store_first_metadata(table.storage, {"a": first})
    table.write(1, {("a", old): ROWS}, action=Action.DELTA_COMMIT)
    entry = table.active.create_requested(Action.CLUSTERING, at(2), ClusteringPlan().encode(9, table.storage.uri))
    table.log(3, {("a", old): [ROWS[0] | {"v": 7}]})
    (update,) = (table.root / "a").glob(f".{old}_*")
    opened = update.with_name(f".{HALF}_{at(2)}.log.1_0-3-0")
    shutil.copy(update, opened)
    table.active.to_inflight(entry)
    services = HudiTable.for_path(str(table.root), ARCHIVING).services
    services.rollback(at(2))
    assert at(2) in table.active.reload().timeline
    assert opened.exists()
    services.rollback(at(2))
    assert at(2) not in table.active.reload().timeline
    assert not opened.exists()
    assert _values(table) == [1, 7]


def test_a_restore_deletes_copies_of_updates_even_after_a_death(tmp_path: Path) -> None:
    """It removes the plan, and its own rollbacks, so that nothing tells of the resize any more."""
    table, old = _updated_during_resize(tmp_path / "t")
    options = Options.parse(ARCHIVING)

    def act(storage: Storage) -> object:
        client = TableMetaClient.open(storage, options)
        return Restorer(client, options, LOCAL).run(None if pending_restore(client.active_timeline()) else at(1))

    for storage in deaths(table.root, act):
        dead = copy(table)
        dead.root, dead.active = tmp_path / "dead", ActiveTimeline.load(storage, table.active.layout)
        if len(dead.active.timeline) > 1:
            act(storage)
        dead.active.refresh()
        for n in range(6, 12):
            dead.log(n, {("a", old): [ROWS[1] | {"v": n}]}, base=1)
        services = HudiTable.for_path(str(dead.root), ARCHIVING).services
        assert services.archive()
        assert _values(dead) == [1, 11]
        slices = FileSystemView.load(dead.client()).latest_slices()
        assert slices["file_id"].to_pylist() == [old]


def test_a_plan_that_is_renewed_leaves_no_copies_of_updates(tmp_path: Path) -> None:
    """The new plan creates the same buckets, under another instant."""
    table, old = _updated_during_resize(tmp_path / "t")
    table.active.delete_pending(at(2), Action.REPLACE_COMMIT)
    options = Options.parse(
        ARCHIVING
        | {
            "hoodie.clustering.plan.strategy.class": PLAN_STRATEGY,
            "hoodie.bucket.index.num.buckets": "1",
            "hoodie.bucket.index.max.num.buckets": "2",
            "hoodie.parquet.max.file.size": "100",
        }
    )
    plan = schedule_clustering(table.client(), options)
    assert plan.instant is not None
    (update,) = (table.root / "a").glob(f".{old}_*")
    opened = update.with_name(f".{new_file_id(_buckets_of(plan)[0], 0)}_{plan.instant}.log.1_0-3-0")
    shutil.copy(update, opened)
    renewed = reschedule_clustering(table.client(), plan, options)
    assert renewed is not None
    assert _buckets_of(renewed) == _buckets_of(plan)
    assert update.exists()
    assert not opened.exists()


def _buckets_of(plan: ClusteringPlan) -> list[str]:
    """Return the prefixes of the buckets that a plan of one group creates."""
    (extra,) = plan.extra
    return [node["fileIdPrefix"] for node in json.loads(extra["clustering.group.child.node"])]


def test_deleted_copies_are_not_in_the_metadata_table_either(tmp_path: Path) -> None:
    table, _ = _updated_during_resize(tmp_path / "t")
    table.active.delete_pending(at(2), Action.REPLACE_COMMIT)
    TableConfig.load(table.storage).updated(table.storage, set={"hoodie.table.metadata.partitions": "files"})
    delete_slices_of_removed_plans(table.active, {at(2)})
    assert not TableConfig.load(table.storage).metadata_partitions
    assert _values(table) == [1, 7]


def _rollback_of(n: int) -> dict[str, object]:
    return {
        "startRollbackTime": at(n),
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 0,
        "commitsRollback": [at(n)],
        "partitionMetadata": {},
        "version": 1,
        "instantsRollback": [],
    }
