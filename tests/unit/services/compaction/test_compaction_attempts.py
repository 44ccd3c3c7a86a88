"""Compactions that die, are given up, or belong to another program."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config import Options
from pyhudi.errors import BusyError, ConflictError
from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.services.compaction.compaction_planner import schedule_compaction
from pyhudi.services.compaction.compaction_runner import compact_one, run_pending_compactions
from pyhudi.services.post_commit_services import PostCommitServices
from pyhudi.storage import Storage
from pyhudi.storage.lock_primitives import DeferredReleaseLock
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.heartbeat import HeartbeatPolicy
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.markers import IOType, Markers
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.transaction.planned_transaction import PlanAttempt, PlannedTransaction
from pyhudi.transaction.rollback.rollback_executor import RollbackExecutor
from pyhudi.write.settings.write_context import TaskId
from pyhudi.write.write_status import decode_stats
from tests.fault_injection import Fault, FaultyStorage, Killed
from tests.unit.services.compaction.compaction_tables import IN_THREADS, RunnerOf, slices
from tests.unit.services.merge_on_read_table import FILE_IDS, MorTable, row
from tests.unit.transaction.test_writer_death import deaths


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
        plan = schedule_compaction(client, opts)
        run_pending_compactions(client, opts, RunnerOf(work=serially), instant=plan.instant)

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
        run_pending_compactions(mor.client, opts, RunnerOf(work=broken))
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

    assert PostCommitServices(mor.client.storage, opts).compact(IN_THREADS) == ()
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
    dead.leave_pending()
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


@pytest.mark.parametrize("at", ["fence", "inflight", "claim"])
def test_a_death_where_an_attempt_begins(mor: MorTable, at: str) -> None:
    """What is surely of this library is taken up at once; what may be another program's only when it is asked for."""
    plan = mor.table.services.schedule_compaction()
    opts = Options.parse(mor.options)
    where = {"fence": r"\.writing/\d+_dead$", "inflight": r"compaction\.inflight$", "claim": r"\.claim$"}[at]
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
    job = CompactionJob.from_plan(TableSnapshot.load(mor.client), plan, opts)
    found = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant or "", "COMPACT", job.context.attempt), opts
    )
    assert found is not None
    tx = found
    tx.to_inflight()
    metadata = job.metadata(IN_THREADS.run(job))
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


def test_an_attempt_that_was_given_up_touches_no_file_of_the_next(mor: MorTable, monkeypatch: pytest.MonkeyPatch):
    """It comes to its end when the other one has just been published, and its markers are still there."""
    plan = mor.table.services.schedule_compaction()
    opts = Options.parse(mor.options)
    before = mor.rows()
    job = CompactionJob.from_plan(TableSnapshot.load(mor.client), plan, opts)
    slow = PlannedTransaction.start_attempt(
        mor.client, PlanAttempt(plan.action, plan.instant or "", "COMPACT", job.context.attempt), opts
    )
    assert slow is not None
    slow.to_inflight()
    stats = IN_THREADS.run(job)
    finish = PlannedTransaction._finish

    def finish_late(self: PlannedTransaction) -> list[str]:
        monkeypatch.undo()
        with pytest.raises(ConflictError):
            slow.commit(job.metadata(stats))
        return finish(self)

    monkeypatch.setattr(PlannedTransaction, "_finish", finish_late)
    done = run_pending_compactions(mor.client, opts, IN_THREADS)
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
        kind, why = (ConflictError, "considered it dead") if begun else (BusyError, "being executed by another process")
        with pytest.raises(kind, match=why):
            slow.commit(job.metadata(decode_stats([half]))) if begun else slow.to_inflight()
        slow.abort()
        return decode_stats([half, compact_one(job, 1, TaskId(1, 0, 1))])

    assert run_pending_compactions(mor.client, opts, RunnerOf(work=disturbed)).instants == (plan.instant,)
    assert mor.rows() == before
    assert all(not one["log_paths"] for one in slices(mor))
    assert len(mor.client.active_timeline().timeline.of_actions(Action.ROLLBACK)) == begun
    _only_known_files(mor)
    assert not list((mor.root / ".hoodie/.aux/.writing").iterdir())


def test_an_interrupt_of_an_attempt_that_has_just_claimed_a_plan_ends_its_heartbeat(
    mor: MorTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes before the lock is given back: with the heartbeat going on, nobody could execute the plan."""
    plan = mor.table.services.schedule_compaction()
    several = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    release = DeferredReleaseLock.__exit__

    def interrupted(*arguments: Any) -> None:
        release(*arguments)
        if any((mor.root / ".hoodie/.heartbeat").glob("*")):
            raise KeyboardInterrupt

    monkeypatch.setattr(DeferredReleaseLock, "__exit__", interrupted)
    others = set(threading.enumerate())  # tests of dead writers leave heartbeats
    with pytest.raises(KeyboardInterrupt):
        mor.table.services.run_compaction(options=several)
    monkeypatch.setattr(DeferredReleaseLock, "__exit__", release)
    assert not [thread for thread in set(threading.enumerate()) - others if "heartbeat" in thread.name]
    assert mor.table.services.run_compaction(options=several).instants == (plan.instant,)
