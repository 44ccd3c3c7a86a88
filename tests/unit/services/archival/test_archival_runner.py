"""Archival of tables: what stays, what queries still find, and what a death leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import CorruptInstantError, InstantNotFoundError, QueryError, TransactionError
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.services.archival import archival_plan
from pyhudi.services.archival.archival_runner import archive_table
from pyhudi.services.cleaning.clean_progress import LastClean
from pyhudi.services.clustering.clustering_job import ClusteringJob
from pyhudi.services.clustering.clustering_runner import ThreadClusteringRunner, run_pending_clusterings
from pyhudi.services.post_commit_services import PostCommitServices
from pyhudi.storage import Storage
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.archive.lsm_timeline_writer import LsmTimelineWriter
from pyhudi.timeline.instant import Action, Instant, State, next_instant
from pyhudi.timeline.plans.clean_plan import CleanPlan
from pyhudi.timeline.plans.index_plan import encode_completed_build
from pyhudi.timeline.plans.rollback_plan import RollbackMetadata, RollbackPlan, RollbackRequest, RolledBackPartition
from tests.fault_injection import Fault, FaultyStorage, Killed
from tests.tables import HandMadeTable, at
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row
from tests.unit.transaction.test_writer_death import deaths

OPTIONS = {
    **FAST,
    "hoodie.metadata.enable": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "5",
}
BY_TIME = {"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"}
"""Without counting delta commits for the next compaction, which would keep them."""


@pytest.fixture
def hand(tmp_path: Path, version: int) -> HandMadeTable:
    """A table with 8 commits, each of a file group of its own."""
    table = HandMadeTable(tmp_path / "t", version)
    for n in range(1, 9):
        table.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]})
    return table


def opened(table: HandMadeTable, **options: str) -> HudiTable:
    return HudiTable.for_path(str(table.root), {**OPTIONS, **options})


def on_timeline(table: HandMadeTable) -> list[str]:
    return [i.requested for i in table.client().active_timeline().timeline.writes()]


def savepoint(table: HandMadeTable, n: int) -> None:
    record = {"savepointedBy": "", "savepointedAt": 1, "comments": "", "partitionMetadata": {}, "version": 1}
    active = table.active
    entry = active.to_inflight(Instant(at(n), Action.SAVEPOINT, State.REQUESTED, None, ""))
    active.complete(entry, encode_record(Action.SAVEPOINT, State.COMPLETED, record, table.version), at(50))


def test_what_is_old_leaves_and_is_still_there(hand: HandMadeTable) -> None:
    everything = opened(hand).history(archived=True)["requested"].to_pylist()
    plan = opened(hand).services.archive(dry_run=True, only_if_due=True)
    result = opened(hand).services.archive(only_if_due=True)
    assert result.instants == tuple(i.requested for i in plan.instants) == tuple(at(n) for n in range(1, 6))
    assert on_timeline(hand) == [at(n) for n in (6, 7, 8)]
    table = opened(hand)
    assert table.history()["requested"].to_pylist() == [at(n) for n in (8, 7, 6)]
    assert table.history(archived=True)["requested"].to_pylist() == everything
    assert sorted(table.scan(columns=["v"]).to_arrow()["v"].to_pylist()) == list(range(1, 9))
    changed = table.scan(begin=at(2), columns=["v"]).to_arrow()
    assert sorted(changed["v"].to_pylist()) == list(range(3, 9))
    assert not table.services.archive(only_if_due=True)


def test_nothing_leaves_before_there_are_many(hand: HandMadeTable) -> None:
    table = opened(hand, **{"hoodie.keep.max.commits": "8"})
    assert not table.services.archive(only_if_due=True)
    assert len(table.services.archive().instants) == 5


def test_after_a_commit_it_runs_by_itself(hand: HandMadeTable) -> None:
    off = Options.parse({**OPTIONS, "hoodie.archive.automatic": "false"})
    assert not PostCommitServices(hand.storage, off).clean_and_archive(LOCAL)
    (result,) = PostCommitServices(hand.storage, Options.parse(OPTIONS)).clean_and_archive(LOCAL)
    assert result.service == "archive"


def test_more_stays_if_the_cleaner_retains_more(hand: HandMadeTable) -> None:
    table = opened(hand, **{"hoodie.clean.commits.retained": "5"})
    table.services.archive()
    assert on_timeline(hand) == [at(n) for n in range(3, 9)]


def test_the_commit_before_a_pending_one_stays(hand: HandMadeTable) -> None:
    hand.active.create_requested(Action.COMMIT, "20260101000000003500")
    opened(hand).services.archive()
    assert on_timeline(hand)[0] == at(2)  # the cleaner retains all from the third on, and one more than that stays


def test_savepoints_stop_it_or_stay_behind(hand: HandMadeTable) -> None:
    savepoint(hand, 3)
    opened(hand).services.archive()
    assert on_timeline(hand)[0] == at(3)
    opened(hand, **{"hoodie.archive.beyond.savepoint": "true"}).services.archive()
    assert on_timeline(hand) == [at(n) for n in (3, 6, 7, 8)]
    assert len(opened(hand).scan(columns=["v"]).to_arrow()) == 8


def test_merge_on_read_tables_are_not_archived_beyond_savepoints(tmp_path: Path, version: int) -> None:
    mor = MorTable(tmp_path / "t", version, options={**OPTIONS, "hoodie.archive.beyond.savepoint": "true"})
    loaded = [mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])]
    loaded += [mor.delta([row("a0", "a", n, f"v{n}")]) for n in range(1, 9)]
    mor.table.services.savepoint(loaded[2])
    archived = mor.table.services.archive(BY_TIME).instants
    assert archived == (tuple(loaded[:2]) if version >= 8 else (*loaded[:2], *loaded[3:6]))
    assert mor.rows()["a0"]["v"] == "v8"


def test_a_commit_stays_that_completed_after_later_ones(tmp_path: Path) -> None:
    """Readers that go by completion look for it among the active ones; but the timeline does not grow without end."""
    hand = HandMadeTable(tmp_path / "t")
    for n in range(1, 12):
        hand.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}, done=9 if n == 3 else n)
    opened(hand, **{"hoodie.keep.min.commits": "4"}).services.archive()
    assert on_timeline(hand) == [at(n) for n in range(3, 12)]
    hand.write(12, {("a", "f12"): [{"id": "12", "p": "a", "v": 12}]})
    opened(hand).services.archive()
    assert on_timeline(hand) == [at(n) for n in (10, 11, 12)]
    hand.write(13, {("a", "f13"): [{"id": "13", "p": "a", "v": 13}]}, done=40)
    for n in range(14, 18):
        hand.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]})
    opened(hand).services.archive()
    assert on_timeline(hand) == [at(n) for n in range(13, 18)]
    for n in range(18, 24):
        hand.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]})
    opened(hand).services.archive()
    assert on_timeline(hand) == [at(n) for n in (21, 22, 23)]


def test_a_replacecommit_stays_while_the_replaced_files_are_there(hand: HandMadeTable) -> None:
    hand.write(9, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=[("a", "f1")])
    for n in range(10, 16):
        hand.write(n, {("b", f"g{n}"): [{"id": str(n), "p": "b", "v": n}]})
    opened(hand).services.archive()
    assert on_timeline(hand)[0] == at(9)
    opened(hand).services.clean()
    opened(hand).services.archive()
    assert on_timeline(hand)[0] == at(13)
    assert 1 not in opened(hand).scan(columns=["v"]).to_arrow()["v"].to_pylist()


def test_a_saved_replacecommit_stays_while_the_replaced_files_are_there(tmp_path: Path, version: int) -> None:
    hand = HandMadeTable(tmp_path / "t", version)
    hand.write(1, {("a", "f"): [{"id": "1", "p": "a", "v": 1}]})
    replacing = {("a", "g"): [{"id": "1", "p": "a", "v": 2}]}
    replaced = [("a", "f")]
    hand.write(2, replacing, action=Action.REPLACE_COMMIT, operation="INSERT_OVERWRITE", replaced=replaced)
    opened(hand).services.savepoint(at(2))
    for n in range(3, 12):
        hand.write(n, {("b", f"f{n}"): [{"id": str(n), "p": "b", "v": n}]})
    table = opened(hand, **{"hoodie.archive.beyond.savepoint": "true"})
    table.services.archive()
    before = hand.client().active_timeline().timeline
    assert [i.requested for i in before.writes()] == [at(n) for n in (2, 9, 10, 11)]
    with pytest.raises(TransactionError, match=f"cannot delete the savepoint {at(2)}.*Clean the table first"):
        table.services.delete_savepoint(at(2))
    assert hand.client().active_timeline().timeline == before
    table.services.clean()
    table.services.delete_savepoint(at(2))
    assert on_timeline(hand) == [at(n) for n in (9, 10, 11)]
    assert sorted(table.scan(columns=["v"]).to_arrow()["v"].to_pylist()) == list(range(2, 12))


def test_the_first_writes_of_a_table_are_not_archived_with_their_savepoints(hand: HandMadeTable) -> None:
    table = opened(hand)
    for n in (1, 2, 3):
        table.services.savepoint(at(n))
    for n in (3, 2):
        table.services.delete_savepoint(at(n))
    assert on_timeline(hand) == [at(n) for n in range(1, 9)]
    assert table.services.restore(at(1))
    assert table.scan(columns=["v"]).to_arrow()["v"].to_pylist() == [1]


def test_a_file_of_a_later_attempt_stays_when_its_instant_is_archived(tmp_path: Path, version: int) -> None:
    """Apache Hudi's second attempt at a compaction may write a file of the same name as the first one, which its
    rollback still names when the compaction has been archived."""
    hand = HandMadeTable(tmp_path / "t", version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    hand.write(1, {("a", "f"): [{"id": "1", "p": "a", "v": 1}]}, action=Action.DELTA_COMMIT)
    for n in (3, 4):
        hand.write(n, {("b", f"f{n}"): [{"id": str(n), "p": "b", "v": n}]}, action=Action.DELTA_COMMIT)
    hand.write(2, {("a", "f"): [{"id": "1", "p": "a", "v": 2}]}, done=6, operation="COMPACT")
    (base,) = (path for path in (hand.root / "a").iterdir() if at(2) in path.name)
    request = RollbackRequest("a", base_instant=at(2), files=(f"file://{base}",))
    plan = RollbackPlan(at(2), Action.COMPACTION, (request,))
    rollback = hand.active.to_inflight(hand.active.create_requested(Action.ROLLBACK, at(5), plan.encode()))
    partitions = {"a": RolledBackPartition(deleted=request.files)}
    done = RollbackMetadata(start=at(5), millis=1, instant=at(2), action=Action.COMPACTION, partitions=partitions)
    hand.active.complete(rollback, done.encode(), at(5) if version >= 8 else None)
    for n in range(7, 13):
        hand.write(n, {("b", f"f{n}"): [{"id": str(n), "p": "b", "v": n}]}, action=Action.DELTA_COMMIT)
        if n in (9, 12):
            options = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.keep.min.commits": "4"}
            assert opened(hand, **options).services.archive().instants
            left = {i.requested for i in hand.client().active_timeline().timeline}
            assert at(2) not in left
            assert (at(5) in left) == (n == 9)
            hand.active = hand.active.reload()
    assert base.exists()
    assert sorted(opened(hand).scan(columns=["v"]).to_arrow()["v"].to_pylist()) == [2, 3, 4, *range(7, 13)]


def test_cleans_and_rollbacks_go_along_but_not_the_last_clean(hand: HandMadeTable) -> None:
    for n in (1, 2):
        record = {
            "startCleanTime": at(n),
            "timeTakenInMillis": 1,
            "totalFilesDeleted": 0,
            "earliestCommitToRetain": at(n),
        }
        name = f"2026010100000{n:04d}5"
        hand.active.create_requested(Action.CLEAN, name, b"")
        entry = hand.active.to_inflight(hand.active.timeline.find(name, Action.CLEAN))  # type: ignore[arg-type]
        content = encode_record(
            Action.CLEAN, State.COMPLETED, {**record, "partitionMetadata": {}, "version": 2}, hand.version
        )
        hand.active.complete(entry, content, at(40 + n))
    opened(hand).services.archive()
    left = [i.requested for i in hand.client().active_timeline().timeline.of_actions(Action.CLEAN)]
    assert left == ["202601010000000025"]


def test_nothing_older_stays_than_archived_delta_commits(tmp_path: Path, version: int) -> None:
    """Apache Hudi would take them for pending ones, and lose their updates in its next compaction."""
    mor = MorTable(tmp_path / "t", version, options=OPTIONS)
    services = mor.table.services
    loaded = mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    for n in (1, 2):
        mor.delta([row("a0", "a", n, f"v{n}")])
        services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    mor.delta([row("b0", "b", 3, "v3")])
    assert services.clean()
    last_clean = LastClean.load(mor.client.active_timeline())
    assert last_clean is not None
    saved = mor.delta([row("a1", "a", 4, "v4")])
    undone = mor.delta([row("a1", "a", 5, "v5")])
    services.restore(saved)
    for n in range(6, 12):
        mor.delta([row("a2", "a", n, f"v{n}")])
    expected = mor.rows()
    assert (expected["a1"]["v"], expected["a2"]["v"]) == ("v4", "v11")
    if version >= 8:
        active = mor.client.active_timeline()
        pending = active.create_requested(
            Action.CLEAN, next_instant(active.latest_time), CleanPlan().encode(version, "")
        )
        assert "a clean is pending" in services.archive(BY_TIME).reason
        active.delete_pending(pending.requested, Action.CLEAN)
    assert services.archive(BY_TIME)
    left = mor.client.active_timeline().timeline
    assert [i.action for i in left][:1] == ["clean" if version < 8 else "deltacommit"]
    assert bool(left.of_actions(Action.RESTORE)) is (version < 8)
    history = mor.table.history(archived=True)["action"].to_pylist()
    assert (history.count("clean"), history.count("restore"), history.count("rollback")) == (
        (1, 1, 0) if version < 8 else (2, 0, 1)
    )
    active = mor.client.active_timeline()
    last = LastClean.load(active)
    assert last is not None
    assert last == replace(last_clean, instant=last.instant)
    assert (last.instant == last_clean.instant) is (version < 8)
    with pytest.raises(QueryError, match="the cleaner has removed files"):
        mor.table.scan(as_of=loaded).to_arrow()
    assert mor.rows() == expected
    assert not services.clean()
    if version >= 8:
        archived = read_archived_timeline(active.storage, active.layout, actions=(Action.ROLLBACK,))
        (rollback,) = (
            decode_record(Action.ROLLBACK, State.COMPLETED, data) for data in archived["metadata"].to_pylist()
        )
        assert rollback["commitsRollback"] == [undone]
        assert set(rollback["partitionMetadata"]) == {"a"}
        assert len(rollback["partitionMetadata"]["a"]["successDeleteFiles"]) == rollback["totalFilesDeleted"] == 1


def test_index_builds_go_before_anything_is_archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would tell a run after a death that they had to go."""
    mor = MorTable(tmp_path / "t", options=OPTIONS)
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    active = mor.client.active_timeline()
    built = next_instant(active.latest_time)
    index_build = active.to_inflight(active.create_requested(Action.INDEXING, built, b"plan"))
    active.complete(index_build, encode_completed_build(["column_stats"], built, 9), next_instant(built))
    for n in range(6, 14):
        mor.delta([row("a2", "a", n, f"v{n}")])
    before = mor.client.active_timeline().timeline
    with monkeypatch.context() as patch:
        patch.setattr(LsmTimelineWriter, "add", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            mor.table.services.archive(BY_TIME)
    left = mor.client.active_timeline().timeline
    assert set(before) - set(left) == set(before.of_actions(Action.INDEXING))
    assert built not in mor.table.services.archive(BY_TIME).instants
    assert mor.rows()["a2"]["v"] == "v13"


def test_restores_stay_while_they_tell_that_indexes_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**OPTIONS, "hoodie.metadata.enable": "true", "hoodie.metadata.compact.max.delta.commits": "2"}
    mor = MorTable(tmp_path / "t", options=options)
    saved = mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    mor.delta([row("a1", "a", 5, "v5")])
    mor.table.services.restore(saved)
    for n in range(6, 14):
        mor.delta([row("a2", "a", n, f"v{n}")])
    (restore,) = mor.client.active_timeline().timeline.of_actions(Action.RESTORE)
    monkeypatch.setattr(archival_plan, "undone_since_built", lambda *_: saved)
    kept = mor.table.services.archive(BY_TIME, dry_run=True).instants
    assert all(i.requested < restore.requested for i in kept)
    monkeypatch.undo()
    assert restore in mor.table.services.archive(BY_TIME, dry_run=True).instants


def test_after_a_death_the_next_one_goes_on(hand: HandMadeTable) -> None:
    everything = opened(hand).history(archived=True)["requested"].to_pylist()

    def act(storage: Storage) -> object:
        opts = Options.parse(OPTIONS)
        return archive_table(TableMetaClient.open(storage, opts), opts)

    for storage in deaths(hand.root, act):
        dead = HudiTable.for_path(storage.root.removeprefix("file://"), OPTIONS)
        assert dead.history(archived=True)["requested"].to_pylist() == everything
        assert sorted(dead.scan(columns=["v"]).to_arrow()["v"].to_pylist()) == list(range(1, 9))
        dead.services.archive()
        assert dead.history(archived=True)["requested"].to_pylist() == everything
        left = ActiveTimeline.load(storage, hand.active.layout).timeline
        assert [i.requested for i in left] == [at(n) for n in (6, 7, 8)]


def test_a_later_attempt_that_a_dead_archival_has_archived_is_not_undone(tmp_path: Path, version: int) -> None:
    """Its completed file, alone on the timeline, looks like a late one of the attempt that was rolled back."""
    mor = MorTable(tmp_path / "t", version, options=OPTIONS)
    numbers = iter(range(8))

    def load(times: int) -> None:
        for n in islice(numbers, times):
            mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS], {p: f"{i[:-1]}{n}" for p, i in FILE_IDS.items()})

    load(1)
    clustering = mor.table.services.schedule_clustering().instant
    load(2)
    with pytest.raises(RuntimeError, match="first attempt"):
        run_pending_clusterings(mor.client, Options.parse(OPTIONS), FailingRunner())
    assert mor.table.services.run_clustering()
    load(3)
    mor.table.services.clean()
    rows, dying = mor.rows(), FaultyStorage(mor.client.storage, [Fault("writes", 1, "after", Killed, path="inflight")])
    with pytest.raises(Killed):
        archive_table(TableMetaClient.open(dying, OPTIONS), Options.parse(OPTIONS))
    left = mor.client.active_timeline().timeline.find(clustering or "")
    assert left is not None
    assert left.is_completed
    load(1)
    assert rows.items() <= mor.rows().items()


class FailingRunner(ThreadClusteringRunner):
    def run(self, job: ClusteringJob) -> Any:
        raise RuntimeError(f"the first attempt at {len(job.groups)} groups")


def test_a_write_that_a_dead_archival_has_archived_gets_no_savepoint(hand: HandMadeTable) -> None:
    """The next archival would remove the write from under it."""
    opts, where = Options.parse(OPTIONS), "_version_$" if hand.version >= 8 else r"\.commits_\.archive\.1_"
    dying = FaultyStorage(hand.active.storage, [Fault("writes", 1, "after", Killed, path=where)])
    with pytest.raises(Killed):
        archive_table(TableMetaClient.open(dying, opts), opts)
    first = on_timeline(hand)[0]
    with pytest.raises(InstantNotFoundError, match="older instants are archived"):
        opened(hand).services.savepoint(first)
    assert first not in on_timeline(hand)
    assert opened(hand).services.savepoint()


def test_a_corrupt_manifest_is_named_and_nothing_is_moved(hand: HandMadeTable) -> None:
    if hand.version < 8:
        pytest.skip("the archive of version 6 has no manifests")
    history = hand.root / hand.active.layout.history
    history.mkdir(parents=True, exist_ok=True)
    (history / "_version_").write_text("1")
    (history / "manifest_1").write_text("{")
    before = on_timeline(hand)
    with pytest.raises(CorruptInstantError, match="manifest_1"):
        opened(hand).services.archive()
    assert on_timeline(hand) == before


def test_files_of_a_level_are_merged(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path / "t", 9)
    options: dict[str, Any] = {"hoodie.timeline.compaction.batch.size": "2"}
    for n in range(1, 9):
        table.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]})
        opened(table, **options).services.archive()
    history = table.root / table.active.layout.history
    number = (history / "_version_").read_text()
    names = [f["fileName"] for f in json.loads((history / f"manifest_{number}").read_text())["files"]]
    assert {name.rpartition("_")[2] for name in names} > {"2.parquet"}
    assert len(list(history.glob("manifest_*"))) <= 3
    assert len(opened(table).history(archived=True)) == 8


def test_small_archive_files_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = HandMadeTable(tmp_path / "t", 6)
    options = {"hoodie.archive.merge.enable": "true", "hoodie.archive.merge.files.batch.size": "3"}
    folder, seen = table.root / table.active.layout.history, []
    for n in range(1, 12):
        table.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]})
        if n == 8:  # a run that dies before it deletes what it has merged
            with monkeypatch.context() as patch:
                patch.setattr(LocalStorage, "delete_many", Mock(side_effect=KeyboardInterrupt))
                with pytest.raises(KeyboardInterrupt):
                    opened(table, **options).services.archive()
        else:
            opened(table, **options).services.archive()
        assert opened(table).history(archived=True)["requested"].to_pylist() == [at(i) for i in range(n, 0, -1)]
        seen.append(len(list(folder.glob(".commits_.archive.*"))))
    assert max(seen) <= 4
    assert seen[-1] <= 2
    big = {**options, "hoodie.archive.merge.small.file.limit.bytes": "1"}
    for n in range(12, 16):
        table.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]})
        opened(table, **big).services.archive()
    assert len(list(folder.glob(".commits_.archive.*"))) == seen[-1] + 4


def test_with_a_metadata_table_its_compaction_is_the_limit(tmp_path: Path, version: int) -> None:
    options = {**OPTIONS, "hoodie.metadata.enable": "true", "hoodie.metadata.compact.max.delta.commits": "8"}
    mor = MorTable(tmp_path / "t", version, options=options)
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    for _ in range(2):
        mor.delta([row("a0", "a", 1, "v1")])
    assert "not been compacted" in mor.table.services.archive({"hoodie.keep.min.commits": "1"}).reason
    for n in range(2, 9):
        mor.delta([row("a0", "a", n, f"v{n}")])
    # without any compaction the last delta commits are counted for the next one
    result = mor.table.services.archive(BY_TIME)
    assert result
    assert mor.rows()["a0"]["v"] == "v8"
    assert not set(mor.table.validate_metadata()["problem"].to_pylist()) - {"of another size"}
    mor.delta([row("a0", "a", 9, "v9")])
    assert mor.rows()["a0"]["v"] == "v9"
