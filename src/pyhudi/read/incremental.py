"""Incremental queries: the rows that the commits in a range of time have written, as they stand at its end.

The range is open at its start and closed at its end; it counts completion times from table version 8 on and requested
times before. The file groups that its commits wrote are read as of the end, and of their rows those with a commit time
in the range. Archived commits take part through the history. Where a file of the range has been cleaned the whole table
is read instead (if allowed): that misses rows which were written in the range and overwritten after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import QueryError
from pyhudi.format.filenames import BASE, parse_names, split_paths
from pyhudi.read.commit_times import CommitTimes
from pyhudi.read.query import FALLBACK, HOLES, Holes, Query
from pyhudi.read.retention import first_pending_write, retained_from
from pyhudi.table.fsview import SLICE_SCHEMA, FileSystemView
from pyhudi.timeline.history import read_history
from pyhudi.timeline.instants import WRITE_ACTIONS, Instant
from pyhudi.timeline.metadata import CommitMetadata, decode_commit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyhudi.read.pinned import PinnedTable
    from pyhudi.timeline.active import ActiveTimeline

_READ_THREADS = 16
_WRITTEN_SCHEMA = pa.schema([(name, pa.string()) for name in ("partition", "file_id", "path", "order")])


@dataclass(frozen=True, slots=True)
class IncrementalSelection:
    """See :class:`pyhudi.read.selection.Selection`."""

    slices: pa.Table
    partitions: list[str]
    commit_times: CommitTimes | None = None
    schema_as_of: str | None = None
    latest: str | None = None


@dataclass(frozen=True, slots=True)
class _Write:
    """A completed write: its requested time, the time that the range counts, and how to get its metadata."""

    requested: str
    time: str
    read: Callable[[], CommitMetadata]


def select_incremental(table: PinnedTable, query: Query) -> IncrementalSelection:
    """The slices and the row condition of an incremental query.

    Raises:
        QueryError: files of the range are gone and falling back is not allowed, or an earlier write is pending.
    """
    active = table.active
    known = _active_writes(active, query)
    archived = _archived_writes(table, active, query, known)
    inside = [w for w in known if query.in_range(w.time)]
    from_start = query.begin is None or (
        archived is not None and all(w.time > query.begin for w in (*archived, *known))
    )
    wanted = inside + [w for w in archived or () if query.in_range(w.time)]
    if not wanted:
        return IncrementalSelection(SLICE_SCHEMA.empty_table(), [])
    if query.by_completion:
        every = {w.requested for w in (*known, *(archived or ()))}
        rows = CommitTimes.only({w.requested for w in wanted}, every, from_start=from_start)
    else:
        rows = CommitTimes(after=query.begin, up_to=max(w.requested for w in wanted))
    if from_start:
        found = _all_slices(table, active, query, max(w.requested for w in wanted))
    else:
        found = _written_slices(table, query, wanted)
    if isinstance(found, str):
        found = _fall_back(table, query, found)
        found = replace(found, commit_times=rows)
    elif not from_start:
        found = replace(found, commit_times=rows)
    last = max(w.requested for w in wanted)
    if not query.by_completion:
        found = replace(found, latest=last)
    return replace(found, schema_as_of=last) if query.schema_as_of_end else found


def _all_slices(table: PinnedTable, active: ActiveTimeline, query: Query, last: str) -> IncrementalSelection | str:
    """Everything as of the end of the range; rows need no condition. A reason if that is not to be had."""
    view = FileSystemView.load(table)
    if query.end is None:
        return IncrementalSelection(view.latest_slices(None if query.by_completion else last), view.partitions)
    if retained_from(active, last) is not None:
        return "the cleaner has removed files of its end"
    cut = {"completed_by": query.end} if query.by_completion else {"as_of": last}
    return IncrementalSelection(view.latest_slices(**cut), view.partitions)


def _written_slices(table: PinnedTable, query: Query, writes: Sequence[_Write]) -> IncrementalSelection | str:
    """The slices, as of the end, of the file groups that the writes wrote to; a reason if files are gone."""
    written = _written_files(writes)
    partitions = sorted(pc.unique(written["partition"]).to_pylist())
    view = FileSystemView.load(table, partitions=partitions)
    cut = {"completed_by": query.end} if query.by_completion else {"as_of": max(w.requested for w in writes)}
    written = written.filter(pc.invert(_is_among(written, view.replaced_groups(**cut))))
    slices = view.latest_slices(**cut)
    slices = slices.filter(_is_among(slices, written))
    # the newest base file that the writes gave each group must be the one that stands there
    base = written.filter(pc.is_valid(written["path"])).sort_by([("order", "ascending")])
    newest = base.group_by(["partition", "file_id"], use_threads=False).aggregate([("path", "last")])["path_last"]
    lost = newest.filter(pc.invert(pc.is_in(newest, value_set=_flat(slices["base_path"]))))
    if len(lost):
        return f"{len(lost)} of its files are gone, among them {lost[0].as_py()!r}"
    # log files that were compacted after the range, and cleaned with their slice, leave nothing as of its end
    logged = written.filter(pc.invert(_is_among(written, slices)))
    if logged.num_rows:
        group = logged.slice(0, 1).to_pylist()[0]
        return f"log files of it are gone, among them those of {group['file_id']!r} in partition {group['partition']!r}"
    return IncrementalSelection(slices, partitions)


def _fall_back(table: PinnedTable, query: Query, why: str) -> IncrementalSelection:
    if not query.fallback:
        raise QueryError(
            f"the incremental query ({query}) cannot be answered: {why}. Begin later, or set {FALLBACK!r} to 'true' to "
            "read the whole table for the rows of that range that are still current"
        )
    view = FileSystemView.load(table)
    return IncrementalSelection(view.latest_slices(), view.partitions)


# --- the writes of the range -----------------------------------------------------------------------------------------


def _active_writes(active: ActiveTimeline, query: Query) -> list[_Write]:
    done = [i for i in active.timeline.writes() if i.is_completed]
    if not query.by_completion:
        done = _without_holes(active, done, query)
    return [_Write(i.requested, _time(i, query), partial(active.commit_metadata, i)) for i in done]


def _time(instant: Instant, query: Query) -> str:
    return instant.order_time if query.by_completion else instant.requested


def _without_holes(active: ActiveTimeline, done: list[Instant], query: Query) -> list[Instant]:
    pending = first_pending_write(active)
    if pending is None or not any(i.requested > pending.requested for i in done):
        return done
    if query.holes is Holes.BLOCK:
        return [i for i in done if i.requested < pending.requested]
    raise QueryError(
        f"the {pending.action} {pending.requested} is pending while later writes have completed: an incremental reader "
        "that goes on from the last of them would miss it. Let a writer finish or roll it back, or set "
        f"{HOLES!r} to 'BLOCK' to read only what is before it"
    )


def _archived_writes(
    table: PinnedTable, active: ActiveTimeline, query: Query, known: Sequence[_Write]
) -> list[_Write] | None:
    """Archived writes, where the range may reach them; None where they need not be asked.

    They are not asked by a range from the very start to a time of the active timeline: it takes everything up to there.
    """
    earliest = min((w.time for w in known), default=None)
    if query.begin is None:
        if query.end is None or (earliest is not None and query.end >= earliest):
            return None
    elif earliest is not None and query.begin >= earliest:
        return None
    names = read_history(table.storage, active.layout, metadata=False)
    names = names.filter(pc.is_in(names["action"], value_set=pa.array(sorted(WRITE_ACTIONS))))
    time = pc.coalesce(names["completion"], names["requested"]) if query.by_completion else names["requested"]
    rows = list(zip(names["requested"].to_pylist(), time.to_pylist(), strict=True))
    metadata = _Archive(table, active, min((r for r, at in rows if query.in_range(at)), default=""))
    return [_Write(requested, at, partial(metadata.read, requested)) for requested, at in rows]


class _Archive:
    """Metadata of archived writes from ``oldest`` on, read in one go when first asked for. Thread-safe."""

    def __init__(self, table: PinnedTable, active: ActiveTimeline, oldest: str) -> None:
        self._table = table
        self._active = active
        self._oldest = oldest
        self._lock = Lock()
        self._found: dict[str, bytes] | None = None

    def read(self, requested: str) -> CommitMetadata:
        with self._lock:
            if self._found is None:
                table = read_history(self._table.storage, self._active.layout, after=self._oldest[:-1])
                table = table.filter(pc.is_in(table["action"], value_set=pa.array(sorted(WRITE_ACTIONS))))
                self._found = dict(zip(table["requested"].to_pylist(), table["metadata"].to_pylist(), strict=True))
        data = self._found.get(requested)
        if data is None:
            raise QueryError(f"the archived timeline has no metadata for the write {requested}; begin after it")
        return decode_commit(data)


def _written_files(writes: Sequence[_Write]) -> pa.Table:
    """What the writes wrote (`_WRITTEN_SCHEMA`): ``path`` is null for logs; ``order`` is the time of the write."""
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        stats = list(pool.map(lambda w: w.read().stats, writes))
    tables = [
        pa.Table.from_arrays(
            [t["partitionPath"], t["fileId"], t["path"], pa.array([w.time] * t.num_rows, pa.string())],
            schema=_WRITTEN_SCHEMA,
        )
        for w, t in zip(writes, stats, strict=True)
    ]
    table = pa.concat_tables(tables)
    table = table.filter(pc.is_valid(table["path"]))
    _, names = split_paths(table["path"])
    is_base = pc.equal(parse_names(names)["kind"], BASE)
    path = pc.if_else(is_base, table["path"], pa.scalar(None, pa.string()))
    return table.set_column(2, _WRITTEN_SCHEMA.field("path"), path)


def _is_among(table: pa.Table, groups: pa.Table) -> pa.ChunkedArray:
    """Which rows of ``table`` have their (partition, file_id) in ``groups``."""
    have, wanted = (pc.binary_join_element_wise(t["partition"], t["file_id"], "\x00") for t in (table, groups))
    return pc.is_in(have, value_set=_flat(wanted))


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
