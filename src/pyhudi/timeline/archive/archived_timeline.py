"""Archived timeline as Arrow, in both layouts of the timeline.

The readers return one row per archived instant, with the columns `ARCHIVED_INSTANTS_SCHEMA` of
`pyhudi.timeline.archive.archived_instants`, sorted by requested time. The times of instants, which most queries use,
are cached by the name and length of their file. In layout 1, where names repeat when a table is dropped and created
again, the modification time is part of the cache key. Metadata of instants, which may be large, is not cached.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from operator import and_
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import NotFoundError
from pyhudi.storage import Storage
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archive_log_reader import read_archive_logs
from pyhudi.timeline.archive.archived_instants import ARCHIVED_INSTANTS_SCHEMA, sort_rows
from pyhudi.timeline.archive.lsm_timeline_reader import read_lsm_timeline
from pyhudi.timeline.instant import ACTIONS, WRITE_ACTIONS
from pyhudi.timeline.timeline_layout import Layout

_RACE_RETRIES = 5
_T = TypeVar("_T")


def read_archived_timeline(
    storage: Storage,
    layout: Layout,
    *,
    after: str | None = None,
    up_to: str | None = None,
    completed_after: str | None = None,
    actions: Collection[str] = ACTIONS,
    metadata: bool = True,
) -> pa.Table:
    """Return the archived instants with ``after < requested <= up_to``, sorted by requested time.

    ``completed_after`` restricts them by completion time, or by requested time where there is none; ``actions`` by
    their completed action.

    Raises:
        CorruptInstantError: A manifest or archive file cannot be parsed.
    """
    is_lsm = layout.version >= 2
    requested, completion = map(pc.field, ("instantTime", "completionTime") if is_lsm else ("requested", "completion"))
    conditions = []
    if after is not None:
        conditions.append(requested > after)
    if up_to is not None:
        conditions.append(requested <= up_to)
    if completed_after is not None:
        conditions.append((completion > completed_after) | (completion.is_null() & (requested > completed_after)))
    if actions is not ACTIONS:
        conditions.append(pc.field("action").isin(sorted(actions)))
    condition = reduce(and_, conditions) if conditions else None
    if is_lsm:
        names = [n for n in ARCHIVED_INSTANTS_SCHEMA.names if metadata or n not in ("metadata", "plan")]
        table = _retry(lambda: read_lsm_timeline(storage, layout, names, condition))
    else:
        table = _retry(lambda: read_archive_logs(storage, layout, metadata=metadata))
        table = table if condition is None else table.filter(condition)
    return _unique(table)


def archived_writes(
    storage: Storage,
    layout: Layout,
    *,
    after: str | None = None,
    up_to: str | None = None,
    completed_after: str | None = None,
) -> pa.Table:
    """Return the commits, deltacommits and replacecommits that `read_archived_timeline` finds, without metadata.

    Raises:
        CorruptInstantError: A manifest or archive file cannot be parsed.
    """
    return read_archived_timeline(
        storage,
        layout,
        after=after,
        up_to=up_to,
        completed_after=completed_after,
        actions=WRITE_ACTIONS,
        metadata=False,
    )


def has_archived_after(active: ActiveTimeline, saved: str, up_to: str | None = None) -> bool:
    """Return True if there are archived writes after one with a savepoint, which archival leaves in the active
    timeline.

    Args:
        active: The active timeline.
        saved: Instant of the write with a savepoint.
        up_to: Instant of the last write to consider; None: all.

    Raises:
        CorruptInstantError: A manifest or archive file cannot be parsed.
    """
    start = active.timeline.start
    if start is None or saved >= start:
        return False
    # the writes between it and the start may have savepoints, too, instead of being archived
    return bool(archived_writes(active.storage, active.layout, after=saved, up_to=up_to).num_rows)


def archived_completions(
    storage: Storage, layout: Layout, requested_times: Collection[str], actions: Collection[str] = ACTIONS
) -> dict[str, str]:
    """Return completion times of archived instants by requested time; other instants are omitted. Empty in layout 1.

    ``actions`` are the completed actions of these instants, by default all.
    """
    if layout.version < 2 or not requested_times:
        return {}
    condition = pc.field("instantTime").isin(sorted(requested_times))
    table = _retry(lambda: read_lsm_timeline(storage, layout, ["requested", "completion", "action"], condition))
    table = table.filter(pc.is_in(table["action"], value_set=pa.array(sorted(actions))))
    pairs = zip(table["requested"].to_pylist(), table["completion"].to_pylist(), strict=True)
    return {requested: completion for requested, completion in pairs if completion is not None}


def completions_after(active: ActiveTimeline, time: str) -> dict[str, str]:
    """Return the completion times of the writes, active or archived, that were completed after a time, by requested
    time. Empty in layout 1."""
    if active.layout.version < 2:
        return {}
    archived = archived_writes(active.storage, active.layout, completed_after=time)
    pairs = zip(archived["requested"].to_pylist(), archived["completion"].to_pylist(), strict=True)
    found = {requested: completion for requested, completion in pairs if completion is not None}
    done = active.timeline.writes().completed()
    return found | {i.requested: i.order_time for i in done if i.order_time > time}


def _retry(read: Callable[[], _T]) -> _T:
    """Repeat a read if a file disappeared, because another writer compacted or cleaned the archive."""
    for left in range(_RACE_RETRIES, -1, -1):
        try:
            return read()
        except NotFoundError:
            if not left:
                raise
    raise AssertionError("unreachable")


def _unique(table: pa.Table) -> pa.Table:
    """Sort by requested time, with one row per instant that was archived twice (after a killed run)."""
    if _is_ascending(table["requested"]):
        return table
    table = sort_rows(table, "requested", "action")
    if table.num_rows < 2:
        return table
    requested, action = (table[name].combine_chunks() for name in ("requested", "action"))
    same = pc.and_(pc.equal(requested[1:], requested[:-1]), pc.equal(action[1:], action[:-1]))
    return table.filter(pa.concat_arrays([pa.array([True]), pc.invert(same)]))


def _is_ascending(texts: pa.ChunkedArray) -> bool:
    """Return True if the texts are strictly ascending. Chunks are not combined, because they may be large."""
    last: pa.Scalar | None = None
    for chunk in texts.chunks:
        if not len(chunk):
            continue
        if last is not None and not pc.less(last, chunk[0]).as_py():
            return False
        if not pc.all(pc.less(chunk[:-1], chunk[1:]), min_count=0).as_py():
            return False
        last = chunk[-1]
    return True
