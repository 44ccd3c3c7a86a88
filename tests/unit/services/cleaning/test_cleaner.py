"""Cleans of whole tables: what they delete, what the timeline and the metadata table say, and what a death leaves."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import LockError, QueryError, TransactionError
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.services.cleaning.clean_planner import pending_cleans
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.services.post_commit_services import PostCommitServices
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.action_avro import decode_record, encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.transaction.commit_outcome import Committed
from tests.fault_injection import FaultyStorage
from tests.tables import HandMadeTable, at
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row
from tests.unit.transaction.test_writer_death import deaths

OPTIONS = {
    **FAST,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
    "hoodie.clean.commits.retained": "2",
}


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory, version: int) -> Path:
    mor = MorTable(tmp_path_factory.mktemp("grown") / "t", version, options=OPTIONS)
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    for n in range(6):
        mor.delta([row(f"{p}{n % 3}", p, n + 1, f"v{n}") for p in FILE_IDS])
        mor.table.services.compact(only_if_due=True)
    return mor.root


@pytest.fixture
def mor(grown: Path, tmp_path: Path, version: int) -> MorTable:
    return MorTable(Path(shutil.copytree(grown, tmp_path / "t")), version, options=OPTIONS)


def files(mor: MorTable) -> set[str]:
    found: set[str] = set(mor.table.inspect.files(all_versions=True)["path"].to_pylist())
    return found


def check(mor: MorTable, rows: object) -> None:
    """The rows are these, with and without the metadata table, which lists what is there."""
    assert mor.rows() == rows
    listed = HudiTable.for_path(str(mor.root), {**OPTIONS, "hoodie.metadata.enable": "false"})
    found = listed.scan(columns=["id", "p", "o", "v"]).to_arrow().to_pylist()
    assert {r["id"]: r for r in found} == rows
    # of these tables the commits do not tell sizes of files
    assert not set(mor.table.validate_metadata()["problem"].to_pylist()) - {"of another size"}
    assert not mor.client.active_timeline().timeline.pending()


def test_old_slices_go_and_the_snapshot_stays(mor: MorTable) -> None:
    before, rows = files(mor), mor.rows()
    plan = mor.table.services.clean(dry_run=True)
    assert files(mor) == before
    assert len(plan) > 0
    result = mor.table.services.clean()
    assert result
    assert result.counts["files"] == len(plan) == len(before - files(mor))
    assert before - files(mor) == set(plan.paths().to_pylist())
    assert set(mor.table.inspect.files()["path"].to_pylist()) <= files(mor)
    check(mor, rows)
    again = mor.table.services.clean()
    assert not again
    assert "no partition has changed" in again.reason


def test_the_last_clean_is_read_once(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    mor.table.services.clean()
    read, records = ActiveTimeline.completed_record, []
    monkeypatch.setattr(
        ActiveTimeline,
        "completed_record",
        lambda active, instant: records.append(instant.action) or read(active, instant),
    )
    mor.table.services.clean(dry_run=True)
    assert records.count(Action.CLEAN) == 1


def test_the_timeline_says_what_was_done(mor: MorTable, version: int) -> None:
    plan = mor.table.services.clean(dry_run=True)
    (instant,) = mor.table.services.clean().instants
    active = mor.client.active_timeline()
    entry = active.timeline.find(instant, Action.CLEAN)
    assert entry is not None
    record = active.completed_record(entry)
    assert record["earliestCommitToRetain"] == plan.earliest_instant
    assert record["totalFilesDeleted"] == len(plan)
    assert {p: set(r["successDeleteFiles"]) for p, r in record["partitionMetadata"].items()} == {
        p: set(names) for p, names in plan.names_by_partition().items()
    }
    requested, inflight = (active.read_state(entry, s) for s in (State.REQUESTED, State.INFLIGHT))
    assert inflight == (requested if version < 9 else b"")
    with pytest.raises(QueryError, match="cleaner has removed"):
        mor.table.scan(as_of=active.timeline.writes().instants[0].requested).to_arrow()
    mor.table.scan(as_of=plan.earliest_instant).to_arrow()


def test_indexes_forget_what_is_deleted(mor: MorTable) -> None:
    def known() -> dict[str, int]:
        client = mor.client
        table = MetadataTable.open(TableSnapshot.load(client))
        return {p: table.scan(p, []).num_rows for p in ("column_stats", "bloom_filters")}

    before = known()
    mor.table.services.clean()
    after = known()
    # base files of the first load were written without
    assert after["bloom_filters"] == sum(path.endswith(".parquet") for path in files(mor))
    assert after["column_stats"] < before["column_stats"]


@pytest.mark.slow
def test_after_a_death_the_metadata_table_is_right_again(mor: MorTable) -> None:
    rows = mor.rows()
    gone = set(mor.table.services.clean(dry_run=True).paths().to_pylist())

    def act(storage: Storage) -> object:
        opts = Options.parse(OPTIONS)
        return Cleaner(TableMetaClient.open(storage, opts), opts, LOCAL).run()

    for storage in deaths(mor.root, act):
        dead = MorTable(Path(storage.root.removeprefix("file://")), mor.version, options=OPTIONS)
        dead.table.services.clean()
        check(dead, rows)
        assert not files(dead) & gone


def test_a_clean_that_another_process_has_done_meanwhile_is_not_planned_again(mor: MorTable) -> None:
    """Else there would be a second clean of the same files, whose bound may be an earlier one."""
    client, opts = mor.client, Options.parse(OPTIONS)
    slow, table = Cleaner(client, opts, LOCAL), TableSnapshot.load(client)
    plan = slow.plan()
    assert len(plan)
    assert mor.table.services.clean().instants
    assert slow.schedule(table, plan, only_if_due=False) is None
    assert len(mor.client.active_timeline().timeline.of_actions(Action.CLEAN)) == 1


def test_a_clean_whose_lock_was_lost_is_not_completed(mor: MorTable) -> None:
    """Another process may complete it, too: from version 8 on there would be two files."""
    before = mor.rows()
    opts = Options.parse({**OPTIONS, "hoodie.write.lock.provider": "FileSystemBasedLockProvider"})

    class Slow(FaultyStorage):
        def create(self, path: str, data: bytes) -> None:
            super().create(path, data)
            if path.startswith(".hoodie/metadata/") and path.endswith("deltacommit.requested"):
                assert self.exists(".hoodie/lock")
                self.delete(".hoodie/lock")  # somebody has broken the lock

    with pytest.raises(LockError, match="no longer held"):
        Cleaner(TableMetaClient.open(Slow(mor.client.storage), opts), opts, LOCAL).run()
    (pending,) = mor.client.active_timeline().timeline.pending()
    assert mor.table.services.clean().instants == (pending.requested,)
    check(mor, before)


@pytest.mark.parametrize("by", ["latest snapshot", "savepoint"])
def test_a_plan_of_files_that_are_needed_is_refused(mor: MorTable, by: str) -> None:
    needed = mor.table.inspect.files()["path"].to_pylist()[0]
    if by == "savepoint":
        mor.table.services.savepoint()
        mor.delta([row(f"{p}0", p, 9, "newer") for p in FILE_IDS])
        assert mor.table.services.compact()
        assert needed not in mor.table.inspect.files()["path"].to_pylist()
    active = mor.client.active_timeline()
    partition, _, name = needed.rpartition("/")
    record = {
        "earliestInstantToRetain": None,
        "lastCompletedCommitTimestamp": "",
        "policy": "KEEP_LATEST_COMMITS",
        "filesToBeDeletedPerPartition": {},
        "version": 2,
        "filePathsToBeDeletedPerPartition": {
            partition: [{"filePath": f"file:/else/{partition}/{name}", "isBootstrapBaseFile": False}]
        },
        "partitionsToBeDeleted": [],
        "extraMetadata": {},
    }
    active.create_requested(
        Action.CLEAN, "20990101000000000", encode_record(Action.CLEAN, State.REQUESTED, record, mor.version)
    )
    before = files(mor)
    with pytest.raises(TransactionError, match=f"would delete 1 files that the table needs, such as '{needed}'"):
        mor.table.services.clean()
    assert files(mor) == before


def test_after_a_commit_it_runs_by_itself_unless_told_not_to(mor: MorTable) -> None:
    assert mor.storage is not None
    for off in ("hoodie.clean.automatic", "hoodie.table.services.enabled"):
        assert not PostCommitServices(mor.storage, Options.parse({**OPTIONS, off: "false"})).clean_and_archive(LOCAL)
    beside = Options.parse({**OPTIONS, "hoodie.clean.async": "true", "hoodie.archive.automatic": "false"})
    assert not PostCommitServices(mor.storage, beside).clean_and_archive(LOCAL)
    rows = mor.rows()
    with PostCommitServices(mor.storage, beside).run_async(LOCAL):
        pass
    assert mor.client.active_timeline().timeline.of_actions(Action.CLEAN)
    check(mor, rows)


# --- tables made by hand ---------------------------------------------------------------------------------------------


def by_hand(tmp_path: Path, version: int, **kwargs: str) -> HandMadeTable:
    return HandMadeTable(tmp_path / "hand", version, **kwargs)  # type: ignore[arg-type]


def rows_of(n: int) -> list[dict[str, object]]:
    return [{"id": "1", "p": "a", "v": n}]


def hand_files(table: HandMadeTable) -> set[str]:
    found = HudiTable.for_path(str(table.root)).inspect.files(all_versions=True)
    return set(found["path"].to_pylist())


KEEP_ONE = {**FAST, "hoodie.clean.commits.retained": "1", "hoodie.metadata.enable": "false"}


def test_replaced_groups_go_and_so_does_a_partition_without_files(tmp_path: Path, version: int) -> None:
    table = by_hand(tmp_path, version)
    table.write(1, {("a", "f"): rows_of(1), ("b", "g"): [{"id": "2", "p": "b", "v": 1}]})
    table.write(2, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=[("a", "f")])
    table.write(3, {("b", "g"): [{"id": "2", "p": "b", "v": 3}]})
    services = HudiTable.for_path(str(table.root), KEEP_ONE).services
    plan = services.clean(dry_run=True)
    assert plan.partitions == ("a",)
    assert services.clean().counts["files"] == 1
    assert not (table.root / "a").exists()
    assert {p.partition("/")[0] for p in hand_files(table)} == {"b"}


def test_a_partition_stays_while_something_is_written(tmp_path: Path, version: int) -> None:
    table = by_hand(tmp_path, version)
    table.write(1, {("a", "f"): rows_of(1), ("b", "g"): [{"id": "2", "p": "b", "v": 1}]})
    table.write(2, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=[("a", "f")])
    table.write(3, {("b", "g"): [{"id": "2", "p": "b", "v": 3}]})
    table.write(4, {("b", "h"): [{"id": "3", "p": "b", "v": 3}]}, pending=True)
    HudiTable.for_path(str(table.root), KEEP_ONE).services.clean()
    assert (table.root / "a" / ".hoodie_partition_metadata").exists()
    assert not list((table.root / "a").glob("*.parquet"))


@pytest.mark.parametrize("again", [False, True])
def test_a_plan_does_not_let_others_delete_folders(tmp_path: Path, version: int, again: bool) -> None:
    """Apache Hudi deletes the folders that a pending plan names, with all that was written to them meanwhile."""
    table = by_hand(tmp_path, version)
    table.write(1, {("a", "f"): rows_of(1), ("b", "g"): [{"id": "2", "p": "b", "v": 1}]})
    table.write(2, {}, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION", replaced=[("a", "f")])
    table.write(3, {("b", "g"): [{"id": "2", "p": "b", "v": 3}]})
    client, opts = TableMetaClient.open(str(table.root)), Options.parse(KEEP_ONE)
    cleaner = Cleaner(client, opts, LOCAL)
    cleaner.schedule(TableSnapshot.load(client), cleaner.plan(), only_if_due=False)
    active = table.active.reload()
    (plan,) = pending_cleans(active)
    record = decode_record(Action.CLEAN, State.REQUESTED, active.read(active.timeline.find(plan.instant)))
    assert not record["partitionsToBeDeleted"]
    assert plan.partitions == ("a",)
    if again:
        table.write(4, {("a", "h"): rows_of(4)})
    assert HudiTable.for_path(str(table.root), KEEP_ONE).services.clean().instants == (plan.instant,)
    assert (table.root / "a").exists() == again
    assert {path for path in hand_files(table) if path.startswith("a/")} == set(again * [f"a/h_0-0-0_{at(4)}.parquet"])


def test_files_of_savepoints_stay_until_they_are_deleted(tmp_path: Path, version: int) -> None:
    table = by_hand(tmp_path, version)
    for n in range(1, 5):
        table.write(n, {("a", "f"): rows_of(n)})
    saved = f"f_0-0-0_{at(1)}.parquet"
    record = {
        "savepointedBy": "",
        "savepointedAt": 1,
        "comments": "",
        "partitionMetadata": {"a": {"partitionPath": "a", "savepointDataFile": [saved]}},
        "version": 1,
    }
    active = table.active
    entry = active.to_inflight(
        type(next(iter(active.timeline)))(at(1), Action.SAVEPOINT, State.REQUESTED, None, ""), b""
    )
    done = active.complete(entry, encode_record(Action.SAVEPOINT, State.COMPLETED, record, version), at(9))
    services = HudiTable.for_path(str(table.root), KEEP_ONE).services
    services.clean()
    assert hand_files(table) == {f"a/f_0-0-0_{at(n)}.parquet" for n in (1, 3, 4)}
    for state in active.states(done):
        active.delete(state)
    table.write(6, {("b", "g"): [{"id": "2", "p": "b", "v": 3}]})
    services.clean()
    assert hand_files(table) == {f"a/f_0-0-0_{at(n)}.parquet" for n in (4,)} | {f"b/g_0-0-0_{at(6)}.parquet"}


def test_versions_of_files_are_counted(tmp_path: Path, version: int) -> None:
    table = by_hand(tmp_path, version)
    for n in range(1, 6):
        table.write(n, {("a", "f"): rows_of(n)})
    options = {
        **KEEP_ONE,
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.cleaner.fileversions.retained": "2",
    }
    HudiTable.for_path(str(table.root), options).services.clean()
    assert hand_files(table) == {f"a/f_0-0-0_{at(n)}.parquet" for n in (4, 5)}


def test_filters_leave_other_partitions_for_later(tmp_path: Path, version: int) -> None:
    table = by_hand(tmp_path, version)
    for n in range(1, 5):
        table.write(n, {(p, f"f{p}"): [{"id": p, "p": p, "v": n}] for p in ("a", "b")})
    only = {**KEEP_ONE, "hoodie.clean.partition.filter.selected": "a"}
    HudiTable.for_path(str(table.root), only).services.clean()
    left = hand_files(table)
    assert len([p for p in left if p[0] == "a"]) == 2
    assert len([p for p in left if p[0] == "b"]) == 4
    HudiTable.for_path(str(table.root), {**KEEP_ONE, "hoodie.clean.partition.filter.regex": "[b-z]"}).services.clean()
    assert len(hand_files(table)) == 4


def test_the_trigger_counts_commits_since_the_last_clean(tmp_path: Path, version: int) -> None:
    table = by_hand(tmp_path, version)
    for n in range(1, 5):
        table.write(n, {("a", "f"): rows_of(n)})
    services = HudiTable.for_path(str(table.root), {**KEEP_ONE, "hoodie.clean.trigger.max.commits": "5"}).services
    assert "4 commits since the last clean, due at 5" in services.clean(only_if_due=True).reason
    assert services.clean()


def test_a_clean_without_files_moves_the_earliest_instant_on(tmp_path: Path, version: int) -> None:
    table = by_hand(tmp_path, version)
    for n in range(1, 5):
        table.write(n, {("a", f"f{n}"): rows_of(n)})
    assert not HudiTable.for_path(str(table.root), KEEP_ONE).services.clean()
    found = HudiTable.for_path(str(table.root), {**KEEP_ONE, "hoodie.write.empty.clean.interval.hours": "1"}).services
    assert len(found.clean().instants) == 1
    assert not found.clean()
    assert not pending_cleans(table.client().active_timeline())


def test_pending_writes_are_left_alone(tmp_path: Path, version: int) -> None:
    table = by_hand(tmp_path, version)
    for n in range(1, 5):
        table.write(n, {("a", "f"): rows_of(n)})
    table.write(5, {("a", "f"): rows_of(5)}, pending=True)
    HudiTable.for_path(str(table.root), KEEP_ONE).services.clean()
    assert f"a/f_0-0-0_{at(5)}.parquet" in hand_files(table)


def test_after_a_death_the_next_clean_goes_on(tmp_path: Path, version: int) -> None:
    table = by_hand(tmp_path, version)
    for n in range(1, 5):
        table.write(n, {("a", "f"): rows_of(n)})

    def act(storage: Storage) -> object:
        opts = Options.parse(KEEP_ONE)
        return Cleaner(TableMetaClient.open(storage, opts), opts, LOCAL).run()

    for storage in deaths(table.root, act):
        dead = HudiTable.for_path(storage.root.removeprefix("file://"), KEEP_ONE)
        dead.services.clean()
        files = set(dead.inspect.files(all_versions=True)["path"].to_pylist())
        assert files == {f"a/f_0-0-0_{at(n)}.parquet" for n in (3, 4)}
        assert dead.scan(columns=["v"]).to_arrow()["v"].to_pylist() == [4]
        assert not ActiveTimeline.load(storage, table.active.layout).timeline.pending()


def test_files_of_the_same_name_in_several_partitions(tmp_path: Path) -> None:
    """The bucket index opens the same bucket of several partitions under one name."""
    mor = MorTable(tmp_path / "table")
    zero, one = (f"0000000{n}-aaaa-4000-8000-000000000001-0" for n in range(2))

    def load(groups: list[tuple[str, str]]) -> str:
        tx = mor.begin("BULK_INSERT")
        stats = [mor.write_base_file(tx, p, f, [row(f"{p}{f[7]}", p, 1, tx.instant)]) for p, f in groups]
        mor.commit(tx, "BULK_INSERT", stats)
        return tx.instant

    load([(p, f) for f in (zero, one) for p in "ab"])
    instants = [load([("a", zero), ("b", one)]) for _ in range(4)]
    opts = Options.parse({**FAST, "hoodie.clean.commits.retained": "1"})
    killed = Cleaner(mor.client, opts, LOCAL)

    def die(_: object) -> None:
        raise KeyboardInterrupt

    killed.delete_files = die  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    assert Cleaner(mor.client, opts, LOCAL).run().counts["files"] == 6
    rows = mor.rows()
    mor.table.services.rollback(instants[-1])
    assert mor.rows().keys() == rows.keys()
    mor.table.services.restore(instants[-2])
    assert mor.rows().keys() == rows.keys()


def test_rolling_metadata(mor: MorTable) -> None:
    """A clean takes over entries of the newest write that has them, and keeps them for later writes."""

    def delta(mor: MorTable, extra: dict[str, str]) -> dict[str, str]:
        tx = mor.begin()
        stats = write_stats(mor.write_logs(tx, [row("a0", "a", 90, "new")]))
        assert isinstance(tx.commit(CommitMetadata("UPSERT", stats, extra)), Committed)
        return dict(mor.client.active_timeline().commit_metadata(last(mor, Action.DELTA_COMMIT)).extra)

    def last(mor: MorTable, action: str) -> Instant:
        return mor.client.active_timeline().timeline.of_actions(action).by_completion()[-1]

    keys = "hoodie.write.rolling.metadata."
    rolling = replace(mor, options={**OPTIONS, keys + "keys": "offset,job", keys + "timeline.lookback.commits": "1"})
    assert delta(rolling, {"offset": "7"}) == {"offset": "7"}
    rolling.table.services.clean()
    clean = last(mor, Action.CLEAN)
    assert mor.client.active_timeline().completed_record(clean)["extraMetadata"] == {"offset": "7"}
    assert delta(mor, {"other": "x"}) == {"other": "x"}
    assert delta(rolling, {"job": "b"}) == {"job": "b", "offset": "7"}
