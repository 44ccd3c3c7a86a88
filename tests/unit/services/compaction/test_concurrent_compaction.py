"""Compaction beside writers and other compactions."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.config import Options
from pyhudi.errors import ConflictError, ServiceAfterCommitError, TransactionError
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.services.compaction.compaction_runner import run_pending_compactions
from pyhudi.services.post_commit_services import PostCommitServices
from pyhudi.services.rollback import roll_back
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action, State
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.planned_transaction import PlanAttempt, PlannedTransaction
from tests.unit.services.compaction.compaction_tables import IN_THREADS, RunnerOf, slices
from tests.unit.services.merge_on_read_table import FAST, SCHEMA, MorTable, row


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


@pytest.mark.parametrize("executes", [False, True])
def test_log_files_of_non_blocking_writers_in_the_order_of_their_instants(tmp_path: Path, executes: bool) -> None:
    """The write that began last wins, also if a compaction was planned between the two commits."""
    properties = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
        "hoodie.datasource.write.precombine.field": "",
    }
    options = {
        **FAST,
        "hoodie.index.type": "BUCKET",
        "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    }
    mor = MorTable(tmp_path / "t", properties=properties, options=options)
    mor.load([row("a0", "a", 0, "base"), row("b0", "b", 0, "base")])
    first, other = mor.begin(), mor.begin()
    stats, other_stats = (mor.write_logs(tx, [row(f"{p}0", p, 1, "first")]) for tx, p in ((first, "a"), (other, "b")))
    mor.delta([row("a0", "a", 1, "last")])
    services = mor.table.services
    plan = services.schedule_compaction()
    if executes:
        services.run_compaction(plan.instant)
    outcome = first.commit(CommitMetadata("UPSERT", write_stats(stats), {"schema": to_avro(SCHEMA, "t")}))
    assert isinstance(outcome, Conflicted)
    assert f"{plan.instant}" in outcome.reason
    assert "compacts the later" in outcome.reason
    mor.commit(other, "UPSERT", other_stats)
    for _ in range(2):
        assert {key: found["v"] for key, found in mor.rows().items()} == {"a0": "last", "b0": "first"}
        services.run_compaction()


def test_two_at_a_time(mor: MorTable):
    """With several writers declared the living are not rolled back; undeclared, the slower one fails."""
    several = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    opts = Options.parse({**mor.options, **several})
    mor.table.services.schedule_compaction(several)

    def second(job: CompactionJob) -> pa.Table:
        with pytest.raises(TransactionError, match="another process"):
            run_pending_compactions(mor.client, opts, IN_THREADS)
        return IN_THREADS.run(job)

    assert run_pending_compactions(mor.client, opts, RunnerOf(work=second))
    mor.delta([row("a0", "a", 9, "after")])
    mor.table.services.schedule_compaction()
    before = mor.rows()

    def beside(job: CompactionJob) -> pa.Table:
        assert PostCommitServices(mor.client.storage, opts).compact(IN_THREADS) == ()
        return IN_THREADS.run(job)

    assert len(run_pending_compactions(mor.client, opts, RunnerOf(work=beside)).instants) == 1, (
        "a write of another process leaves it alone"
    )
    assert mor.rows() == before
    mor.delta([row("a0", "a", 9, "after")])
    mor.table.services.schedule_compaction()
    before = mor.rows()

    def overtaken(job: CompactionJob) -> pa.Table:
        stats = IN_THREADS.run(job)
        assert mor.table.services.run_compaction()
        return stats

    with pytest.raises((ConflictError, TransactionError)):
        run_pending_compactions(mor.client, Options.parse(mor.options), RunnerOf(work=overtaken))
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
        return IN_THREADS.run(job)

    with ThreadPoolExecutor() as pool:
        running = pool.submit(run_pending_compactions, mor.client, opts, RunnerOf(work=slow))
        assert started.wait(30)
        writing = pool.submit(PostCommitServices(mor.client.storage, opts).compact, IN_THREADS)
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
        return IN_THREADS.run(job)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run_pending_compactions, mor.client, opts, RunnerOf(work=slow))
        assert started.wait(60)
        assert not pool.submit(run_pending_compactions, mor.client, opts, IN_THREADS).result()
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


def test_a_write_does_not_fail_because_of_what_follows_it(mor: MorTable, caplog: pytest.LogCaptureFixture):
    def broken(job: CompactionJob) -> pa.Table:
        raise ConflictError(f"no worker for {len(job.slices)} slices")

    opts = {**mor.options, "hoodie.compact.inline.max.delta.commits": "1"}
    assert PostCommitServices(mor.client.storage, Options.parse(opts)).compact(RunnerOf(work=broken)) == ()
    assert "no worker" in caplog.text
    opts["hoodie.fail.writes.on.inline.table.service.exception"] = "true"
    with pytest.raises(ServiceAfterCommitError, match=r"the write is committed.*no worker") as raised:
        PostCommitServices(mor.client.storage, Options.parse(opts)).compact(RunnerOf(work=broken))
    assert isinstance(raised.value.__cause__, ConflictError)
    assert not isinstance(raised.value, ConflictError)  # statements are repeated after such
