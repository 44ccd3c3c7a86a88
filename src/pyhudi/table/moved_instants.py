"""Instants that are only in the folder of the other timeline layout.

Apache Hudi moves instants one by one, each with its files, when it changes the version of a table between 6 and 8, and
writes ``hoodie.properties`` at the end. Meanwhile, and if it dies, no timeline has all commits: files of the missing
ones look uncommitted to readers, and failed to writers, which would delete them.

pyhudi copies instants, so its interrupted upgrades leave nothing that is only there, except for instants whose
originals were archived or rolled back since, and those of a table that was overwritten.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import TransactionError
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.config.properties_file import load_properties
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_group_state import replaced_groups
from pyhudi.table.view.file_listing import list_files
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import archived_writes, read_archived_timeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout

_UNDOING = {Action.ROLLBACK: "commitsRollback", Action.RESTORE: "instantsToRollback"}
"""Actions that undo commits, and the fields of their records with the instants of these."""


def refuse_moved_instants(active: ActiveTimeline) -> None:
    """Refuse a table some of whose commits are only in the folder of the other layout, by one listing of it.

    Raises:
        TransactionError: The message has one of the commits, and the cure. Or the version of the table has changed
            since its properties were read.
    """
    if (other := _other_layout(active.layout)) is not None:
        _refuse_moved(active, ActiveTimeline.load(active.storage, other))


def load_whole_timeline(storage: Storage, layout: Layout) -> ActiveTimeline:
    """Load the timeline of a table that is to be changed, and the folder of the other layout at the same time.

    Raises:
        TransactionError: As in `refuse_moved_instants`.
    """
    other = _other_layout(layout)
    if other is None:
        return ActiveTimeline.load(storage, layout)
    active, there = concurrent_map(partial(ActiveTimeline.load, storage), [layout, other])
    _refuse_moved(active, there)
    return active


def _other_layout(layout: Layout) -> Layout | None:
    """Return the other layout; None if it has the same folder."""
    other = LAYOUT_1 if layout.version >= 2 else LAYOUT_2
    return None if other.folder == layout.folder else other


def _refuse_moved(active: ActiveTimeline, there: ActiveTimeline) -> None:
    storage, layout, other = active.storage, active.layout, there.layout
    if not _not_completed(there, active):
        return
    active = active.reload()  # pyhudi may have copied commits that are later than this timeline
    left = _not_completed(there, active)
    if left:
        requested = [i.requested for i in left]
        archived = archived_writes(storage, layout, after=min(requested)[:-1], up_to=max(requested))
        over = set(archived["requested"].to_pylist())
        left = [i for i in left if i.requested not in over]
    if not left:
        return
    undone, replaced = _undone_commits(active), replaced_groups(active, active.timeline)
    moved = [i for i in left if i.requested not in undone and _has_effect(there, i, replaced)]
    # a rollback leaves no file of a completed commit, but the plan of a compaction, which is executed again
    half = [i.requested for i in moved if not i.is_completed and i.action != Action.COMPACTION]
    if half:
        undone = _archived_undone_commits(active, min(half)).intersection(half)
        moved = [i for i in moved if i.requested not in undone]
    if moved:
        if Layout.from_properties(load_properties(storage)) != layout:
            raise TransactionError(
                f"another program has changed the version of the table at {storage.uri()}; open it again"
            )
        raise TransactionError(
            f"{len(moved)} writes of the table at {storage.uri()}, such as {moved[0]}, are only in "
            f"{storage.uri(other.folder)}: Apache Hudi is changing the version of the table, or was interrupted. Wait "
            "until it is done, or run the upgrade or downgrade again with Apache Hudi, which moves the others there, "
            "too"
        )


def _not_completed(there: ActiveTimeline, active: ActiveTimeline) -> list[Instant]:
    """Return the writes of the other layout that are not completed in a timeline."""
    return [i for i in there.timeline.writes() if not active.timeline.is_completed(i.requested)]


def _undone_commits(active: ActiveTimeline) -> set[str]:
    """Return the instants that rollbacks and restores of a timeline have undone."""
    done = active.timeline.completed()
    return {
        i
        for action, key in _UNDOING.items()
        for one in done.of_actions(action)
        for i in active.completed_record(one)[key] or ()
    }


def _archived_undone_commits(active: ActiveTimeline, after: str) -> set[str]:
    """Return the instants that archived rollbacks and restores with a later requested time have undone."""
    archived = read_archived_timeline(active.storage, active.layout, after=after, actions=_UNDOING)
    return {
        i
        for action, key in _UNDOING.items()
        for data in archived.filter(pc.equal(archived["action"], action))["metadata"].drop_null().to_pylist()
        for i in decode_record(action, State.COMPLETED, data)[key] or ()
    }


def _has_effect(active: ActiveTimeline, instant: Instant, replaced: pa.Table) -> bool:
    """Return True if a table without an instant would show other rows, or lose a pending write: a commit has written or
    replaced files that still exist, of file groups that are not ``replaced`` (partition, file_id) in the table. Files
    of a commit that was rolled back are gone. Copies of pending instants are those of overwritten tables only.
    """
    if not instant.is_completed:
        newest = active.timeline.writes().last
        return newest is None or not newest.is_completed or newest.action != Action.REPLACE_COMMIT
    metadata = active.commit_metadata(instant)
    groups = metadata.stats.select(["partitionPath", "fileId"]).rename_columns(["partition", "file_id"])
    kept = replace(metadata, stats=metadata.stats.filter(pc.invert(in_groups(groups, replaced))))
    if any(concurrent_map(active.storage.exists, kept.named_files().to_pylist())):
        return True
    if metadata.replaced is None:
        return False
    hidden = metadata.replaced.filter(pc.invert(in_groups(metadata.replaced, replaced)))
    if not hidden.num_rows:
        return False
    files, _ = list_files(active.storage, pc.unique(hidden["partition"]).to_pylist())
    return bool(pc.any(in_groups(files, hidden)).as_py())
