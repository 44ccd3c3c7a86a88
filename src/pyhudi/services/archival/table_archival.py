"""Carrying out archival of a table, and finishing one that died."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.config import Options, options
from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.services.archival.archival_plan import ArchivalPlan, is_archival_due, make_archival_plan
from pyhudi.services.service_result import Phases, ServiceResult
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archive_log import SmallFiles
from pyhudi.timeline.archive.archiver import archive, can_archive, finish
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.instant_generator import InstantGenerator
from pyhudi.timeline.markers import Markers, marked_instants
from pyhudi.transaction.action_start import current_config
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.rollback import late_files
from pyhudi.transaction.rollback.rollback_failed import refuse_pending_restore

if TYPE_CHECKING:
    from pyhudi.table.meta_client import TableMetaClient

SERVICE = "archive"


def plan_archival(client: TableMetaClient, opts: Options, *, only_if_due: bool = False) -> ArchivalPlan:
    """Return what `archive_table` would archive now; nothing is written."""
    return make_archival_plan(PinnedTable.of(client.reload()), opts, only_if_due=only_if_due)


def archive_table(
    client: TableMetaClient, opts: Options, *, only_if_due: bool = False, progress: Progress | None = None
) -> ServiceResult:
    """Move old instants from the active timeline into the archived one.

    Args:
        client: the table.
        opts: options of archival, cleaning and locks.
        only_if_due: do nothing unless there are more than `hoodie.keep.max.commits` commits.
        progress: called before and after instants are archived.

    Raises:
        TransactionError: a restore is pending.
        CorruptInstantError: the timeline or the archived timeline cannot be read.
        LockError: the table's lock could not be taken.
    """
    phases = Phases()
    table = PinnedTable.of(client)
    nothing = ServiceResult(SERVICE, client.storage.uri(), reason="there are not enough commits")
    if only_if_due and not is_archival_due(table, opts):
        return nothing
    lock = make_lock_provider(client.storage, opts)
    storage = client.storage
    with InstantGenerator(storage, opts, client.config.timezone, lock=lock).lock:
        with phases("plan"):
            config = current_config(storage, client.config)
            active = ActiveTimeline.load(storage, config.layout)
            refuse_pending_restore(active)
            left = finish(storage, active)
            active = active.reload() if left else active
            plan = make_archival_plan(PinnedTable(storage, config, active), opts, only_if_due=only_if_due)
        found = [i for i in plan.instants if can_archive(active.layout, i)]
        with phases("archive"):
            if found:
                report_progress(progress, "archive instants", 0, len(found))
                late_files.delete_before(active, _first_left(active, found))
                block, merge = opts.get_typed(options.ARCHIVE_BATCH), opts.get_typed(options.TIMELINE_COMPACTION_BATCH)
                small = _small_files(opts)
                archive(storage, active, found, timezone=config.timezone, block=block, merge=merge, small=small)
                report_progress(progress, "archive instants", len(found), len(found))
            gone = {i.requested for i in (*left, *found)}
            for instant in gone & set(marked_instants(storage)):
                Markers(storage, instant).delete()
    instants = tuple(i.requested for i in (*left, *found))
    counts = {"instants": len(instants)}
    return ServiceResult(
        SERVICE, storage.uri(), instants, counts, millis=phases.millis, reason="" if instants else plan.reason
    ).published(opts)


def _small_files(opts: Options) -> SmallFiles | None:
    """Choice of the archive files of version 6 that are merged."""
    if not opts.get_typed(options.ARCHIVE_MERGE):
        return None
    count, limit = opts.get_typed(options.ARCHIVE_MERGE_BATCH), opts.get_typed(options.ARCHIVE_MERGE_SMALL_LIMIT)
    return SmallFiles(count, limit)


def _first_left(active: ActiveTimeline, archived: list[Instant]) -> str:
    """The start of the timeline to come: what is older counts as archived, whether it ever was committed or not."""
    gone = {i.requested for i in archived} | {i.requested for i in active.timeline.of_actions(Action.SAVEPOINT)}
    left = (i.requested for i in active.timeline.completed().writes() if i.requested not in gone)
    return min(left, default=archived[-1].requested)
