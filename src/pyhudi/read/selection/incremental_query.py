"""Incremental queries: rows written by the commits in a time range, in their state at its end.

The range excludes its start and includes its end; it refers to completion times from table version 8 on and to
requested times before. The file groups written by its commits are read as of the end, restricted to rows with a commit
time in the range. Archived commits are included through the archived timeline. If a file of the range has been cleaned,
the whole table is read instead (if allowed), with a warning: this misses rows that were written in the range and
overwritten after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.options import INCREMENTAL_FALLBACK_FULL_SCAN
from pyhudi.errors import IncompleteRangeWarning, QueryError, warn
from pyhudi.merge.logs.valid_log_blocks import InstantsCompletedBy
from pyhudi.read.query.query import FIRST_BY_COMPLETION, InstantRange, Query
from pyhudi.read.selection.commit_time_filter import CommitTimes
from pyhudi.read.selection.completed_writes import (
    CompletedWrite,
    active_writes_of,
    archived_writes_of,
    completed_compactions,
)
from pyhudi.read.selection.incremental_files import lost_files, replaced_by, written_files
from pyhudi.read.selection.retention_limits import retained_from
from pyhudi.read.selection.selected_slices import InstantBounds, Selection
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_slicing import SLICE_SCHEMA, has_logs_named_by_slice
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import completions_after
from pyhudi.timeline.operation_types import COMPACT, REWRITING_OPERATIONS


def select_incremental(table: TableSnapshot, query: Query) -> Selection:
    """Return the slices and the row condition of an incremental query.

    Raises:
        QueryError: Files of the range no longer exist and falling back is not allowed, or an earlier write is pending.
        TransactionError: Apache Hudi has changed the version of the table halfway.
    """
    refuse_moved_instants(table.active)
    active, instants = table.active, query.instants
    active_writes = active_writes_of(active, query)
    archived = archived_writes_of(table, instants, active_writes)
    reached = [w for w in active_writes if instants.includes(w.time)]
    inside = [w for w in reached if instants.selects(w.requested)]
    from_start = instants.begin is None or (
        archived is not None and all(w.time > instants.begin for w in (*archived, *active_writes))
    )
    selected = inside + [w for w in archived or () if instants.includes(w.time)]
    if not selected:
        return Selection(SLICE_SCHEMA.empty_table(), [])
    # commits archived between savepoints are not known if the archive was not read
    start = active.timeline.start if archived is None and not from_start else None
    all_writes = {w.requested for w in (*active_writes, *(archived or ())) if start is None or w.requested >= start}
    rows = _commit_times(instants, selected, all_writes, from_start=from_start)
    across = _writes_across_end(active, instants, archived or ())
    if from_start:
        all_slices = _all_slices(table, instants, max(w.requested for w in selected), across)
    else:
        all_slices = _written_slices(table, instants, [*selected, *_rewriting(instants, reached)], across)
    has_other_rows = not from_start or len(inside) < len(reached)
    if isinstance(all_slices, str):
        all_slices, has_other_rows = _fall_back(table, query, all_slices), True
    last = max(w.requested for w in selected)
    bounds = InstantBounds(
        commit_times=rows if has_other_rows else None,
        log_blocks=None if instants.by_completion else last,
        written_by=_written_by(table, instants, all_slices.slices),
        schema=last if query.incremental.schema_as_of_end else None,
    )
    return replace(all_slices, bounds=bounds)


def _commit_times(
    instants: InstantRange, selected: Sequence[CompletedWrite], all_writes: Collection[str], *, from_start: bool
) -> CommitTimes:
    """Return the condition on the commit times of rows that the selected writes have written.

    Args:
        instants: The range.
        selected: Its writes.
        all_writes: Requested times of all known writes.
        from_start: The range includes the first write.
    """
    if instants.by_completion or instants.only is not None:
        return CommitTimes.only({w.requested for w in selected}, all_writes, from_start=from_start)
    return CommitTimes(after=instants.begin, up_to=max(w.requested for w in selected))


@dataclass(frozen=True, slots=True)
class _WritesAcrossEnd:
    """Writes, active or archived, that were requested before the end of a range of completion times, and completed
    after it.

    Attributes:
        compactions: Requested times of the compactions among them.
        others: Completion times of the others, by requested time.
    """

    compactions: frozenset[str] = frozenset()
    others: Mapping[str, str] = field(default_factory=dict)


def _writes_across_end(
    active: ActiveTimeline, instants: InstantRange, archived: Sequence[CompletedWrite]
) -> _WritesAcrossEnd:
    """Return the writes across the end of a range; none if it refers to requested times, or has no end."""
    if not instants.by_completion or instants.end is None:
        return _WritesAcrossEnd()
    end = instants.end
    done = [i for i in active.timeline.writes().completed().up_to(end) if i.order_time > end]
    late = [w for w in archived if instants.is_crossed_by(w.requested, w.time)]
    compactions = completed_compactions(active, done) | {w.requested for w in late if w.read().operation == COMPACT}
    times = {i.requested: i.order_time for i in done} | {w.requested: w.time for w in late}
    return _WritesAcrossEnd(compactions, {write: time for write, time in times.items() if write not in compactions})


def _all_slices(table: TableSnapshot, instants: InstantRange, last: str, across: _WritesAcrossEnd) -> Selection | str:
    """Return everything as of the end of the range, without a condition on rows; the reason if this is not possible."""
    if instants.end is None:
        view = FileSystemView.load(table)
        return Selection(view.latest_slices(None if instants.by_completion else last), view.partitions)
    # The groups that such a write replaced are needed, and the cleaner uses requested times.
    if retained_from(table.active, min([last, *across.others])) is not None:
        return "the cleaner has removed files of its end"
    view = FileSystemView.load(table, compactions=across.compactions, archived=across.others)
    cut = {"completed_by": instants.end} if instants.by_completion else {"as_of": last}
    return Selection(view.latest_slices(**cut), view.partitions)


def _written_slices(
    table: TableSnapshot, instants: InstantRange, writes: Sequence[CompletedWrite], across: _WritesAcrossEnd
) -> Selection | str:
    """Return the slices, as of the end, of the file groups written by the writes; the reason if files no longer
    exist."""
    written = written_files(writes)
    partitions = sorted(pc.unique(written["partition"]).to_pylist())
    compactions, late = across.compactions, across.others
    view = FileSystemView.load(table, partitions=partitions, compactions=compactions, archived=late)
    cut = {"completed_by": instants.end} if instants.by_completion else {"as_of": max(w.requested for w in writes)}
    # A view knows the groups that active writes have replaced, without those of archived ones.
    for replaced in (view.replaced_groups(**cut), replaced_by(writes)):
        written = written.filter(pc.invert(in_groups(written, replaced)))
    slices = view.latest_slices(**cut)
    slices = slices.filter(in_groups(slices, written))
    completions = view.completions if table.config.version >= FIRST_BY_COMPLETION else None
    missing = lost_files(written, slices, completions, compactions)
    return missing or Selection(slices, partitions)


def _rewriting(instants: InstantRange, reached: Sequence[CompletedWrite]) -> list[CompletedWrite]:
    """Return the clusterings and compactions in the range of a query of some of its commits.

    They may have moved the rows of these commits to other files since the query was first planned.
    """
    if instants.only is None:
        return []
    others = [w for w in reached if not instants.selects(w.requested)]
    return [w for w in others if w.read().operation in REWRITING_OPERATIONS]


def _written_by(table: TableSnapshot, instants: InstantRange, slices: pa.Table) -> InstantsCompletedBy | None:
    """Return the instants whose log blocks belong to a range of completion times; None if the files have been selected
    by that."""
    if not instants.by_completion or instants.end is None or not has_logs_named_by_slice(slices):
        return None
    return InstantsCompletedBy(instants.end, completions_after(table.active, instants.end))


def _fall_back(table: TableSnapshot, query: Query, why: str) -> Selection:
    if not query.incremental.fallback:
        raise QueryError(
            f"cannot execute the incremental query ({query}): {why}. Begin later, or set "
            f"{INCREMENTAL_FALLBACK_FULL_SCAN.key!r} to 'true' to read the whole table for the rows of that range "
            "that are still current"
        )
    warn(
        f"the incremental query ({query}) returns only those rows of its range that are still current: {why}. Rows "
        "that were overwritten or deleted later are missing. Begin later, clean less, or set "
        f"{INCREMENTAL_FALLBACK_FULL_SCAN.key!r} to 'false' to raise an error instead",
        IncompleteRangeWarning,
    )
    view = FileSystemView.load(table)
    return Selection(view.latest_slices(), view.partitions)
