"""Compaction run by threads of this process: the same rows in new base files, whoever writes or dies meanwhile."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import register_merger, unregister_merger
from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import (
    BusyError,
    ConflictError,
    HudiError,
    InstantNotFoundError,
    ServiceAfterCommitError,
    TransactionError,
    UnsupportedTableError,
)
from pyhudi.format.base_file.parquet import read_footer
from pyhudi.metadata.writer.file_stats_reader import LOCAL
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.services.compaction.compaction_planner import schedule
from pyhudi.services.compaction.compaction_runner import compact_one, run_in_threads, run_pending
from pyhudi.services.post_commit_services import after_deltacommit
from pyhudi.services.rollback import roll_back
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.fault_injection import Fault, FaultyStorage, Killed
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.heartbeat import HeartbeatPolicy
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.markers import IOType, Markers
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.planned_transaction import PlanAttempt, PlannedTransaction
from pyhudi.transaction.rollback.rollback_executor import RollbackExecutor
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.settings.write_context import TaskId
from pyhudi.write.write_status import decode_stats
from tests.golden.expected import NAMES, unpack
from tests.unit.merge.mergers import First
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, SCHEMA, MorTable, row
from tests.unit.transaction.test_writer_death import deaths

VERSIONS = (6, 8, 9)
SMALL = {"hoodie.index.bloom.num_entries": "10", "hoodie.bloom.index.filter.dynamic.max.entries": "10"}
MOR = [name for name in NAMES if "_mor_" in name and not name.startswith("v5_")]  # version 5 is not written


@pytest.fixture(params=VERSIONS)
def mor(request: pytest.FixtureRequest, tmp_path: Path) -> MorTable:
    """A table with a base file and two logs in either of its file groups."""
    table = MorTable(tmp_path / "table", request.param, options=FAST | SMALL)
    table.load([row(f"{p}{i}", p, 1, "base") for p in FILE_IDS for i in range(5)])
    table.delta([row("a0", "a", 2, "first"), row("a1", "a", 0, "late"), row("b0", "b", 2, "first")], [("a2", "a", 3)])
    table.delta([row("a0", "a", 3, "second"), row("a9", "a", 1, "new")], [("b1", "b", None)])
    return table


def slices(table: MorTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = FileSystemView.load(table.client).latest_slices().to_pylist()
    return found


def test_rows_stay_what_they_are(mor: MorTable):
    before = mor.table.scan().to_arrow().sort_by("_hoodie_record_key")
    result = mor.table.services.compact()
    after = mor.table.scan().to_arrow().sort_by("_hoodie_record_key")
    assert after.drop(["_hoodie_file_name"]) == before.drop(["_hoodie_file_name"])
    assert {r["id"]: r["v"] for r in mor.rows().values() if r["v"] != "base"} == {
        "a0": "second",
        "b0": "first",
        "a9": "new",
    }
    assert mor.table.scan(read_optimized=True).to_arrow().sort_by("_hoodie_record_key") == after
    for one in slices(mor):
        assert one["log_paths"] == []
        assert one["base_instant"] == result.instants[0]
        footer = read_footer(mor.root / one["base_path"])
        here = after.filter(pc.equal(after["p"], one["partition"]))["_hoodie_record_key"].to_pylist()
        assert (footer.min_key, footer.max_key) == (min(here), max(here))
        bloom = footer.bloom_filter()
        assert bloom is not None
        assert all(bloom.might_contain(pa.array(here)))
        assert set(after["_hoodie_file_name"].to_pylist()) >= {one["base_path"].rpartition("/")[2]}


def test_what_the_commit_says(mor: MorTable):
    result = mor.table.services.compact()
    active = mor.client.active_timeline()
    (instant,) = [i for i in active.timeline if i.action == Action.COMMIT]
    metadata = active.commit_metadata(instant)
    assert (metadata.operation, metadata.compacted, instant.requested) == ("COMPACT", True, result.instants[0])
    assert metadata.schema_json is not None
    stats = {s["partitionPath"]: s for s in metadata.stats.to_pylist()}
    wanted = {
        "numWrites": 5,
        "numUpdateWrites": 1,
        "numDeletes": 1,
        "numInserts": 1,
        "totalLogRecords": 5,
        "totalUpdatedRecordsCompacted": 4,
        "totalLogFilesCompacted": 2,
        "totalLogBlocks": 3,
        "prevBaseFile": f"{FILE_IDS['a']}_0-0-0_{stats['a']['prevCommit']}.parquet" if mor.version >= 8 else None,
    }
    assert {name: stats["a"][name] for name in wanted} == wanted
    assert stats["a"]["fileSizeInBytes"] == (mor.root / stats["a"]["path"]).stat().st_size
    assert not list((mor.root / ".hoodie" / ".temp").iterdir())
    names = {path.name.split(".", 1)[1] for path in (mor.root / active.layout.folder).iterdir() if path.is_file()}
    assert {"compaction.requested", "compaction.inflight", "commit"} <= names


def test_time_travel_and_changes(mor: MorTable):
    """A compaction is no change: it shows in no incremental query, and the past stays what it was."""
    instant = mor.table.latest_instant
    past = mor.rows()
    mor.table.services.compact()
    bookmark = mor.table.completion_of(mor.table.latest_instant)
    assert mor.table.scan(begin=bookmark).to_arrow().num_rows == 0
    as_of = mor.table.scan(as_of=instant, columns=["id", "p", "o", "v"]).to_arrow().to_pylist()
    assert {r["id"]: r for r in as_of} == past
    changed = mor.table.scan(begin=mor.table.completion_of(instant)).to_arrow()
    assert changed.num_rows == 0


def test_nothing_to_do(mor: MorTable):
    assert mor.table.services.compact().num_log_files == 4
    again = mor.table.services.compact()
    assert not again
    assert repr(again).startswith(
        "CompactionResult(compaction: nothing done; there are no log files to merge; requested"
    )
    assert not mor.table.services.run_compaction()
    with pytest.raises(InstantNotFoundError, match="20200101000000000"):
        mor.table.services.run_compaction("20200101000000000")


def test_only_if_due(mor: MorTable):
    early = mor.table.services.compact(only_if_due=True)
    assert not early
    assert early.reason.startswith("not due: ")
    plan = mor.table.services.schedule_compaction(only_if_due=True)
    assert plan.instant is None
    assert plan.reason.startswith("not due: 3 of 5 delta commits")
    three = {"hoodie.compact.inline.max.delta.commits": "3"}
    assert mor.table.services.compact(three, only_if_due=True)


def test_dry_runs_leave_nothing(mor: MorTable):
    before = sorted(mor.root.rglob("*"))
    assert len(mor.table.services.compact(dry_run=True)) == 2
    assert sorted(mor.root.rglob("*")) == before


def test_writes_between_plan_and_run(mor: MorTable):
    """They go to the slices that the plan has opened, and are not touched."""
    services = mor.table.services
    plan = services.schedule_compaction()
    assert plan.state is State.REQUESTED
    mor.delta([row("a0", "a", 9, "after")], [("b2", "b", None)])
    before = mor.rows()
    assert not len(services.compact(dry_run=True)), "no slice has two plans"
    result = services.run_compaction(plan.instant)
    assert result.instants == (plan.instant,)
    assert mor.rows() == before
    assert all(len(one["log_paths"]) == 1 and one["base_instant"] == plan.instant for one in slices(mor))
    services.compact()
    assert mor.rows() == before
    assert all(not one["log_paths"] for one in slices(mor))


def test_a_write_around_the_plan(mor: MorTable):
    """It began before the plan was made and ends after the compaction; only tables with completion times allow it."""
    tx = mor.begin()
    if mor.version < 8:
        plan = mor.table.services.schedule_compaction()
        assert plan.instant is None
        assert "is pending" in plan.reason
        tx.abort()
        return
    stats = mor.write_logs(tx, [row("a0", "a", 9, "around")])
    mor.table.services.compact()
    mor.commit(tx, "UPSERT", stats)
    assert mor.rows()["a0"]["v"] == "around"
    (one,) = [one for one in slices(mor) if one["partition"] == "a"]
    assert len(one["log_paths"]) == 1
    mor.table.services.compact()
    assert mor.rows()["a0"]["v"] == "around"


def serially(job: CompactionJob) -> pa.Table:
    """One slice after the other, so that operations come in one order."""
    return decode_stats([compact_one(job, i, TaskId(i, 0, 0)) for i in range(len(job.slices))])


def test_dying_anywhere(mor: MorTable):
    """Whoever dies while planning or running: the rows are there, and the next run finishes; at one point it has to be
    asked for, as another program might be at work."""
    before, doubtful = mor.rows(), 0
    opts = Options.parse(mor.options)

    def act(storage: Storage) -> None:
        client = TableMetaClient.open(storage, opts)
        plan = schedule(client, opts)
        run_pending(client, opts, serially, instant=plan.instant)

    seen = set()
    for storage in deaths(mor.root, act):
        left = MorTable(Path(storage.root.removeprefix("file://")), mor.version, options=mor.options)
        assert left.rows() == before
        seen.add(tuple(i.action for i in left.client.active_timeline().timeline.pending()))
        try:
            left.table.services.compact()
        except BusyError:  # died between the inflight file and the claim on it
            doubtful += 1
            (inflight,) = left.client.active_timeline().timeline.pending()
            left.table.services.run_compaction(inflight.requested)
        assert left.rows() == before
        assert all(not one["log_paths"] for one in slices(left))
        assert not left.client.active_timeline().timeline.pending()
        _only_known_files(left)
    assert {(), ("compaction",)} <= seen
    assert doubtful <= 2


def _only_known_files(table: MorTable) -> None:
    """No file of a failed attempt is left."""
    known = {path for one in FileSystemView.load(table.client).all_slices().to_pylist() for path in _paths(one)}
    found = {str(p.relative_to(table.root)) for part in FILE_IDS for p in (table.root / part).iterdir()}
    assert {path for path in found if "partition_metadata" not in path and not path.endswith(".tmp")} == known


def _paths(one: dict[str, Any]) -> Iterator[str]:
    if one["base_path"]:
        yield one["base_path"]
    yield from one["log_paths"]


def test_writers_go_on_after_a_failed_run(mor: MorTable):
    """A writer rolls back failed writes, and leaves a failed compaction to the next one."""
    services = mor.table.services
    plan = services.schedule_compaction()

    def broken(job: CompactionJob) -> pa.Table:
        compact_one(job, 0, TaskId(0, 0, 0))
        raise RuntimeError("the cluster is gone")

    opts = Options.parse(mor.options)
    with pytest.raises(RuntimeError, match="the cluster is gone"):
        run_pending(mor.client, opts, broken)
    (left,) = services.pending_compactions()
    assert (left.instant, left.state) == (plan.instant, State.REQUESTED)
    mor.delta([row("a0", "a", 9, "after")])
    before = mor.rows()
    assert services.run_compaction().instants == (plan.instant,)
    assert mor.rows() == before


def test_an_inflight_run_is_undone_first(mor: MorTable):
    plan = mor.table.services.schedule_compaction()
    opts = Options.parse(mor.options)
    dead = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant or "", "COMPACT", "slow"), opts
    )
    assert dead is not None
    dead.to_inflight()
    mor.delta([row("a0", "a", 9, "after")])
    result = mor.table.services.compact()
    assert plan.instant in result.instants
    assert mor.rows()["a0"]["v"] == "after"
    rollbacks = mor.client.active_timeline().timeline.of_actions(Action.ROLLBACK)
    assert len(rollbacks) == 1
    with pytest.raises(ConflictError):
        dead.commit(CommitMetadata("COMPACT"))


def test_two_at_a_time(mor: MorTable):
    """With several writers declared the living are not rolled back; undeclared, the slower one fails."""
    several = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    opts = Options.parse({**mor.options, **several})
    mor.table.services.schedule_compaction(several)

    def second(job: CompactionJob) -> pa.Table:
        with pytest.raises(TransactionError, match="another process"):
            run_pending(mor.client, opts, run_in_threads)
        return run_in_threads(job)

    assert run_pending(mor.client, opts, second)
    mor.delta([row("a0", "a", 9, "after")])
    mor.table.services.schedule_compaction()
    before = mor.rows()

    def beside(job: CompactionJob) -> pa.Table:
        assert after_deltacommit(mor.client.storage, opts, run_in_threads) == ()
        return run_in_threads(job)

    assert len(run_pending(mor.client, opts, beside).instants) == 1, "a write of another process leaves it alone"
    assert mor.rows() == before
    mor.delta([row("a0", "a", 9, "after")])
    mor.table.services.schedule_compaction()
    before = mor.rows()

    def overtaken(job: CompactionJob) -> pa.Table:
        stats = run_in_threads(job)
        assert mor.table.services.run_compaction()
        return stats

    with pytest.raises((ConflictError, TransactionError)):
        run_pending(mor.client, Options.parse(mor.options), overtaken)
    assert mor.rows() == before


def test_plans_that_later_log_files_need(mor: MorTable):
    """In version 6 the plan opens file slices, to which later writes append."""
    mor.table.services.schedule_compaction()
    instant = next(i.requested for i in mor.client.active_timeline().timeline if i.action == Action.COMPACTION)
    mor.delta([row("a0", "a", 9, "later")])
    before, opts = mor.rows(), Options.parse(mor.options)
    if mor.version >= 8:
        roll_back(mor.client, opts, LOCAL, instant, with_plan=True)
    else:
        with pytest.raises(TransactionError, match=rf"{instant}.*cannot be removed with its plan.*run_compaction"):
            roll_back(mor.client, opts, LOCAL, instant, with_plan=True)
        assert mor.table.services.run_compaction(instant)
    assert mor.rows() == before


def test_plans_that_no_later_log_file_needs(tmp_path: Path):
    """In version 6, too, a write to other file groups does not keep a plan. One that is running may."""
    mor = MorTable(tmp_path / "t", 6)
    mor.load([row("a0", "a", 1, "x"), row("b0", "b", 1, "x")])
    mor.delta([row("a0", "a", 2, "y")])
    instant = mor.table.services.schedule_compaction().instant
    assert instant is not None
    mor.delta([row("b0", "b", 3, "z")])
    before = mor.rows()
    with mor.begin() as running:
        with pytest.raises(TransactionError, match=rf"pending writes may add log files .*{running.instant}"):
            mor.table.services.rollback(instant)
        running.abort()
    mor.table.services.rollback(instant)
    assert instant not in mor.client.active_timeline().timeline
    assert mor.rows() == before


@pytest.mark.parametrize("service", ["compaction", "clustering"])
def test_a_plan_that_was_not_started_is_removed(mor: MorTable, service: str):
    before = mor.rows()
    services = mor.table.services
    schedule = services.schedule_compaction if service == "compaction" else services.schedule_clustering
    plan = schedule()
    assert plan.instant is not None
    services.rollback(plan.instant)
    assert plan.instant not in mor.client.active_timeline().timeline
    assert mor.rows() == before
    begun = schedule()
    assert begun.instant is not None
    active = mor.client.active_timeline()
    active.to_inflight(active.timeline.find(begun.instant))
    services.rollback(begun.instant)
    assert begun.instant in mor.client.active_timeline().timeline, "it is retried"
    active.to_inflight(active.timeline.find(begun.instant))
    roll_back(mor.client, Options.parse(mor.options), LOCAL, begun.instant, with_plan=True)
    assert begun.instant not in mor.client.active_timeline().timeline
    assert mor.rows() == before


def test_a_write_does_not_wait_for_plans_of_another_thread(mor: MorTable):
    """Otherwise the writes of other threads would wait for the same, too."""
    opts, started, may_end = Options.parse(mor.options), threading.Event(), threading.Event()
    mor.table.services.schedule_compaction()

    def slow(job: CompactionJob) -> pa.Table:
        started.set()
        assert may_end.wait(30)
        return run_in_threads(job)

    with ThreadPoolExecutor() as pool:
        running = pool.submit(run_pending, mor.client, opts, slow)
        assert started.wait(30)
        writing = pool.submit(after_deltacommit, mor.client.storage, opts, run_in_threads)
        try:
            assert writing.result(timeout=20) == ()
        finally:
            may_end.set()
        assert len(running.result().instants) == 1


def test_threads_take_turns(mor: MorTable):
    before, opts, started = mor.rows(), Options.parse(mor.options), threading.Event()
    mor.table.services.schedule_compaction()

    def slow(job: CompactionJob) -> pa.Table:
        started.set()
        time.sleep(0.3)
        return run_in_threads(job)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run_pending, mor.client, opts, slow)
        assert started.wait(60)
        assert not pool.submit(run_pending, mor.client, opts, run_in_threads).result()
        assert len(first.result().instants) == 1
    assert mor.rows() == before
    actions = mor.client.active_timeline().timeline.of_actions(Action.ROLLBACK)
    assert not list(actions), "no attempt was rolled back"


def test_the_time_of_a_rollback_is_waited_out_before_the_next_writer(mor: MorTable) -> None:
    """As of any time that is taken: else a writer with a slower clock might take an earlier one."""
    plan = mor.table.services.schedule_compaction()
    opts = Options.parse({**mor.options, "hoodie.time.generator.max_expected_clock_skew_ms": "700"})

    def take(attempt: str) -> PlannedTransaction | None:
        wanted = PlanAttempt(plan.action, plan.instant or "", "COMPACT", attempt)
        return PlannedTransaction.start_attempt(mor.client, wanted, opts)

    dead, begun = take("dead"), time.monotonic()
    assert dead is not None
    dead.to_inflight()
    again = take("again")
    assert again is not None
    assert make_lock_provider(mor.client.storage, opts).acquire(5)
    assert time.monotonic() - begun >= 0.7


def _begun_by_another_program(mor: MorTable) -> str:
    """An inflight compaction as one of Apache Hudi looks: with markers, without heartbeat or claim."""
    plan = mor.table.services.schedule_compaction()
    active = mor.client.active_timeline()
    entry = next(iter(active.timeline.pending().of_actions(Action.COMPACTION)))
    active.to_inflight(entry)
    Markers(mor.client.storage, entry.requested).create("a", "x_0-1-0_1.parquet", IOType.MERGE)
    assert plan.instant == entry.requested
    return entry.requested


def _age(mor: MorTable, instant: str, minutes: int, *, markers: bool = True) -> None:
    then = time.time() - minutes * 60
    for path in mor.root.rglob(f"{instant}*"):
        if path.is_file():
            os.utime(path, (then, then))
    for path in (mor.root / f".hoodie/.temp/{instant}").rglob("*"):
        if markers and path.is_file():
            os.utime(path, (then, then))


@pytest.mark.parametrize("several", [False, True])
def test_a_compaction_of_another_program_is_left_alone(
    mor: MorTable, several: bool, caplog: pytest.LogCaptureFixture
) -> None:
    mode = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"} if several else {}
    opts = Options.parse({**mor.options, **mode, "hoodie.compact.inline.max.delta.commits": "1"})
    instant = _begun_by_another_program(mor)
    before = mor.rows()

    def still_there() -> bool:
        pending = mor.client.active_timeline().timeline.pending().of_actions(Action.COMPACTION)
        return [(i.requested, i.state) for i in pending] == [(instant, State.INFLIGHT)]

    assert after_deltacommit(mor.client.storage, opts, run_in_threads) == ()
    assert f"run_compaction('{instant}')" in caplog.text
    assert still_there()
    with pytest.raises(BusyError, match="another program"):
        mor.table.services.run_compaction(options=mode)
    _age(mor, instant, 24 * 60 + 1, markers=False)  # a marker was made just now
    with pytest.raises(BusyError, match="active 0 minutes ago"):
        mor.table.services.compact(mode)
    assert still_there()
    assert mor.table.services.run_compaction(instant, mode).instants == (instant,)
    assert mor.rows() == before


def test_a_compaction_of_another_program_that_is_silent_for_long_is_taken_up(mor: MorTable) -> None:
    instant = _begun_by_another_program(mor)
    _age(mor, instant, 24 * 60 - 1)
    with pytest.raises(BusyError, match="1439 minutes ago"):
        mor.table.services.run_compaction()
    _age(mor, instant, 24 * 60 + 1)
    assert mor.table.services.run_compaction().instants == (instant,)
    mor.delta([row("a0", "a", 9, "after")])
    instant = _begun_by_another_program(mor)
    _age(mor, instant, 11)
    before = mor.rows()
    assert mor.table.services.run_compaction(options={"pyhudi.compaction.abandoned.minutes": "10"}).instants
    assert mor.rows() == before


def test_a_compaction_of_another_program_with_a_heartbeat(mor: MorTable) -> None:
    """As of Apache Hudi 1.2: while it is fresh even who names the instant is refused, and when it is old nobody is."""
    instant = _begun_by_another_program(mor)
    beat = mor.root / f".hoodie/.heartbeat/{instant}"
    beat.parent.mkdir(exist_ok=True)
    beat.touch()
    with pytest.raises(BusyError, match="a current heartbeat"):
        mor.table.services.run_compaction(instant)
    then = time.time() - 181
    os.utime(beat, (then, then))
    assert mor.table.services.run_compaction().instants == (instant,)


def test_an_attempt_here_that_another_program_took_up_is_that_program_s(mor: MorTable) -> None:
    """Ours died, Apache Hudi rolled it back and began anew: what we left behind must not look like our claim."""
    plan = mor.table.services.schedule_compaction()
    opts = Options.parse(mor.options)
    dead = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant or "", "COMPACT", "dead"), opts
    )
    assert dead is not None
    dead.to_inflight()
    active = mor.client.active_timeline()
    generator = TimeGenerator(mor.client.storage, mor.options)
    entry = next(iter(active.timeline.pending().of_actions(Action.COMPACTION)))
    with generator.lock:
        RollbackExecutor(mor.client.storage, mor.version, generator, HeartbeatPolicy()).roll_back(active, entry)
    active = mor.client.active_timeline()
    active.to_inflight(next(iter(active.timeline.pending().of_actions(Action.COMPACTION))))
    with pytest.raises(BusyError, match="another program"):
        mor.table.services.run_compaction()
    assert mor.table.services.run_compaction(plan.instant)


@pytest.mark.parametrize("several", [False, True])
def test_an_attempt_here_that_died_before_it_began_claims_nothing(mor: MorTable, several: bool) -> None:
    """Ours died between its claim and its inflight file, and Apache Hudi carries the plan out: without a heartbeat of
    its own, whatever ours has left."""
    mode = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"} if several else {}
    opts = Options.parse(mor.options | mode)
    plan = mor.table.services.schedule_compaction()
    dead = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant or "", "COMPACT", "dead"), opts
    )
    assert dead is not None
    dead._leave_pending()
    beat = mor.root / f".hoodie/.heartbeat/{plan.instant}"
    assert beat.exists() == several
    if several:
        then = time.time() - 181
        os.utime(beat, (then, then))
    active = mor.client.active_timeline()
    active.to_inflight(next(iter(active.timeline.pending().of_actions(Action.COMPACTION))))
    before = mor.rows()
    with pytest.raises(BusyError, match="another program"):
        mor.table.services.run_compaction(options=mode)
    assert mor.table.services.run_compaction(plan.instant, mode).instants == (plan.instant,)
    assert mor.rows() == before


@pytest.mark.parametrize("at", ["gate", "inflight", "claim"])
def test_a_death_where_an_attempt_begins(mor: MorTable, at: str) -> None:
    """What is surely of this library is taken up at once; what may be another program's only when it is asked for."""
    plan = mor.table.services.schedule_compaction()
    opts = Options.parse(mor.options)
    where = {"gate": r"\.writing/\d+_dead$", "inflight": r"compaction\.inflight$", "claim": r"\.claim$"}[at]
    faulty = FaultyStorage(
        mor.client.storage, [Fault("writes", 2 if at == "claim" else 1, "after", Killed, path=where)]
    )
    client = TableMetaClient.open(faulty)
    dead = PlannedTransaction.start_attempt(
        client, PlanAttempt(plan.action, plan.instant or "", "COMPACT", "dead"), opts
    )
    assert dead is not None
    with pytest.raises(Killed):
        dead.to_inflight()
    before = mor.rows()
    if at == "inflight":
        with pytest.raises(BusyError, match="another program"):
            mor.table.services.run_compaction()
        assert mor.table.services.run_compaction(plan.instant)
    else:
        assert mor.table.services.run_compaction().instants == (plan.instant,)
    assert mor.rows() == before


def test_a_rollback_is_given_up_when_the_compaction_was_faster(mor: MorTable) -> None:
    """Whoever announces it has lost the lock and does not know; the completed compaction has another action."""
    plan = mor.table.services.schedule_compaction()
    storage, opts = mor.client.storage, Options.parse(mor.options)
    job = CompactionJob.of(PinnedTable.of(mor.client), plan, opts)
    found = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant or "", "COMPACT", job.context.attempt), opts
    )
    assert found is not None
    tx = found
    tx.to_inflight()
    metadata = job.metadata(run_in_threads(job))
    before = mor.rows()
    active = mor.client.active_timeline()

    class Sleepy(FaultyStorage):
        def create(self, path: str, data: bytes) -> None:
            if path.endswith("rollback.requested"):
                done = active.timeline.find(tx.instant)
                assert done is not None
                completion = None if mor.version < 8 else tx.instant[:-3] + "999"
                active.complete(done, metadata.encode(mor.version, plan.action), completion)
            super().create(path, data)

    slow = TableMetaClient.open(Sleepy(storage))
    late = slow.active_timeline()
    entry = next(iter(late.timeline.pending().of_actions(Action.COMPACTION)))
    generator = TimeGenerator(slow.storage, mor.options)
    with generator.lock:
        assert RollbackExecutor(slow.storage, mor.version, generator, HeartbeatPolicy()).roll_back(late, entry) is None
    assert mor.client.active_timeline().timeline.is_completed(tx.instant)
    assert mor.rows() == before


def test_a_write_does_not_fail_because_of_what_follows_it(mor: MorTable, caplog: pytest.LogCaptureFixture):
    def broken(job: CompactionJob) -> pa.Table:
        raise ConflictError(f"no worker for {len(job.slices)} slices")

    opts = {**mor.options, "hoodie.compact.inline.max.delta.commits": "1"}
    assert after_deltacommit(mor.client.storage, Options.parse(opts), broken) == ()
    assert "no worker" in caplog.text
    opts["hoodie.fail.writes.on.inline.table.service.exception"] = "true"
    with pytest.raises(ServiceAfterCommitError, match=r"the write is committed.*no worker") as raised:
        after_deltacommit(mor.client.storage, Options.parse(opts), broken)
    assert isinstance(raised.value.__cause__, ConflictError)
    assert not isinstance(raised.value, ConflictError)  # statements are repeated after such


def test_an_attempt_that_was_given_up_touches_no_file_of_the_next(mor: MorTable, monkeypatch: pytest.MonkeyPatch):
    """It comes to its end when the other one has just been published, and its markers are still there."""
    plan = mor.table.services.schedule_compaction()
    opts = Options.parse(mor.options)
    before = mor.rows()
    job = CompactionJob.of(PinnedTable.of(mor.client), plan, opts)
    slow = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant or "", "COMPACT", job.context.attempt), opts
    )
    assert slow is not None
    slow.to_inflight()
    stats = run_in_threads(job)
    finish = PlannedTransaction._finish

    def finish_late(self: PlannedTransaction) -> list[str]:
        monkeypatch.undo()
        with pytest.raises(ConflictError):
            slow.commit(job.metadata(stats))
        return finish(self)

    monkeypatch.setattr(PlannedTransaction, "_finish", finish_late)
    done = run_pending(mor.client, opts, run_in_threads)
    assert done.instants == (plan.instant,)
    assert not set(done.stats["path"].to_pylist()) & set(stats["path"].to_pylist())
    assert sorted(one["base_path"] for one in slices(mor)) == sorted(done.stats["path"].to_pylist())
    assert mor.rows() == before


@pytest.mark.parametrize("begun", [False, True])
def test_an_attempt_that_was_given_up_lets_the_next_one_work(mor: MorTable, begun: bool):
    """It comes to its end, well or badly, while the next one is still at work."""
    plan = mor.table.services.schedule_compaction()
    opts = Options.parse(mor.options)
    before = mor.rows()
    slow = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant or "", "COMPACT", "slow"), opts
    )
    assert slow is not None
    if begun:
        slow.to_inflight()

    def disturbed(job: CompactionJob) -> pa.Table:
        half = compact_one(job, 0, TaskId(0, 0, 0))
        with pytest.raises(ConflictError, match="considered it dead"):
            slow.commit(job.metadata(decode_stats([half]))) if begun else slow.to_inflight()
        slow.abort()
        return decode_stats([half, compact_one(job, 1, TaskId(1, 0, 1))])

    assert run_pending(mor.client, opts, disturbed).instants == (plan.instant,)
    assert mor.rows() == before
    assert all(not one["log_paths"] for one in slices(mor))
    assert len(mor.client.active_timeline().timeline.of_actions(Action.ROLLBACK)) == begun
    _only_known_files(mor)
    assert not list((mor.root / ".hoodie/.aux/.writing").iterdir())


def test_what_was_replaced_is_not_compacted(mor: MorTable):
    """A plan goes on when a file group of it has been replaced, and when the cleaner has taken its files away."""
    services = mor.table.services
    plan = services.schedule_compaction()
    tx = Transaction.begin(mor.client, Action.REPLACE_COMMIT, "DELETE_PARTITION", mor.options)
    tx.to_inflight(CommitMetadata("DELETE_PARTITION"))
    gone = pa.table({"partition": ["b"], "file_id": [FILE_IDS["b"]]})
    tx.commit(CommitMetadata("DELETE_PARTITION", extra={"schema": to_avro(SCHEMA, "t")}, replaced=gone))
    shutil.rmtree(mor.root / "b")
    before = mor.rows()
    assert set(before) == {"a0", "a1", "a3", "a4", "a9"}
    result = services.run_compaction()
    assert result.instants == (plan.instant,)
    assert result.stats["partitionPath"].to_pylist() == ["a"]
    assert mor.rows() == before
    assert not services.pending_compactions()
    assert all(not one["log_paths"] for one in slices(mor))


def test_nothing_of_a_plan_is_left(mor: MorTable):
    services = mor.table.services
    plan = services.schedule_compaction()
    tx = Transaction.begin(mor.client, Action.REPLACE_COMMIT, "DELETE_PARTITION", mor.options)
    tx.to_inflight(CommitMetadata("DELETE_PARTITION"))
    gone = pa.table({"partition": list(FILE_IDS), "file_id": list(FILE_IDS.values())})
    tx.commit(CommitMetadata("DELETE_PARTITION", extra={"schema": to_avro(SCHEMA, "t")}, replaced=gone))
    for partition in FILE_IDS:
        shutil.rmtree(mor.root / partition)
    assert services.run_compaction().instants == (plan.instant,)
    assert not services.pending_compactions()
    assert mor.rows() == {}


def test_a_slice_of_logs_only_and_one_that_loses_all_rows(tmp_path: Path):
    mor = MorTable(tmp_path / "table", 9, options=FAST | SMALL)
    mor.load([row("a0", "a", 1, "x")])
    (mor.root / "b" / f"{FILE_IDS['b']}_0-0-0_{mor.table.latest_instant}.parquet").unlink()
    mor.delta([row("b0", "b", 1, "only in logs")], [("a0", "a", 2)])
    result = mor.table.services.compact()
    stats = {s["partitionPath"]: s for s in result.stats.to_pylist()}
    assert (stats["b"]["prevCommit"], stats["b"]["numInserts"], stats["a"]["numWrites"]) == ("null", 1, 0)
    assert mor.rows() == {"b0": row("b0", "b", 1, "only in logs")}
    assert mor.table.scan(read_optimized=True).to_arrow()["_hoodie_commit_time"].to_pylist() != list(result.instants)
    mor.delta([row("a0", "a", 1, "back")])
    mor.table.services.compact()
    assert mor.rows()["a0"]["v"] == "back"


@pytest.mark.parametrize("name", MOR)
def test_golden_tables(name: str, tmp_path: Path):
    """Whatever Apache Hudi wrote into logs is in the base files afterwards."""
    golden = unpack(name, tmp_path)
    table = HudiTable.for_path(str(golden.path), SMALL)
    order = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]
    before = table.scan().to_arrow().sort_by(order)
    logs = sum(map(len, table.inspect.file_slices()["log_paths"].to_pylist()))
    result = table.services.compact()
    assert result.num_log_files >= logs
    after = table.scan().to_arrow().sort_by(order)
    assert after.drop(["_hoodie_file_name"]) == before.drop(["_hoodie_file_name"])
    assert table.scan(read_optimized=True).to_arrow().sort_by(order) == after
    assert not any(table.inspect.file_slices()["log_paths"].to_pylist())
    shutil.rmtree(golden.path)


def test_options_of_files_are_checked_first(mor: MorTable):
    with pytest.raises(HudiError, match="codec"):
        mor.table.services.compact({"hoodie.parquet.compression.codec": "nope"})
    assert open_storage(mor.root).exists(".hoodie/hoodie.properties")
    assert not mor.client.active_timeline().timeline.of_actions(Action.ROLLBACK)


@pytest.mark.parametrize("kind", ["compact", "log_compact"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_merger_that_is_missing_is_missed_before_there_is_a_plan(tmp_path: Path, kind: str, version: int) -> None:
    strategy = First.strategy_id
    if version == 6:
        properties = {"hoodie.datasource.write.payload.class": strategy}
    else:
        properties = {"hoodie.write.record.merge.mode": "CUSTOM", "hoodie.datasource.write.payload.class": ""}
        properties["hoodie.write.record.merge.strategy.id"] = strategy
    mor = MorTable(tmp_path / "t", version, properties, {**FAST, "hoodie.log.compaction.blocks.threshold": "1"})
    services = mor.table.services
    assert not getattr(services, kind)()  # there is nothing to do, and so nothing to miss
    mor.load([row("a1", "a", 1, "x")])
    mor.delta([row("a1", "a", 2, "y")])
    before = [(i.requested, i.action, i.state) for i in mor.client.active_timeline().timeline]
    for _ in range(2):
        with pytest.raises(UnsupportedTableError, match=rf"{strategy}.*register_merger"):
            getattr(services, kind)()
    assert mor.storage is not None
    inline = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.fail.writes.on.inline.table.service.exception": "true",
    }
    with pytest.raises(ServiceAfterCommitError, match="register_merger"):
        after_deltacommit(mor.storage, Options.parse({**mor.options, **inline}), run_in_threads)
    assert [(i.requested, i.action, i.state) for i in mor.client.active_timeline().timeline] == before
    assert len(getattr(services, kind)(dry_run=True)) == 1
    # another process may have the merger
    schedule = services.schedule_compaction if kind == "compact" else services.schedule_log_compaction
    planned = schedule().instant
    assert planned is not None
    run = services.run_compaction if kind == "compact" else services.run_log_compaction
    with pytest.raises(UnsupportedTableError, match="register_merger"):
        run()
    register_merger(First())
    try:
        assert run().instants == (planned,)
    finally:
        unregister_merger(strategy)
