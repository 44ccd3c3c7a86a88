"""Archival of a table, including completion of an interrupted one."""

from __future__ import annotations

from dataclasses import replace

from pyhudi.config import Options, options
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.services.archival.archival_plan import (
    ArchivalPlan,
    is_archival_due,
    leaves_nothing_older,
    make_archival_plan,
)
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.services.service_result import PhaseTimer, ServiceResult
from pyhudi.storage.lock_primitives import DeferredReleaseLock
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archive_log_writer import SmallFiles
from pyhudi.timeline.archive.archiver import ArchiveOptions, archive, can_archive, finish_archival
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.markers import Markers, marked_instants
from pyhudi.transaction.locks.lock_factory import make_time_generator
from pyhudi.transaction.rollback.late_data_files import delete_files_passed_by_start
from pyhudi.transaction.table_checks import current_snapshot

SERVICE = "archive"


def plan_archival(client: TableMetaClient, opts: Options, *, only_if_due: bool) -> ArchivalPlan:
    """Return the plan that `archive_table` would execute now, without writing anything."""
    return make_archival_plan(TableSnapshot.load(client.reload()), opts, only_if_due=only_if_due)


def archive_table(
    client: TableMetaClient,
    opts: Options,
    stats_reader: FileStatsReader = LOCAL,
    *,
    only_if_due: bool = False,
    progress: Progress | None = None,
) -> ServiceResult:
    """Move old instants from the active timeline to the archived one.

    Args:
        client: The table.
        opts: Options of archival, cleaning and locks.
        stats_reader: Reads files if the metadata table has to be rebuilt.
        only_if_due: Do nothing unless there are more than `hoodie.keep.max.commits` commits.
        progress: Called before and after instants are archived.

    Raises:
        ConfigError: `hoodie.keep.max.commits` is not greater than `hoodie.keep.min.commits`, and cleaning
            retains commits.
        TransactionError: A restore is pending.
        CorruptInstantError: The timeline or the archived timeline cannot be read.
        LockError: The lock of the table could not be acquired, or was lost.
    """
    phases = PhaseTimer()
    table = TableSnapshot.load(client)
    nothing = ServiceResult(SERVICE, client.storage.uri(), reason="there are not enough commits")
    if only_if_due and not is_archival_due(table, opts):
        return nothing
    storage = client.storage
    with phases("clean"):
        takes_last_clean = _takes_last_clean(table, opts, only_if_due=only_if_due)
        if takes_last_clean and not Cleaner(client, opts, stats_reader).renew_last():
            return replace(nothing, reason="a clean is pending; it has to be completed first")
    lock = make_time_generator(storage, opts, client.config.timezone).lock
    with lock:
        with phases("plan"):
            table = current_snapshot(storage, client.config)
            left = finish_archival(table.active)
            table = table.reload() if left else table
            plan = make_archival_plan(table, opts, only_if_due=only_if_due)
        to_archive = [i for i in plan.instants if can_archive(table.active.layout, i)]
        instants = tuple(i.requested for i in (*left, *to_archive))
        with phases("archive"):
            if to_archive:
                report_progress(progress, "archive instants", 0, len(to_archive))
                settings = ArchiveOptions.from_options(opts, table.config.timezone, _small_files(opts))
                _archive(table.active, to_archive, settings, lock)
                report_progress(progress, "archive instants", len(to_archive), len(to_archive))
            for instant in set(instants) & set(marked_instants(storage)):
                Markers(storage, instant).delete()
    counts = {"instants": len(instants)}
    return ServiceResult(
        SERVICE, storage.uri(), instants, counts, millis=phases.millis, reason="" if instants else plan.reason
    ).published(opts)


def _takes_last_clean(table: TableSnapshot, opts: Options, *, only_if_due: bool) -> bool:
    if not leaves_nothing_older(table):
        return False
    completed = table.active.timeline.completed()
    last = completed.of_actions(Action.CLEAN).last
    if last is None or len(completed.writes().after(last.requested)) < opts.get_typed(options.KEEP_MIN_COMMITS):
        return False  # At least as many commits stay as are later than it.
    return last in make_archival_plan(table, opts, only_if_due=only_if_due).instants


def _small_files(opts: Options) -> SmallFiles | None:
    """Return the condition for merging archive files of version 6."""
    if not opts.get_typed(options.ARCHIVE_MERGE):
        return None
    count, limit = opts.get_typed(options.ARCHIVE_MERGE_BATCH), opts.get_typed(options.ARCHIVE_MERGE_SMALL_LIMIT)
    return SmallFiles(count, limit)


def _archive(
    active: ActiveTimeline, instants: list[Instant], settings: ArchiveOptions, lock: DeferredReleaseLock
) -> None:
    """Archive instants, after deleting the files that would become visible when the timeline starts later."""
    start = _remaining_start(active, instants)
    lock.ensure_held()
    delete_files_passed_by_start(active, start)
    archive(active, instants, settings, lock)


def _remaining_start(active: ActiveTimeline, archived: list[Instant]) -> str:
    """Return the start of the remaining timeline: older instants are considered archived, whether they were committed
    or not."""
    excluded = {i.requested for i in archived} | set(active.timeline.of_actions(Action.SAVEPOINT).requested_times)
    left = (i.requested for i in active.timeline.completed().writes() if i.requested not in excluded)
    return min(left, default=archived[-1].requested)
