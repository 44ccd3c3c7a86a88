"""Rollback of chosen instants, savepoints, and restores, on tables with and without a metadata table."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import InstantNotFoundError, InvalidOptionError, TransactionError
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.services import snapshot_availability
from pyhudi.services.restore import Restorer
from pyhudi.services.rollback import roll_back
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_listing import list_files
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State, current_instant
from tests.cases import seldom
from tests.tables import HandMadeTable, at
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row
from tests.unit.transaction.test_writer_death import deaths

OPTIONS = {**FAST, "hoodie.metadata.enable": "true", "hoodie.clean.commits.retained": "1"}
PLAIN = {**OPTIONS, "hoodie.metadata.enable": "false"}
ARCHIVING = {
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
    "hoodie.metadata.enable": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory, version: int) -> tuple[Path, list[tuple[str, Rows]]]:
    """A table, and what it held after each write: a load, two deltas, a compaction, two deltas."""
    mor = MorTable(tmp_path_factory.mktemp("grown") / "t", version, options=OPTIONS)
    seen = [(mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)]), mor.rows())]
    for n in range(1, 5):
        seen.append((mor.delta([row("a0", "a", n, f"v{n}"), row(f"b{n % 3}", "b", n, f"w{n}")]), mor.rows()))
        if n == 2:
            mor.table.services.compact()
    return mor.root, seen


@pytest.fixture
def seen(grown: tuple[Path, list[tuple[str, Rows]]]) -> list[tuple[str, Rows]]:
    return grown[1]


@pytest.fixture
def mor(grown: tuple[Path, list[tuple[str, Rows]]], tmp_path: Path, version: int) -> MorTable:
    return MorTable(Path(shutil.copytree(grown[0], tmp_path / "t")), version, options=OPTIONS)


def check(mor: MorTable, rows: Rows, *harmless: str) -> None:
    """The rows are these, with and without the metadata table, which is in use and has no other than ``harmless``
    differences; and the table can be written."""
    assert "files" in mor.client.config.metadata_partitions
    for round in range(2):
        assert mor.rows() == rows
        listed = HudiTable.for_path(str(mor.root), PLAIN).scan(columns=["id", "p", "o", "v"]).to_arrow().to_pylist()
        assert {r["id"]: r for r in listed} == rows
        # the test's writer tells no sizes
        assert not set(mor.table.validate_metadata()["problem"].to_pylist()) - {"of another size", *harmless}
        assert not mor.client.active_timeline().timeline.pending()
        if not round:
            mor.delta([row("a2", "a", 99, "new")])
            rows = rows | {"a2": row("a2", "a", 99, "new")}


def test_the_last_write_is_rolled_back(mor: MorTable, seen: list[tuple[str, Rows]]) -> None:
    result = mor.table.services.rollback()
    assert result.instants == (seen[-1][0],)
    assert mor.client.active_timeline().timeline.find(seen[-1][0]) is None
    check(mor, seen[-2][1])


@pytest.mark.parametrize("folder", [".rollback_backup", "kept/instants"])
def test_instants_are_copied_before_they_go(mor: MorTable, seen: list[tuple[str, Rows]], folder: str) -> None:
    """As in Apache Hudi 1.2.0: all files of the writes that a rollback and a restore undo, under their own names."""
    active = mor.client.active_timeline()
    states = [state for instant in active.timeline for state in active.states(instant)]
    before = {state.file_name: mor.client.storage.read(active.path(state)) for state in states}
    options = {"hoodie.rollback.instant.backup.enabled": "true", "hoodie.rollback.instant.backup.dir": folder}
    services = HudiTable.for_path(str(mor.root), {**OPTIONS, **options}).services
    services.rollback()
    services.restore(seen[-3][0])
    copies = {path.name: path.read_bytes() for path in (mor.root / ".hoodie" / folder).iterdir()}
    assert copies == {name: content for name, content in before.items() if name[:17] > seen[-3][0]}
    assert len(copies) == 9  # of two deltas and a compaction
    check(mor, seen[-3][1])


def test_after_a_death_the_rollback_of_a_table_with_metadata_is_finished(
    mor: MorTable, seen: list[tuple[str, Rows]]
) -> None:
    """All copies of the instant are made, too. In version 6 the command blocks of the dead process are written again,
    and its files are not listed."""
    harmless = ("not in the metadata table",) if mor.version < 8 else ()
    last, options = seen[-1][0], {**OPTIONS, "hoodie.rollback.instant.backup.enabled": "true"}
    active = mor.client.active_timeline()
    names = {state.file_name for i in active.timeline if i.requested == last for state in active.states(i)}

    def act(storage: Storage) -> object:
        opts = Options.parse(options)
        return roll_back(TableMetaClient.open(storage, opts), opts, LOCAL, last)

    for storage in deaths(mor.root, act):
        now = ActiveTimeline.load(storage, active.layout).timeline
        if now.find(last) is not None or now.pending():
            act(storage)
        dead = MorTable(Path(storage.root.removeprefix("file://")), mor.version, options=options)
        assert {path.name for path in (dead.root / ".hoodie/.rollback_backup").iterdir()} == names
        check(dead, seen[-2][1], *harmless)


@pytest.mark.parametrize(
    "folder",
    [
        *("/elsewhere", "../elsewhere", "s3://elsewhere", ""),
        *("timeline", "./timeline/", "metadata/x", ".temp", ".bucket_index/x", "lock", "hoodie.properties"),
    ],
)
def test_copies_of_instants_stay_in_the_table_beside_its_files(
    mor: MorTable, seen: list[tuple[str, Rows]], folder: str
) -> None:
    options = {"hoodie.rollback.instant.backup.enabled": "true", "hoodie.rollback.instant.backup.dir": folder}
    with pytest.raises(
        InvalidOptionError, match=r"instant\.backup\.dir.*(relative to \.hoodie|without files of the table)"
    ):
        HudiTable.for_path(str(mor.root), {**OPTIONS, **options}).services.rollback()
    assert mor.rows() == seen[-1][1]


def test_a_compaction_is_rolled_back(mor: MorTable, seen: list[tuple[str, Rows]]) -> None:
    (compaction,) = mor.table.services.compact().instants
    mor.table.services.rollback(compaction)
    check(mor, seen[-1][1])


def test_writes_that_others_are_built_on_are_not_rolled_back(mor: MorTable, seen: list[tuple[str, Rows]]) -> None:
    with pytest.raises(TransactionError, match="1 later writes"):
        mor.table.services.rollback(seen[-2][0])
    mor.table.services.savepoint(seen[-1][0])
    with pytest.raises(TransactionError, match="has a savepoint"):
        mor.table.services.rollback()
    with pytest.raises(InstantNotFoundError, match="no write '123'"):
        mor.table.services.rollback("123")
    with pytest.raises(InstantNotFoundError, match=rf"which begins at {seen[0][0]}"):
        mor.table.services.savepoint("123")
    assert mor.rows() == seen[-1][1]


def test_a_pending_write_is_rolled_back(mor: MorTable, seen: list[tuple[str, Rows]]) -> None:
    tx = mor.begin()
    mor.write_logs(tx, [row("a0", "a", 50, "never")])
    mor.table.services.rollback(tx.instant)
    check(mor, seen[-1][1])


@pytest.mark.parametrize("to", [3, 1, 0])
def test_the_table_is_what_it_was(mor: MorTable, seen: list[tuple[str, Rows]], to: int) -> None:
    """Also across a compaction, and with one pending that logs were written after."""
    instant, rows = seen[to]
    mor.table.services.schedule_compaction()
    mor.delta([row("a1", "a", 9, "later")])
    plan = mor.table.services.restore(instant, dry_run=True)
    result = mor.table.services.restore(instant)
    assert result.counts["instants"] == len(plan) == {3: 3, 1: 6, 0: 7}[to]
    active = mor.client.active_timeline()
    left = [i.requested for i in active.timeline.writes() if not active.commit_metadata(i).compacted]
    assert left == [i for i, _ in seen[: to + 1]]
    assert not active.timeline.of_actions(Action.ROLLBACK)
    (entry,) = active.timeline.of_actions(Action.RESTORE)
    record = decode_record(Action.RESTORE, State.COMPLETED, active.read(entry))
    assert record["instantsToRollback"] == [requested for requested, _ in plan.targets]
    assert set(record["hoodieRestoreMetadata"]) == set(record["instantsToRollback"])
    check(mor, rows)


def test_rollbacks_before_a_restore_are_known_to_the_metadata_table(
    mor: MorTable, seen: list[tuple[str, Rows]]
) -> None:
    mor.write_logs(mor.begin(), [row("a0", "a", 50, "never")])
    mor.begin().abort()
    mor.table.services.restore(seen[-1][0])
    assert "files" in mor.client.config.metadata_partitions
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mor.rows() == seen[-1][1]


def test_a_savepoint_outlives_cleaning(mor: MorTable, seen: list[tuple[str, Rows]]) -> None:
    instant, rows = seen[1]
    result = mor.table.services.savepoint(instant, user="me", comment="before")
    assert result.counts["files"] > 0
    assert "already" in mor.table.services.savepoint(instant).reason
    (one,) = mor.table.services.savepoints().to_pylist()
    assert (one["instant"], one["user"], one["comment"]) == (instant, "me", "before")
    for n in range(10, 13):
        mor.delta([row("a0", "a", n, f"v{n}"), row("b0", "b", n, f"w{n}")])
        mor.table.services.compact()
    assert mor.table.services.clean()
    mor.table.services.restore(instant)
    check(mor, rows)
    mor.table.services.delete_savepoint(instant)
    assert not len(mor.table.services.savepoints())
    with pytest.raises(InstantNotFoundError, match="no savepoint"):
        mor.table.services.delete_savepoint(instant)


def test_what_is_cleaned_does_not_come_back(mor: MorTable, seen: list[tuple[str, Rows]]) -> None:
    for n in range(10, 13):
        mor.delta([row("a0", "a", n, f"v{n}"), row("b0", "b", n, f"w{n}")])
        mor.table.services.compact()
    assert mor.table.services.clean()
    rows, before = mor.rows(), mor.client.active_timeline().timeline
    with pytest.raises(TransactionError, match="cannot restore"):
        mor.table.services.restore(seen[0][0])
    with pytest.raises(TransactionError, match=r"cannot create a savepoint"):
        mor.table.services.savepoint(seen[0][0])
    assert mor.rows() == rows
    assert mor.client.active_timeline().timeline == before


def test_a_saved_write_may_be_all_that_is_left(tmp_path: Path) -> None:
    """Base files whose instants have been archived stay in view when a restore leaves the saved write alone."""
    options = {
        **FAST,
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "1",
        "hoodie.keep.max.commits": "2",
    }
    mor = MorTable(tmp_path / "t", options=options)
    mor.load([row("a0", "a", 1, "old"), row("b0", "b", 1, "old")])
    for n in range(2, 4):
        mor.delta([row("a0", "a", n, f"v{n}")])
        mor.table.services.compact(options)
        mor.table.services.clean(options)
    saved = mor.delta([row("b1", "b", 8, "new")])
    rows = mor.rows()
    mor.table.services.savepoint(saved)
    for n in range(9, 13):
        mor.delta([row("b2", "b", n, "later")])
    mor.table.services.archive(options)
    mor.table.services.restore(saved)
    assert [i.requested for i in mor.client.active_timeline().timeline.completed().writes()] == [saved]
    check(mor, rows)


# --- tables made by hand ---------------------------------------------------------------------------------------------


@pytest.fixture
def hand(tmp_path: Path, version: int) -> HandMadeTable:
    table = HandMadeTable(tmp_path / "hand", version)
    table.write(1, {("a", "f"): [{"id": "1", "p": "a", "v": 1}], ("b", "g"): [{"id": "2", "p": "b", "v": 1}]})
    table.write(2, {("a", "f"): [{"id": "1", "p": "a", "v": 2}]})
    table.write(
        3,
        {("a", "h"): [{"id": "1", "p": "a", "v": 3}]},
        action=Action.REPLACE_COMMIT,
        operation="INSERT_OVERWRITE",
        replaced=[("a", "f")],
    )
    table.write(4, {("b", "g"): [{"id": "2", "p": "b", "v": 4}]})
    return table


def values(table: HudiTable) -> list[int]:
    found: list[int] = table.scan(columns=["v"]).to_arrow()["v"].to_pylist()
    return sorted(found)


def test_replaced_files_are_seen_again(hand: HandMadeTable) -> None:
    table = HudiTable.for_path(str(hand.root), PLAIN)
    table.services.restore(at(2))
    assert values(table) == [1, 2]


def test_a_savepoint_that_archival_has_passed_is_not_restored(hand: HandMadeTable) -> None:
    """Archived writes cannot be rolled back: their rows would come back with the next write."""
    options = {**PLAIN, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table = HudiTable.for_path(str(hand.root), options | {"hoodie.archive.beyond.savepoint": "true"})
    table.services.savepoint(at(1))
    for n in (5, 6):
        hand.write(n, {("b", "g"): [{"id": "2", "p": "b", "v": n}]})
    table.services.clean()
    assert table.services.archive().instants == (at(2),)  # The savepoint keeps files that the next write replaced.
    before = hand.client().active_timeline().timeline
    for dry_run in (True, False):
        with pytest.raises(TransactionError, match=f"1 later writes have been archived.*{at(2)}.* from {at(3)} on"):
            table.services.restore(at(1), dry_run=dry_run)
    assert hand.client().active_timeline().timeline == before
    assert values(table) == [3, 6]
    table.services.restore(at(3))
    assert values(table) == [1, 3]


def test_files_that_an_archived_write_has_replaced_are_not_missed(hand: HandMadeTable) -> None:
    """Cleaning has deleted them since the last write, of whose snapshot they are no part."""
    options = {**PLAIN, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table = HudiTable.for_path(str(hand.root), options)
    for n in (5, 6, 7):
        hand.write(n, {("b", "g"): [{"id": "2", "p": "b", "v": n}]})
    table.services.clean()
    assert at(3) in table.services.archive().instants
    assert table.services.savepoint(at(7)).instants == (at(7),)
    assert values(table) == [3, 7]


def test_writes_that_were_concurrent_with_the_restored_one_may_be_archived(tmp_path: Path) -> None:
    """They were completed later: rows that they have written cannot be taken back, moved ones need not be."""
    table = HandMadeTable(tmp_path / "t", properties={"hoodie.table.type": "MERGE_ON_READ"})
    for n in (1, 2, 3, 6):
        operation = "COMPACT" if n == 2 else "UPSERT"
        done = {1: 4, 2: 5}.get(n, n)
        table.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}, operation=operation, done=done)
    table.archive(2)
    hudi = HudiTable.for_path(str(table.root), PLAIN)
    assert hudi.services.restore(at(3), dry_run=True).targets == ((at(6), "commit"), (at(1), "commit"))
    table.archive(1)
    with pytest.raises(TransactionError, match=f"1 later writes have been archived.*{at(1)}"):
        hudi.services.restore(at(3), dry_run=True)


def test_after_a_death_the_restore_goes_on(hand: HandMadeTable) -> None:
    def act(storage: Storage) -> object:
        opts = Options.parse(PLAIN)
        return Restorer(TableMetaClient.open(storage, opts), opts, LOCAL).run(at(2))

    for storage in deaths(hand.root, act):
        dead = HudiTable.for_path(storage.root.removeprefix("file://"), PLAIN)
        assert values(dead) in ([3, 4], [1, 3], [1, 2])
        if not ActiveTimeline.load(storage, hand.active.layout).timeline.completed().of_actions(Action.RESTORE):
            dead.services.restore(at(2))
        assert values(dead) == [1, 2]
        now = ActiveTimeline.load(storage, hand.active.layout).timeline
        assert not now.pending()
        assert [i.requested for i in now.writes()] == [at(1), at(2)]


def test_after_a_death_a_restore_of_no_write_goes_on(hand: HandMadeTable) -> None:
    """One to the last write has a plan, too, even if it is empty."""

    def act(storage: Storage) -> object:
        opts = Options.parse(PLAIN)
        return Restorer(TableMetaClient.open(storage, opts), opts, LOCAL).run(at(4))

    for storage in deaths(hand.root, act):
        dead = HudiTable.for_path(storage.root.removeprefix("file://"), PLAIN)
        dead.services.restore(at(4))
        assert values(dead) == [3, 4]
        assert not ActiveTimeline.load(storage, hand.active.layout).timeline.pending()


def test_after_a_death_the_rollback_is_finished(hand: HandMadeTable) -> None:
    def act(storage: Storage) -> object:
        opts = Options.parse(PLAIN)
        return roll_back(TableMetaClient.open(storage, opts), opts, LOCAL, at(4))

    for storage in deaths(hand.root, act):
        dead = HudiTable.for_path(storage.root.removeprefix("file://"), PLAIN)
        assert values(dead) in ([3, 4], [1, 3])
        now = ActiveTimeline.load(storage, hand.active.layout).timeline
        if now.find(at(4)) is not None or now.pending():
            dead.services.rollback(at(4) if now.find(at(4)) is not None else at(3))
        assert values(dead) in ([1, 3], [1, 2])


def test_a_repeated_rollback_of_the_last_write_undoes_no_other(hand: HandMadeTable) -> None:
    def act(storage: Storage) -> object:
        opts = Options.parse(PLAIN)
        return roll_back(TableMetaClient.open(storage, opts), opts, LOCAL)

    for storage in deaths(hand.root, act):
        dead = HudiTable.for_path(storage.root.removeprefix("file://"), PLAIN)
        if ActiveTimeline.load(storage, hand.active.layout).timeline.completed().of_actions(Action.ROLLBACK):
            continue
        assert dead.services.rollback().instants == (at(4),)
        assert values(dead) == [1, 3]


def test_a_savepoint_that_is_being_created_hides_nothing(mor: MorTable, seen: list[tuple[str, Rows]]) -> None:
    """It has the time of its write, which is completed: also where its process has died."""
    last, rows = seen[-1]
    pending = Instant(last, Action.SAVEPOINT, State.REQUESTED, None, "")
    mor.client.active_timeline().to_inflight(pending)
    check_rows(mor, rows)
    mor.delta([row("a1", "a", 9, "after")])
    rows = {**rows, "a1": row("a1", "a", 9, "after")}
    check_rows(mor, rows)
    assert not set(mor.table.validate_metadata()["problem"].to_pylist()) - {"of another size"}
    assert not mor.table.services.delete_orphan_files(dry_run=True).num_rows
    with pytest.raises(TransactionError, match=r"savepoint inflight is pending: create it again \(services\.savepoint"):
        mor.table.services.upgrade(9) if mor.version < 9 else mor.table.services.downgrade(8)
    assert mor.table.services.savepoint(last)
    check_rows(mor, rows)


def check_rows(mor: MorTable, rows: Rows) -> None:
    """The rows are these, with and without the metadata table."""
    assert mor.rows() == rows
    listed = HudiTable.for_path(str(mor.root), PLAIN).scan(columns=["id", "p", "o", "v"]).to_arrow().to_pylist()
    assert {r["id"]: r for r in listed} == rows


@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_a_service_that_another_program_completes_meanwhile_is_undone(
    mor: MorTable, seen: list[tuple[str, Rows]], service: str
) -> None:
    """The restore has died after its plan, in which the service is pending."""
    instant, rows = seen[-1]
    getattr(mor.table.services, f"schedule_{service}")()
    other = MorTable(Path(shutil.copytree(mor.root, mor.root.with_name("other"))), mor.version, options=mor.options)
    getattr(other.table.services, f"run_{service}")()
    plan = mor.table.services.restore(instant, dry_run=True)
    ((pending, _),) = plan.targets
    active = mor.client.active_timeline()
    active.create_requested(Action.RESTORE, current_instant(mor.client.config.timezone), plan.encode(mor.version))
    shutil.copytree(other.root, mor.root, dirs_exist_ok=True)
    assert mor.client.active_timeline().timeline.is_completed(pending)
    assert mor.table.services.restore(dry_run=True).targets == plan.targets
    mor.table.services.restore()
    assert not [path for path in mor.root.rglob("*") if pending in path.name and path.parent.name in FILE_IDS]
    check(mor, rows)


def test_another_restore_has_to_wait(hand: HandMadeTable) -> None:
    hand.active.create_requested(Action.RESTORE, at(9), b"")
    table = HudiTable.for_path(str(hand.root), PLAIN)
    with pytest.raises(Exception, match="restore"):
        table.services.restore(at(1))
    assert values(table) == [3, 4]


def test_an_unknown_instant_is_named(hand: HandMadeTable) -> None:
    table = HudiTable.for_path(str(hand.root), PLAIN)
    with pytest.raises(InstantNotFoundError, match="123"):
        table.services.restore("123")
    for dry_run in (False, True):
        with pytest.raises(InstantNotFoundError, match="no restore is pending"):
            table.services.restore(dry_run=dry_run)
    with pytest.raises(InstantNotFoundError, match="123"):
        table.services.savepoint("123")


def test_what_an_archived_clean_has_deleted_does_not_come_back(tmp_path: Path, version: int) -> None:
    """Apache Hudi archives cleans apart from commits, which a savepoint or a pending instant retains."""
    table = HandMadeTable(tmp_path / "t", version)
    table.write(1, {("a", "f"): [{"id": "1", "p": "a", "v": 1}], ("a", "g"): [{"id": "2", "p": "a", "v": 1}]})
    for n in range(2, 5):
        table.write(n, {("a", "f"): [{"id": "1", "p": "a", "v": n}]})
    table.clean(5, keep_from=at(4), deleted=[(n, "a", "f") for n in range(1, 4)])
    active = table.active.reload()
    archived = active.timeline.find(at(5), Action.CLEAN)
    assert archived is not None
    for state in active.states(archived):
        active.delete(state)
    services = HudiTable.for_path(str(table.root), PLAIN).services
    lost = rf"cleaning has deleted 1 files .* such as 'a/f of {at(3)}'"
    for attempt in (services.savepoint, services.restore):
        with pytest.raises(TransactionError, match=lost):
            attempt(at(3))
    with pytest.raises(TransactionError, match=lost):
        services.rollback()
    assert services.savepoint(at(4)).instants == (at(4),)


def test_a_rollback_needs_only_the_file_groups_of_its_write(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HandMadeTable(tmp_path / "t", version)
    table.write(1, {(p, "f"): [{"id": p, "p": p, "v": 1}] for p in "abcd"})
    table.write(2, {("b", "f"): [{"id": "b", "p": "b", "v": 2}]})
    table.write(3, {("a", "f"): [{"id": "a", "p": "a", "v": 3}]})
    table.clean(4, keep_from=at(2), deleted=[(1, "b", "f")])
    listed: list[Sequence[str] | None] = []

    def recorded(storage: Storage, partitions: Sequence[str] | None = None) -> tuple[pa.Table, list[str]]:
        listed.append(partitions)
        return list_files(storage, partitions)

    monkeypatch.setattr(snapshot_availability, "list_files", recorded)
    HudiTable.for_path(str(table.root), PLAIN).services.rollback(at(3))
    assert listed == [["a"]]
    with pytest.raises(TransactionError, match="cleaning has deleted 1 files"):
        HudiTable.for_path(str(table.root), PLAIN).services.rollback(at(2))


def test_later_commits_name_the_files_of_archived_ones(tmp_path: Path, version: int) -> None:
    table = HandMadeTable(tmp_path / "t", version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(1, {("a", "f"): [{"id": "1", "p": "a", "v": 1}]}, action=Action.DELTA_COMMIT)
    table.write(2, {("a", "g"): [{"id": "2", "p": "a", "v": 2}]}, action=Action.DELTA_COMMIT)
    table.log(3, {("a", "f"): [{"id": "1", "p": "a", "v": 3}]}, base=1)
    active = table.active.reload()
    archived = active.timeline.find(at(1))
    assert archived is not None
    for state in active.states(archived):
        active.delete(state)
    services = HudiTable.for_path(str(table.root), PLAIN).services
    assert len(services.restore(at(2), dry_run=True)) == 1
    table.remove(1, "a", "f")
    if version < 8:  # whose log files are named after their slices
        for log in (table.root / "a").glob(".f_*"):
            log.unlink()
    with pytest.raises(TransactionError, match=rf"such as 'a/f of {at(1)}'"):
        services.restore(at(2), dry_run=True)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_only_write_that_is_not_archived_cannot_be_rolled_back(tmp_path, version):
    made = HandMadeTable(tmp_path / "t", version)
    updated, other = (("a", f"{n}1111111-0000-4000-8000-000000000001-0") for n in (1, 2))
    for n in range(1, 8):
        more = {other: [{"id": "2", "p": "a", "v": n}]} if n == 1 else {}
        made.write(n, {updated: [{"id": "1", "p": "a", "v": n}], **more})

    def table():
        return HudiTable.for_path(str(made.root), ARCHIVING)

    def rows():
        return sorted((row["id"], row["v"]) for row in table().scan().to_arrow().to_pylist())

    table().services.clean()
    table().services.archive()
    table().services.rollback()
    before = rows()
    assert [key for key, _ in before] == ["1", "2"]
    with pytest.raises(TransactionError, match=r"the write before it, \d+, is archived"):
        table().services.rollback()
    assert rows() == before


@pytest.mark.parametrize("version", [6, seldom(8), 9])
def test_a_savepoint_does_not_stand_for_the_write_before(tmp_path, version):
    options = {**ARCHIVING, "hoodie.archive.beyond.savepoint": "true"}
    made = HandMadeTable(tmp_path / "t", version)
    for n in range(1, 10):
        made.write(n, {("a", "11111111-0000-4000-8000-000000000001-0"): [{"id": "1", "p": "a", "v": n}]})
        if n == 2:
            HudiTable.for_path(str(made.root), options).services.savepoint(at(2))

    def table():
        return HudiTable.for_path(str(made.root), options)

    table().services.clean()
    table().services.archive()
    table().services.rollback()
    assert table().scan(columns=["v"]).to_arrow().to_pylist() == [{"v": 8}]
    with pytest.raises(TransactionError, match="is archived"):
        table().services.rollback()
    assert table().scan(columns=["v"]).to_arrow().to_pylist() == [{"v": 8}]


@pytest.mark.parametrize("metadata", ["true", seldom("false")])
@pytest.mark.parametrize("by", ["restore", "rollback"])
def test_deltas_of_before_an_upgrade_are_undone(tmp_path, by, metadata):
    mor = MorTable(tmp_path / "t", 6, options={**FAST, "hoodie.metadata.enable": metadata})
    mor.load([row("1", "a", 1, "v1"), row("2", "b", 1, "y1")])
    instants = [mor.delta([row("1", "a", n, f"v{n}")]) for n in (2, 3, 4)]
    if by == "restore":
        mor.table.services.savepoint(instants[1])
    mor.table.services.upgrade(9)
    mor.version = 9
    if by == "restore":
        mor.table.services.restore(instants[1])
    else:
        mor.table.services.rollback()  # the compaction of the upgrade
        mor.table.services.rollback(instants[2])

    def rows():
        return sorted((one["id"], one["v"]) for one in mor.table.scan(columns=["id", "v"]).to_arrow().to_pylist())

    assert rows() == [("1", "v3"), ("2", "y1")]
    mor.table.services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert rows() == [("1", "v3"), ("2", "y1")]
