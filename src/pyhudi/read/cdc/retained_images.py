"""Images from before a commit that cleaning has left, by the cleans and the savepoints of the timeline."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.read.selection.completed_writes import CompletedWrite
from pyhudi.read.selection.retention_limits import retained_by_cleaning
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.archive.archived_timeline import archived_writes
from pyhudi.timeline.instant import Action


def earliest_retained_image(
    table: TableSnapshot, write: CompletedWrite, groups: pa.Table, *, by_completion: bool
) -> str | None:
    """Return the earliest time whose images are retained, if slices from before a commit may have been cleaned;
    otherwise None.

    A savepoint of the commit before retains them. One of the commit itself does so where the commit has appended to a
    slice, which is in the savepoint; it has none of the files that the commit has replaced.

    Args:
        table: The table.
        write: The commit.
        groups: The file groups whose slices before the commit are read: ``appended`` (the commit has only appended to
            the slice), and the slices ``before`` and ``after`` the commit.
        by_completion: Times are completion times.
    """
    if not groups.num_rows:
        return None
    earliest = retained_by_cleaning(table.active, write.requested)
    if earliest is None:
        return None
    timeline = table.active.timeline
    saved = {i.requested for i in timeline.completed() if i.action == Action.SAVEPOINT}
    if not saved:
        return earliest
    earlier = [(r, time) for r, time in _writes(table, by_completion=by_completion) if time < write.time]
    newest = max(earlier, default=None)
    if newest is not None and newest[0] in saved and all(time <= newest[1] for _, time in earlier):
        return None
    if write.requested not in saved or (newest is not None and newest[0] > write.requested):
        return earliest
    return earliest if pc.any(pc.invert(_is_in_slice_after(groups))).as_py() else None


def _writes(table: TableSnapshot, *, by_completion: bool) -> list[tuple[str, str]]:
    """Return requested time and time of all completed writes, also of archived ones: archival leaves commits with
    savepoints behind."""
    active = [
        (i.requested, i.order_time if by_completion else i.requested)
        for i in table.active.timeline.writes().completed()
    ]
    names = archived_writes(table.storage, table.active.layout)
    times = pc.coalesce(names["completion"], names["requested"]) if by_completion else names["requested"]
    return [*active, *zip(names["requested"].to_pylist(), times.to_pylist(), strict=True)]


def _is_in_slice_after(groups: pa.Table) -> pa.Array:
    """Return for which file groups the slice before the commit is a part of the one after it."""
    before, after = contiguous(groups["before"]), contiguous(groups["after"])
    base_before, base_after = (pc.struct_field(slices, "base_path") for slices in (before, after))
    same = pc.fill_null(pc.equal(base_before, base_after), False)
    both_without = pc.and_(pc.is_null(base_before), pc.is_null(base_after))
    return pc.and_(contiguous(groups["appended"]), pc.or_(same, both_without))
