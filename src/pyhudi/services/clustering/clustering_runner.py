"""Carrying out clusterings, from the plan on the timeline to the commit. Who does the work is given."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import BusyError, InstantNotFoundError, SetupError
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.metadata.writer.file_stats_reader import LOCAL, FileStatsReader
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.services.clustering.clustering_job import OPERATION, ClusteringJob, check_clusterable
from pyhudi.services.clustering.clustering_plan import ClusteringPlan
from pyhudi.services.clustering.clustering_schedule import pending_plans, schedule
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, WRITE_STAT_SCHEMA
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.planned_transaction import PlannedTransaction
from pyhudi.write.write_context import TaskId
from pyhudi.write.write_status import decode_stats, encode_stats
from pyhudi.write.written_files import WrittenFiles

if TYPE_CHECKING:
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.table.meta_client import TableMetaClient
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.transaction.transaction import Transaction

_log = logging.getLogger(__name__)
PROGRESS = "cluster groups of files"
"""Name of the work in calls of `pyhudi.metrics.progress.Progress`."""
_SORTED_IN_MEMORY = 256 * 1024 * 1024
"""Bytes of files that a thread of this process sorts in memory at a time."""


class ClusteringRunner(Protocol):
    """Does the work of clusterings with some engine. ``stats_reader`` reads files where indexes are built."""

    @property
    def stats_reader(self) -> FileStatsReader: ...

    def check(self, config: TableConfig, job: ClusteringJob) -> None:
        """Refuse what the engine cannot do, before anything is touched."""
        ...

    def run(self, job: ClusteringJob) -> pa.Table:
        """Do the work of a job; returns the write stats."""
        ...

    def index_delta(self, client: TableMetaClient, tx: Transaction, metadata: CommitMetadata) -> IndexDelta | None:
        """Tell the indexes that the engine keeps where records are now; ``metadata`` is what the commit will say."""
        ...


@dataclass(frozen=True, slots=True)
class ClusteringResult(WrittenFiles):
    """What clusterings did. ``instants`` are those that were completed, oldest first; ``stats`` has one row for each
    file that was written (WRITE_STAT_SCHEMA), ``replaced`` one for each file group that went out of view. ``reason``:
    why there was nothing to be done, if that was looked at."""

    instants: tuple[str, ...] = ()
    stats: pa.Table = field(default_factory=WRITE_STAT_SCHEMA.empty_table)
    replaced: pa.Table = field(default_factory=REPLACED_SCHEMA.empty_table)
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.instants)

    @property
    def num_replaced(self) -> int:
        """File groups that went out of view."""
        return int(self.replaced.num_rows)

    def and_(self, other: ClusteringResult) -> ClusteringResult:
        """Both."""
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


def run_pending(
    client: TableMetaClient,
    opts: Options,
    runner: ClusteringRunner,
    *,
    instant: str | None = None,
    leave_others: bool = False,
    asked_for: bool = False,
) -> ClusteringResult:
    """Carry out the pending plans, oldest first, or only the one of ``instant``. ``leave_others``: plans that somebody
    else is carrying out, or has carried out, are left alone. ``asked_for``: the user has named the instant, and knows
    that no other program is carrying it out.

    Raises:
        InstantNotFoundError: no such plan is pending.
        ConflictError: a file group was changed meanwhile, or another process took this attempt for dead.
        BusyError: somebody else is carrying out a plan.
        TransactionError: a restore is pending, or files of a plan are gone.
        SetupError: it needs Spark.
    """
    plans = pending_plans(client.active_timeline())
    if instant is not None:
        plans = [plan for plan in plans if plan.instant == instant]
        if not plans and not leave_others:
            raise InstantNotFoundError(f"no clustering {instant!r} is pending in the table at {client.storage.root}")
    result = ClusteringResult()
    for plan in plans:
        try:
            result = result.and_(run_plan(client, plan, opts, runner, asked_for=asked_for))
        except BusyError as busy:
            if not leave_others:
                raise
            _log.warning("a plan is left pending: %s", busy)
    return result


def run_all(
    client: TableMetaClient,
    opts: Options,
    runner: ClusteringRunner,
    *,
    only_if_due: bool = False,
    leave_others: bool = False,
) -> ClusteringResult:
    """Carry out the pending plans or, if there are none, make a plan and carry it out: otherwise what has just been
    clustered would be so again. Raises what `run_pending` and `schedule` do."""
    done = run_pending(client, opts, runner, leave_others=leave_others)
    if done:
        return done
    plan = schedule(client, opts, only_if_due=only_if_due)
    if plan.instant is None:
        return ClusteringResult(reason=plan.reason)
    return run_pending(client, opts, runner, instant=plan.instant, leave_others=leave_others)


def run_plan(
    client: TableMetaClient, plan: ClusteringPlan, opts: Options, runner: ClusteringRunner, *, asked_for: bool = False
) -> ClusteringResult:
    """Carry out one plan of the timeline. The result is empty when somebody else has done it. An error leaves the plan
    to be tried again. ``asked_for`` and errors as of `run_pending`."""
    assert plan.instant is not None
    pinned = PinnedTable.of(client)
    check_clusterable(pinned, opts, plan.strategy, plan.sort_columns)
    job = ClusteringJob.of(pinned, plan, opts)
    runner.check(client.config, job)
    found = PlannedTransaction.take_up(
        *(client, plan.action, plan.instant, OPERATION, opts, job.work.context.attempt, runner.stats_reader),
        asked_for=asked_for,
    )
    if found is None:
        return ClusteringResult()
    with found as tx:
        # what was written before the plan was taken up is clustered along, what is written later is a conflict
        job = ClusteringJob.of(PinnedTable.of(client), plan, opts, attempt=job.work.attempt)
        tx.to_inflight()
        done = job.metadata(runner.run(job))
        job.store_buckets()
        outcome = tx.commit(done, index=runner.index_delta(client, tx, done))
    if isinstance(outcome, Conflicted):
        raise outcome.error()
    try:
        job.mark_buckets(outcome.instant.requested)
    except Exception as failure:  # the next write makes the marks
        _log.warning("the buckets of %s are not marked: %s", outcome.instant, failure)
    stats = done.stats.select(WRITE_STAT_SCHEMA.names)
    return ClusteringResult((outcome.instant.requested,), stats, job.replaced)


def cluster_one(job: ClusteringJob, number: int, task: TaskId) -> bytes:
    """Rewrite one unit of a job; returns its write stats, packed."""
    return encode_stats(job.work.run(number, task))


@dataclass(frozen=True, slots=True)
class ThreadRunner:
    """Does the work with threads of this process. Keeps no index with as many records as the table."""

    progress: Progress | None = None

    @property
    def stats_reader(self) -> FileStatsReader:
        """Reads files by threads, too."""
        return LOCAL

    def check(self, config: TableConfig, job: ClusteringJob) -> None:
        """Refuse tables with a record index, and more rows than can be sorted in memory.

        Raises:
            SetupError: it needs Spark.
        """
        if RECORD_INDEX in config.metadata_partitions:
            raise SetupError("to cluster a table with a record index, which has to follow, takes Spark: pass spark=…")
        largest = max((unit.size for unit in job.units), default=0)
        if job.work.order and largest > _SORTED_IN_MEMORY:
            raise SetupError(
                f"to sort {largest:,} bytes of files takes Spark: pass spark=…, or lower "
                "hoodie.clustering.plan.strategy.max.bytes.per.group for the next plan"
            )

    def run(self, job: ClusteringJob) -> pa.Table:
        """Rewrite all units; returns the write stats."""
        failed = threading.Event()

        def work(number: int) -> bytes:
            if failed.is_set():
                return encode_stats([])
            try:
                return cluster_one(job, number, TaskId(number, 0, number))
            except BaseException:
                failed.set()
                raise

        threads, total = 1 if job.work.order else os.cpu_count() or 1, len(job.units)
        stats = []
        with ThreadPoolExecutor(threads) as pool:
            for stat in pool.map(work, range(total)):
                stats.append(stat)
                report_progress(self.progress, PROGRESS, len(stats), total)
        return decode_stats(stats)

    def index_delta(self, client: TableMetaClient, tx: Transaction, metadata: CommitMetadata) -> IndexDelta | None:
        """Nothing is kept by itself."""
        del client, tx, metadata
        return None
