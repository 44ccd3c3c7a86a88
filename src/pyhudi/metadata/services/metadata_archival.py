"""Archives what is old on the metadata table's own timeline, as Apache Hudi does.

What is on the table's active timeline stays active here: rolling back or restoring a write looks its delta commit up.
So do all instants since the last compaction, of which readers ask what files they have written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.config import Options, options
from pyhudi.timeline.archive.archiver import archival_end, archive, can_archive, finish
from pyhudi.timeline.instant import Action, Instant

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline


def archive_old(
    storage: Storage, opts: Options, data: ActiveTimeline, active: ActiveTimeline, *, timezone: str = "LOCAL"
) -> list[Instant]:
    """Archive instants of the metadata table (``active``: its timeline; ``data``: the table's) if there are many, and
    finish what another one has left; returns those that went off the timeline. ``timezone`` is that of the table's
    timeline. The caller holds the table's lock."""
    if not opts.get_typed(options.AUTO_ARCHIVE):
        return []
    left = finish(storage, active)
    if left:
        active = active.reload()
    found = archivable(
        active.timeline,
        data.timeline,
        least=opts.get_typed(options.KEEP_MIN_COMMITS) + 1,
        most=opts.get_typed(options.KEEP_MAX_COMMITS) + 1,
    )
    found = [i for i in found if can_archive(active.layout, i)]
    if found:
        block, merge = opts.get_typed(options.ARCHIVE_BATCH), opts.get_typed(options.TIMELINE_COMPACTION_BATCH)
        archive(storage, active, found, timezone=timezone, block=block, merge=merge)
    return [*left, *found]


def archivable(metadata: Timeline, data: Timeline, *, least: int, most: int) -> list[Instant]:
    """The instants that can be archived, oldest first: when there are more than ``most`` commits, those before the last
    ``least`` of them."""
    compaction = metadata.completed().of_actions(Action.COMMIT).last
    if compaction is None:
        return []
    active = [i.requested for i in data if not i.is_completed or i.is_write]
    end = archival_end(metadata, least=least, most=most, before=[compaction.requested, *active])
    if end is None:
        return []
    # what has built a partition bears no time of its own, and is as old as its completion
    return [i for i in metadata.completed() if i.requested < end and i.order_time < end]
