"""Completed writes that an incremental query may select, of the active and of the archived timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import pyarrow.compute as pc

from pyhudi.config.enums import HollowPolicy
from pyhudi.config.options import HOLLOW_COMMIT_POLICY
from pyhudi.errors import QueryError
from pyhudi.read.query.query import InstantRange, Query
from pyhudi.read.selection.retention_limits import first_pending_write
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import archived_writes, read_archived_timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, decode_commit
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant
from pyhudi.timeline.operation_types import COMPACT


@dataclass(frozen=True, slots=True)
class CompletedWrite:
    """A completed write: its requested time, the time used for the range, and a function that returns its metadata."""

    requested: str
    time: str
    read: Callable[[], CommitMetadata]


def data_writes(table: TableSnapshot, query: Query) -> list[CompletedWrite]:
    """Return all completed writes of a range, including archived ones; of active ones only those that the query
    selects.

    Raises:
        QueryError: An earlier write is pending, and the range refers to requested times.
        TransactionError: Apache Hudi has changed the version of the table halfway.
    """
    refuse_moved_instants(table.active)
    instants = query.instants
    active_writes = active_writes_of(table.active, query)
    bounded = instants if instants.begin is not None else replace(instants, begin="0")
    archived = archived_writes_of(table, bounded, active_writes)
    selected = [w for w in active_writes if instants.selects(w.requested)]
    by_instant = {w.requested: w for w in (*(archived or ()), *selected) if instants.includes(w.time)}
    return list(by_instant.values())


def active_writes_of(active: ActiveTimeline, query: Query) -> list[CompletedWrite]:
    """Return the completed writes of the active timeline, in the range or not.

    Raises:
        QueryError: An earlier write is pending, and the range refers to requested times.
    """
    instants = query.instants
    done = [i for i in active.timeline.writes() if i.is_completed]
    if not instants.by_completion and instants.only is None:
        done = _without_hollow_commits(active, done, query.incremental.hollow_policy)
    return [CompletedWrite(i.requested, _time(i, instants), partial(active.commit_metadata, i)) for i in done]


def archived_writes_of(
    table: TableSnapshot, instants: InstantRange, active_writes: Sequence[CompletedWrite]
) -> list[CompletedWrite] | None:
    """Return archived writes if the range may include them; None if they need not be read.

    A range from the start to a time in the active timeline does not need them, because it includes everything up to
    there. Commits with savepoints stay in the active timeline while later ones are archived, and a write that ran long
    may be archived before others that completed earlier.
    """
    active = table.active
    since = instants.end if instants.begin is None else instants.begin
    if since is None:
        return None
    start = active.timeline.start
    earliest = min((w.time for w in active_writes if start is None or w.requested >= start), default=None)
    if earliest is not None and since >= earliest and not (instants.by_completion and _archived_since(active, since)):
        return None
    names = archived_writes(table.storage, active.layout)
    time = pc.coalesce(names["completion"], names["requested"]) if instants.by_completion else names["requested"]
    rows = list(zip(names["requested"].to_pylist(), time.to_pylist(), strict=True))
    needed = (r for r, at in rows if instants.includes(at) or instants.is_crossed_by(r, at))
    metadata = _Archive(table, min(needed, default=""))
    return [CompletedWrite(requested, at, partial(metadata.read, requested)) for requested, at in rows]


def completed_compactions(active: ActiveTimeline, commits: Iterable[Instant]) -> frozenset[str]:
    """Return the requested times of the compactions among completed commits. Their base files have all records up to
    these times."""
    candidates = [i for i in commits if i.action == Action.COMMIT]
    operations = concurrent_map(lambda i: active.commit_metadata(i).operation, candidates)
    pairs = zip(candidates, operations, strict=True)
    return frozenset(i.requested for i, operation in pairs if operation == COMPACT)


def _time(instant: Instant, instants: InstantRange) -> str:
    return instant.order_time if instants.by_completion else instant.requested


def _without_hollow_commits(active: ActiveTimeline, done: list[Instant], policy: HollowPolicy) -> list[Instant]:
    pending = first_pending_write(active)
    if pending is None or not any(i.requested > pending.requested for i in done):
        return done
    if policy is HollowPolicy.BLOCK:
        return [i for i in done if i.requested < pending.requested]
    raise QueryError(
        f"the {pending.action} {pending.requested} is pending while later writes have completed: an incremental "
        "reader that continues after the last of them would miss it. Let a writer complete it or roll it back, "
        f"or set {HOLLOW_COMMIT_POLICY.key!r} to 'BLOCK' to read only earlier writes"
    )


def _archived_since(active: ActiveTimeline, time: str) -> bool:
    return bool(archived_writes(active.storage, active.layout, completed_after=time).num_rows)


class _Archive:
    """Metadata of archived writes from ``oldest`` on, read at once on first use. Thread-safe."""

    def __init__(self, table: TableSnapshot, oldest: str) -> None:
        self._table = table
        self._oldest = oldest
        self._lock = Lock()
        self._found: dict[str, bytes] | None = None

    def read(self, requested: str) -> CommitMetadata:
        with self._lock:
            if self._found is None:
                active, after = self._table.active, self._oldest[:-1]
                table = read_archived_timeline(active.storage, active.layout, after=after, actions=WRITE_ACTIONS)
                self._found = dict(zip(table["requested"].to_pylist(), table["metadata"].to_pylist(), strict=True))
        data = self._found.get(requested)
        if data is None:
            raise QueryError(f"the archived timeline has no metadata for the write {requested}; begin after it")
        return decode_commit(data)
