"""Archival of the metadata table's timeline, as in Apache Hudi.

Instants in the active timeline of the table stay active here, because rollback and restore look up their delta commits.
So do all instants since the last compaction, which readers need to determine the written files.
"""

from __future__ import annotations

from pyhudi.config import options
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.timeline.archive.archiver import ArchiveOptions, archival_end, archive, can_archive, finish_archival
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.timeline import Timeline


def archive_metadata_timeline(table: LockedTable) -> None:
    """Archive instants of the metadata table if there are many, and complete an interrupted archival.

    Raises:
        LockError: The lock of the table was lost.
    """
    opts = table.opts
    if not opts.get_typed(options.AUTO_ARCHIVE):
        return
    active = table.load_metadata_timeline()
    if finish_archival(active):
        active = active.reload()
    instants = archivable_instants(
        active.timeline,
        table.active.timeline,
        min_commits=opts.get_typed(options.KEEP_MIN_COMMITS) + 1,
        max_commits=opts.get_typed(options.KEEP_MAX_COMMITS) + 1,
        beyond_savepoints=opts.get_typed(options.ARCHIVE_BEYOND_SAVEPOINT),
    )
    instants = [i for i in instants if can_archive(active.layout, i)]
    if instants:
        archive(active, instants, ArchiveOptions.from_options(opts, table.config.timezone), table.reserved.lock)


def archivable_instants(
    metadata_timeline: Timeline,
    data_timeline: Timeline,
    *,
    min_commits: int,
    max_commits: int,
    beyond_savepoints: bool = False,
) -> list[Instant]:
    """Return the instants to archive, oldest first: if there are more than ``max_commits``, those before the last
    ``min_commits``.

    ``beyond_savepoints``: delta commits of writes with savepoints that archival of the table has passed are archived,
    too. Such a write is older than the remaining timeline, so readers do not miss its delta commit, and it cannot be
    rolled back.
    """
    compaction = metadata_timeline.completed().of_actions(Action.COMMIT).last
    if compaction is None:
        return []
    pending = data_timeline.pending().requested_times
    writes = data_timeline.completed().writes()
    if beyond_savepoints:
        writes = writes.filter(lambda i: not data_timeline.is_before_start(i.requested))
    end = archival_end(
        metadata_timeline,
        min_commits=min_commits,
        max_commits=max_commits,
        before=[compaction.requested, *pending, *writes.requested_times],
    )
    if end is None:
        return []
    # Initial instants are not times; their age is that of their completion.
    old = [i for i in metadata_timeline.completed() if i.requested < end and i.order_time < end]
    # Readers take what is not on the timeline as archived only if it is before the first instant that is there.
    first_kept = min((i.requested for i in metadata_timeline if i not in old), default=end)
    return [i for i in old if i.requested < first_kept]
