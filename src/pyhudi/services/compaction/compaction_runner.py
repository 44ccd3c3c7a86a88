"""Execution of compactions, from the plan on the timeline to the commit, by a given runner."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import BusyError, InstantNotFoundError
from pyhudi.metadata.writer.file_stats_reader import LOCAL, FileStatsReader
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.services.compaction.compaction_job import CompactionJob, operation_type
from pyhudi.services.compaction.compaction_plan import CompactionPlan
from pyhudi.services.compaction.compaction_schedule import check_compactable, pending_plans
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.timeline.commit_metadata import WRITE_STAT_SCHEMA, total
from pyhudi.timeline.instant import Action
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.planned_transaction import PlannedTransaction
from pyhudi.write.write_context import TaskId
from pyhudi.write.write_status import decode_stats, encode_stats
from pyhudi.write.written_files import WrittenFiles

if TYPE_CHECKING:
    from pyhudi.metadata.indexes.index_delta import IndexDelta
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.table.meta_client import TableMetaClient
    from pyhudi.timeline.commit_metadata import CommitMetadata

_log = logging.getLogger(__name__)

PROGRESS = "compact file slices"
"""Name of the work in calls of `pyhudi.metrics.progress.Progress`."""

Runner = Callable[[CompactionJob], pa.Table]
"""Does the work of a job; returns the write stats."""


@runtime_checkable
class IndexMaintainer(Protocol):
    """A `Runner` that does with its engine what the metadata table takes, too: it brings those indexes up to date that
    need one, and ``stats_reader`` reads files where others are built."""

    @property
    def stats_reader(self) -> FileStatsReader:
        """Reader of the files."""
        ...

    def index_delta(
        self, client: TableMetaClient, config: TableConfig, instant: str, metadata: CommitMetadata
    ) -> IndexDelta:
        """Write what a compaction at ``instant`` has done to the indexes; ``metadata`` is what its commit will say."""
        ...


@dataclass(frozen=True, slots=True)
class CompactionResult(WrittenFiles):
    """Result of compactions. ``instants`` are those that were completed, oldest first; ``stats`` has one row for each
    file that was written (WRITE_STAT_SCHEMA). ``reason``: why there was nothing to be done, if that was looked at."""

    instants: tuple[str, ...] = ()
    stats: pa.Table = field(default_factory=WRITE_STAT_SCHEMA.empty_table)
    is_log: bool = False
    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.instants)

    @property
    def num_log_files(self) -> int:
        """Number of log files that were merged."""
        return total(self.stats, "totalLogFilesCompacted")

    def and_(self, other: CompactionResult) -> CompactionResult:
        """Return the sum of both."""
        return CompactionResult(
            (*self.instants, *other.instants), pa.concat_tables([self.stats, other.stats]), self.is_log
        )

    def __repr__(self) -> str:
        kind = "log compaction" if self.is_log else "compaction"
        if not self.instants:
            why = f"; {self.reason}" if self.reason else ""
            return f"CompactionResult({kind}: nothing done{why})"
        return (
            f"CompactionResult({kind} {', '.join(self.instants)}: {self.num_log_files:,} log files merged into "
            f"{self.num_files:,} files with {self.num_rows:,} records, {self.bytes_written:,} bytes)"
        )


def run_pending(
    client: TableMetaClient,
    opts: Options,
    runner: Runner,
    *,
    is_log: bool = False,
    instant: str | None = None,
    leave_others: bool = False,
    asked_for: bool = False,
) -> CompactionResult:
    """Carry out the pending plans, oldest first, or only the one of ``instant``. ``leave_others``: plans that somebody
    else is carrying out, or has carried out, are left alone. ``asked_for``: the user has named the instant, and knows
    that no other program is carrying it out.

    Raises:
        InstantNotFoundError: no such plan is pending.
        ConflictError: another process took this attempt for dead.
        BusyError: somebody else is carrying out a plan.
        TransactionError: a restore is pending.
    """
    check_compactable(client.config)
    action = Action.LOG_COMPACTION if is_log else Action.COMPACTION
    plans = pending_plans(client.active_timeline(), action)
    if instant is not None:
        plans = [plan for plan in plans if plan.instant == instant]
        if not plans and not leave_others:
            raise InstantNotFoundError(f"no {action} {instant!r} is pending in the table at {client.storage.root}")
    result = CompactionResult(is_log=is_log)
    for plan in plans:
        try:
            result = result.and_(run_plan(client, plan, opts, runner, asked_for=asked_for))
        except BusyError as busy:
            if not leave_others:
                raise
            _log.warning("a plan is left pending: %s", busy)
    return result


def run_plan(
    client: TableMetaClient, plan: CompactionPlan, opts: Options, runner: Runner, *, asked_for: bool = False
) -> CompactionResult:
    """Carry out one plan of the timeline. The result is empty when that is not to be done any more: somebody else has
    done it, or it is a log compaction that failed before or that a compaction has overtaken. An error leaves the plan
    of a compaction to be tried again. ``asked_for`` as of `run_pending`.

    Raises:
        ConflictError: another process took this attempt for dead.
        BusyError: somebody else is carrying out the plan.
        TransactionError: a restore is pending.
    """
    assert plan.instant is not None
    nothing = CompactionResult(is_log=plan.is_log)
    job = CompactionJob.of(PinnedTable.of(client), plan, opts)  # refuses what cannot be done before anything is touched
    operation = operation_type(is_log=plan.is_log)
    keeper = runner if isinstance(runner, IndexMaintainer) else None
    stats_reader = LOCAL if keeper is None else keeper.stats_reader
    found = PlannedTransaction.take_up(
        *(client, plan.action, plan.instant, operation, opts, job.context.attempt, stats_reader), asked_for=asked_for
    )
    if found is None:
        return nothing
    with found as tx:
        if plan.is_log and tx.is_overtaken(plan.operations.select(["partition", "file_id"])):
            tx.abort()
            return nothing
        if client.config.version < 8:  # which blocks of its logs count may have changed since
            job = CompactionJob.of(PinnedTable.of(client), plan, opts, attempt=job.attempt)
        tx.to_inflight()
        stats = runner(job)
        done = job.metadata(stats)
        index = None if keeper is None else keeper.index_delta(client, tx.config, tx.instant, done)
        outcome = tx.commit(done, index=index)
    if isinstance(outcome, Conflicted):
        if plan.is_log:
            return nothing
        raise outcome.error()
    return CompactionResult((outcome.instant.requested,), stats.select(WRITE_STAT_SCHEMA.names), plan.is_log)


def compact_one(job: CompactionJob, number: int, task: TaskId) -> bytes:
    """Compact one slice of a job; returns its write stats, packed."""
    return encode_stats(job.run(number, task))


def run_in_threads(job: CompactionJob, *, progress: Progress | None = None) -> pa.Table:
    """Run a job on threads of this process; returns the write stats."""
    failed = threading.Event()
    total = len(job.slices)

    def work(number: int) -> bytes:
        if failed.is_set():
            return encode_stats([])
        try:
            return compact_one(job, number, TaskId(number, 0, number))
        except BaseException:
            failed.set()
            raise

    stats = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for stat in pool.map(work, range(total)):
            stats.append(stat)
            report_progress(progress, PROGRESS, len(stats), total)
    return decode_stats(stats)
