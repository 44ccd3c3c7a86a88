"""Execution of compactions, from the plan on the timeline to the commit, by a given runner."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial, reduce

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.merge.file_slice import file_slices
from pyhudi.services.compaction.compaction_job import CompactionJob, operation_type
from pyhudi.services.compaction.compaction_planner import check_compactable, pending_compactions, schedule_compaction
from pyhudi.services.service_plans import BusyPlans, run_plans
from pyhudi.services.service_runner import ServiceRunner, ThreadRunner
from pyhudi.services.thread_pool_runner import run_tasks
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import WRITE_STAT_SCHEMA, total
from pyhudi.timeline.instant import Action
from pyhudi.timeline.plans.compaction_plan import CompactionPlan, compaction_name
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.planned_transaction import PlanAttempt, PlannedTransaction
from pyhudi.write.settings.write_context import TaskId
from pyhudi.write.write_result import WriteTotals
from pyhudi.write.write_status import encode_stats

PROGRESS = "compact file slices"
"""Name of the work in calls of `pyhudi.metrics.progress.Progress`."""

CompactionRunner = ServiceRunner[CompactionJob]
"""Executes compactions with an engine."""


@dataclass(frozen=True, slots=True)
class CompactionResult(WriteTotals):
    """Result of compactions. ``instants`` are the completed ones, oldest first; ``stats`` has one row per written file
    (WRITE_STAT_SCHEMA). ``reason``: why there was nothing to do, if determined."""

    instants: tuple[str, ...] = ()
    stats: pa.Table = field(default_factory=WRITE_STAT_SCHEMA.empty_table)
    action: str = Action.COMPACTION
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.instants)

    @property
    def is_log(self) -> bool:
        """Return True for log compactions."""
        return self.action == Action.LOG_COMPACTION

    @property
    def num_log_files(self) -> int:
        """Number of log files that were merged."""
        return total(self.stats, "totalLogFilesCompacted")

    def merge(self, other: CompactionResult) -> CompactionResult:
        """Return the combination of both results."""
        return CompactionResult(
            (*self.instants, *other.instants), pa.concat_tables([self.stats, other.stats]), self.action
        )

    def __repr__(self) -> str:
        kind = compaction_name(self.action)
        if not self.instants:
            why = f"; {self.reason}" if self.reason else ""
            return f"CompactionResult({kind}: nothing done{why})"
        return (
            f"CompactionResult({kind} {', '.join(self.instants)}: {self.num_log_files:,} log files merged into "
            f"{self.num_files:,} files with {self.num_rows:,} records, {self.bytes_written:,} bytes)"
        )


def run_pending_compactions(
    client: TableMetaClient,
    opts: Options,
    runner: CompactionRunner,
    *,
    action: str = Action.COMPACTION,
    instant: str | None = None,
    busy: BusyPlans = BusyPlans.REFUSE,
) -> CompactionResult:
    """Execute the pending plans, oldest first, or only the one of ``instant``. ``busy``: treatment of those that
    someone else may be executing.

    Raises:
        InstantNotFoundError: No such plan is pending.
        ConflictError: Another process considered this attempt dead.
        BusyError: Another process is executing a plan.
        TransactionError: A restore is pending.
    """
    check_compactable(client.config)
    results = run_plans(
        client,
        opts,
        pending_compactions(client.active_timeline(), action),
        lambda plan: _run_plan(client, plan, opts, runner, take_over=busy is BusyPlans.TAKE_OVER),
        service=compaction_name(action),
        instant=instant,
        busy=busy,
    )
    return reduce(CompactionResult.merge, results, CompactionResult(action=action))


def run_compactions(
    client: TableMetaClient,
    opts: Options,
    runner: CompactionRunner,
    *,
    action: str = Action.COMPACTION,
    only_if_due: bool = False,
    busy: BusyPlans = BusyPlans.REFUSE,
) -> CompactionResult:
    """Execute the pending plans, then make a plan and execute it. Raises the errors of `run_pending_compactions` and
    `schedule_compaction`."""
    done = run_pending_compactions(client, opts, runner, action=action, busy=busy)
    plan = schedule_compaction(client, opts, action=action, only_if_due=only_if_due, runner=runner)
    if plan.instant is None:
        return done if done else replace(done, reason=plan.reason)
    return done.merge(run_pending_compactions(client, opts, runner, action=action, instant=plan.instant, busy=busy))


def _run_plan(
    client: TableMetaClient, plan: CompactionPlan, opts: Options, runner: CompactionRunner, *, take_over: bool
) -> CompactionResult:
    """Execute one plan of the timeline. The result is empty if it is no longer to be executed: another process has
    executed it, or it is a log compaction that failed before or that a later compaction includes. After an error the
    plan of a compaction can be retried."""
    assert plan.instant is not None
    nothing = CompactionResult(action=plan.action)
    # Unsupported jobs are refused before anything is changed.
    job = CompactionJob.from_plan(TableSnapshot.load(client), plan, opts)
    runner.check(client.config, job)
    started = PlannedTransaction.start_attempt(
        client,
        PlanAttempt(plan.action, plan.instant, operation_type(plan.action), job.context.attempt),
        opts,
        runner.stats_reader,
        take_over=take_over,
    )
    if started is None:
        return nothing
    with started as tx:
        if plan.is_log and tx.is_overtaken(plan.operations.select(["partition", "file_id"])):
            tx.abort()
            return nothing
        if client.config.version < 8:  # The valid blocks of its logs may have changed since.
            job = CompactionJob.from_plan(TableSnapshot.load(client), plan, opts, attempt=job.attempt)
        tx.to_inflight()
        stats = runner.run(job)
        done = job.metadata(stats)
        outcome = tx.commit(done, index=runner.index_delta(client, tx, done))
    if isinstance(outcome, Conflicted):
        if plan.is_log:
            return nothing
        raise outcome.error()
    return CompactionResult((outcome.instant.requested,), stats.select(WRITE_STAT_SCHEMA.names), plan.action)


def compact_one(job: CompactionJob, number: int, task: TaskId) -> bytes:
    """Compact one slice of a job. Return its encoded write stats."""
    (one,) = file_slices(job.slices.slice(number, 1))
    return encode_stats(job.run(one, task))


@dataclass(frozen=True, slots=True)
class ThreadCompactionRunner(ThreadRunner):
    """Executes compactions on threads of this process."""

    def check(self, config: TableConfig, job: CompactionJob) -> None:
        """Accept each job."""

    def run(self, job: CompactionJob) -> pa.Table:
        """Compact all slices. Return the write stats."""
        return run_tasks(partial(compact_one, job), len(job.slices), os.cpu_count() or 1, self.progress, PROGRESS)
