"""Execution of clusterings, from the plan in the timeline to the commit, by a given runner."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from functools import partial, reduce

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import SetupError
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.services.clustering.clustering_job import ClusteringJob, check_clusterable
from pyhudi.services.clustering.clustering_planner import (
    pending_clusterings,
    reschedule_clustering,
    schedule_clustering,
)
from pyhudi.services.service_plans import BusyPlans, run_plans
from pyhudi.services.service_runner import ServiceRunner, ThreadRunner
from pyhudi.services.thread_pool_runner import run_tasks
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, WRITE_STAT_SCHEMA
from pyhudi.timeline.operation_types import CLUSTER
from pyhudi.timeline.plans.clustering_plan import ClusteringPlan
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.planned_transaction import PlanAttempt, PlannedTransaction
from pyhudi.write.settings.write_context import TaskId
from pyhudi.write.write_result import WriteTotals
from pyhudi.write.write_status import encode_stats

_log = logging.getLogger(__name__)
PROGRESS = "cluster groups of files"
"""Name of the work in calls of `pyhudi.metrics.progress.Progress`."""
_SORTED_IN_MEMORY = 256 * 1024 * 1024
"""Bytes of files that a thread of this process sorts in memory at a time."""


ClusteringRunner = ServiceRunner[ClusteringJob]
"""Executes clusterings with an engine."""


@dataclass(frozen=True, slots=True)
class ClusteringResult(WriteTotals):
    """Result of clusterings. ``instants`` are the completed ones, oldest first; ``stats`` has one row per written file
    (WRITE_STAT_SCHEMA), ``replaced`` one per replaced file group. ``reason``: why there was nothing to do, if
    determined."""

    instants: tuple[str, ...] = ()
    stats: pa.Table = field(default_factory=WRITE_STAT_SCHEMA.empty_table)
    replaced: pa.Table = field(default_factory=REPLACED_SCHEMA.empty_table)
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.instants)

    @property
    def num_replaced(self) -> int:
        """Number of replaced file groups."""
        return int(self.replaced.num_rows)

    def merge(self, other: ClusteringResult) -> ClusteringResult:
        """Return the combination of both results."""
        return ClusteringResult(
            (*self.instants, *other.instants),
            pa.concat_tables([self.stats, other.stats]),
            pa.concat_tables([self.replaced, other.replaced]),
        )

    def __repr__(self) -> str:
        if not self.instants:
            return f"ClusteringResult(nothing done{f'; {self.reason}' if self.reason else ''})"
        return (
            f"ClusteringResult({', '.join(self.instants)}: {self.num_replaced:,} file groups became {self.num_files:,} "
            f"files with {self.num_rows:,} records, {self.bytes_written:,} bytes)"
        )


def run_pending_clusterings(
    client: TableMetaClient,
    opts: Options,
    runner: ClusteringRunner,
    *,
    instant: str | None = None,
    busy: BusyPlans = BusyPlans.REFUSE,
) -> ClusteringResult:
    """Execute the pending plans, oldest first, or only the one of ``instant``. ``busy``: treatment of those that
    someone else may be executing.

    Raises:
        InstantNotFoundError: No such plan is pending.
        ConflictError: A file group was changed concurrently, or another process considered this attempt dead.
        BusyError: Another process is executing a plan.
        TransactionError: A restore is pending, or files of a plan no longer exist.
        SetupError: Spark is required.
    """
    results = run_plans(
        client,
        opts,
        pending_clusterings(client.active_timeline()),
        lambda plan: _run_plan(client, plan, opts, runner, take_over=busy is BusyPlans.TAKE_OVER),
        service="clustering",
        instant=instant,
        busy=busy,
    )
    return reduce(ClusteringResult.merge, results, ClusteringResult())


def run_clusterings(
    client: TableMetaClient,
    opts: Options,
    runner: ClusteringRunner,
    *,
    only_if_due: bool,
    busy: BusyPlans = BusyPlans.REFUSE,
) -> ClusteringResult:
    """Execute the pending plans or, if there are none, make a plan and execute it, because a plan after pending ones
    would cluster the same files again. Raises the errors of `run_pending_clusterings` and `schedule_clustering`."""
    done = run_pending_clusterings(client, opts, runner, busy=busy)
    if done:
        return done
    plan = schedule_clustering(client, opts, only_if_due=only_if_due, runner=runner)
    if plan.instant is None:
        return ClusteringResult(reason=plan.reason)
    return run_pending_clusterings(client, opts, runner, instant=plan.instant, busy=busy)


def _run_plan(
    client: TableMetaClient, plan: ClusteringPlan, opts: Options, runner: ClusteringRunner, *, take_over: bool
) -> ClusteringResult:
    """Execute one plan of the timeline. The result is empty if another process has executed it. After an error the plan
    can be retried. A plan whose file groups were written to is replaced by one with a new instant."""
    assert plan.instant is not None
    pinned = TableSnapshot.load(client)
    check_clusterable(pinned, opts, plan.strategy, plan.sort_columns)
    job = ClusteringJob.from_plan(pinned, plan, opts)
    runner.check(client.config, job)
    started = PlannedTransaction.start_attempt(
        client,
        PlanAttempt(plan.action, plan.instant, CLUSTER, job.task_context.context.attempt),
        opts,
        runner.stats_reader,
        take_over=take_over,
    )
    if started is None:
        return ClusteringResult()
    with started as tx:
        outdated = tx.is_outdated(plan.file_groups)
        if not outdated:
            return _run_attempt(client, tx, plan, opts=opts, runner=runner, attempt=job.task_context.attempt)
    # Files of the old instant would contain rows of later writes. Time travel to an instant in between would return
    # them, and a restore to it would keep them.
    renewed = reschedule_clustering(client, plan, opts)
    if renewed is None:
        return ClusteringResult(reason=f"the file groups of the plan {plan.instant} have been replaced")
    _log.info("clustering %s, whose file groups were written to, becomes %s", plan.instant, renewed.instant)
    return _run_plan(client, renewed, opts, runner, take_over=take_over)


def _run_attempt(
    client: TableMetaClient,
    tx: PlannedTransaction,
    plan: ClusteringPlan,
    *,
    opts: Options,
    runner: ClusteringRunner,
    attempt: int,
) -> ClusteringResult:
    job = ClusteringJob.from_plan(TableSnapshot.load(client), plan, opts, attempt=attempt)
    tx.to_inflight()
    done = job.metadata(runner.run(job))
    job.store_buckets()
    outcome = tx.commit(done, index=runner.index_delta(client, tx, done))
    if isinstance(outcome, Conflicted):
        raise outcome.error()
    try:
        job.mark_buckets(outcome.instant.requested)
    except Exception as failure:  # The next write creates the marker files.
        _log.warning("the marker files of the buckets of %s were not created: %s", outcome.instant, failure)
    stats = done.stats.select(WRITE_STAT_SCHEMA.names)
    return ClusteringResult((outcome.instant.requested,), stats, job.replaced)


def cluster_one(job: ClusteringJob, number: int, task: TaskId) -> bytes:
    """Rewrite one group of a job. Return its encoded write stats."""
    return encode_stats(job.task_context.run(job.groups[number], number, task))


@dataclass(frozen=True, slots=True)
class ThreadClusteringRunner(ThreadRunner):
    """Executes clusterings on threads of this process."""

    def check(self, config: TableConfig, job: ClusteringJob) -> None:
        """Refuse tables with a record index, and inputs too large to sort in memory.

        Raises:
            SetupError: Spark is required.
        """
        if RECORD_INDEX in config.metadata_partitions:
            raise SetupError(
                "clustering a table with a record index, which must be updated, requires Spark: pass spark=…"
            )
        largest = job.groups.sizes.max(initial=0)
        if job.task_context.order and largest > _SORTED_IN_MEMORY:
            raise SetupError(
                f"sorting {largest:,} bytes of files requires Spark: pass spark=…, or reduce "
                "hoodie.clustering.plan.strategy.max.bytes.per.group for the next plan"
            )

    def run(self, job: ClusteringJob) -> pa.Table:
        """Rewrite all groups. Return the write stats."""
        threads = 1 if job.task_context.order else os.cpu_count() or 1
        return run_tasks(partial(cluster_one, job), len(job.groups), threads, self.progress, PROGRESS)
