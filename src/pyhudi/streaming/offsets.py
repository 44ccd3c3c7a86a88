"""Offsets of the streaming source: the commits of a micro-batch, and a check that none is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import options
from pyhudi.config.enums import QueryType
from pyhudi.errors import CheckpointError, QueryError
from pyhudi.read.query.query import FIRST_BY_COMPLETION, InstantRange, Query
from pyhudi.storage import join_path
from pyhudi.streaming.source_log import SourceLog
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.archive.archived_timeline import archived_writes, read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.operation_types import REWRITING_OPERATIONS
from pyhudi.timeline.timeline_layout import Layout

ReadLog = Callable[[int], SourceLog | None]
"""Returns what a stream has read before the batch of this number, if that is known."""
_NO_NUMBER = (
    "a stream can only be read in the thread of its query, because Spark does not expose the batch number elsewhere"
)


@dataclass(frozen=True, slots=True)
class StartOffset:
    """Start of a stream. ``after``: commits up to this time are excluded from all batches. ``first_batch_after``:
    commits up to this time are excluded from the first batch, which contains all commits from before the start of the
    stream. None: no limit.

    Times are those of incremental queries: completion times from table version 8 on, otherwise requested times.
    ``limited``: batches have a limit, so that the first one may end before ``after``.
    """

    after: str | None = None
    first_batch_after: str | None = None
    limited: bool = False

    def for_batch(self, number: int | None) -> str | None:
        """Return the time after which commits belong to a batch.

        Raises:
            QueryError: It depends on the batch number, which is not known.
        """
        if self.first_batch_after is not None and number is None:
            raise QueryError(_NO_NUMBER)
        return self.first_batch_after if self.after is None and number == 0 else self.after


def opposite_layout(layout: Layout) -> Layout:
    """Return the layout to which an upgrade or a downgrade converts the timeline."""
    return Layout.v2() if layout.version == 1 else Layout.v1()


def batch_names(paths: list[str], started: Layout, current: Layout) -> list[str]:
    """Return the timeline files of a micro-batch, by their names.

    Args:
        paths: All files of the batch. Those of the other layout are a copy that an upgrade or a downgrade makes of the
            timeline.
        started: The layout of the timeline when the stream started.
        current: Its current layout.

    Raises:
        CheckpointError: The table has been upgraded or downgraded since.
    """
    if (started.version, started.folder) != (current.version, current.folder):
        raise CheckpointError(
            "the table has been upgraded or downgraded since the stream started, which has written the files of its "
            f"timeline again, in {current.folder!r} instead of {started.folder!r}. {_CURE}"
        )
    other = opposite_layout(started).folder
    split = (path.rpartition("/") for path in paths)
    return [name for folder, _, name in split if other == started.folder or not folder.endswith("/" + other)]


def commits_per_batch(table: TableSnapshot, limit: int) -> int:
    """Return the number of commits in a micro-batch of a stream with a limit: the limit, or the number of all commits.

    Spark takes the files of a batch in the order of their modification times, which a copy of a table does not keep. A
    batch would then have commits that others precede, so the first one gets all of them.
    """
    active = table.active
    files = table.storage.list(active.layout.folder)
    modified = dict(zip(files["path"].to_pylist(), files["mtime_ms"].to_pylist(), strict=True))
    by_completion = table.config.version >= FIRST_BY_COMPLETION
    commits = [
        (modified.get(join_path(active.layout.folder, i.file_name), 0), _time(i, by_completion=by_completion))
        for i in active.timeline.writes().completed()
    ]
    return limit if _follow(sorted(commits), limit) else max(limit, len(commits))


def _follow(commits: list[tuple[int, str]], limit: int) -> bool:
    """Return True if each batch of commits (modification time, time) follows on those before it."""
    for end in range(limit, len(commits), limit):
        before, after = commits[:end], commits[end:]
        if before[-1][0] == after[0][0] or max(time for _, time in before) > min(time for _, time in after):
            return False
    return True


def batch_query(
    table: TableSnapshot,
    names: list[str],
    start: StartOffset,
    number: int | None,
    *,
    query: Query,
    log: ReadLog = lambda _: None,
) -> Query | None:
    """Return the incremental query for the commits of a micro-batch; None if the stream starts after them.

    The first batch includes commits that were archived after the start of the stream.

    Args:
        table: The current table.
        names: The timeline files of the batch.
        start: Start of the stream.
        number: Batch number; None if it is not known.
        query: Other options of the user.
        log: Returns the instants that the stream has read. Called where commits have been archived, or the batch has
            the oldest commit of the table although it is not the first one.

    Raises:
        CheckpointError: Commits before the batch have been archived, which the stream may have missed, the commits
            belong to earlier batches, or the stream has not read this table before.
        QueryError: The batch number is required and not known.
    """
    by_completion = table.config.version >= FIRST_BY_COMPLETION
    done = _read_now(table, names)
    if number and _has_oldest(table, done) and (read := log(number)) is not None and not read.has_begun:
        number = 0  # the first batch with commits of this table, after some with those of other sources
    begin = start.for_batch(number)
    times = {i.requested: _time(i, by_completion=by_completion) for i in done}
    if number == 0 and start.first_batch_after is not None and start.first_batch_after > max(times.values()):
        raise CheckpointError(
            f"the first batch of a stream from 'latest' is repeated after {start.first_batch_after} was committed: "
            f"with which commit the stream began is no longer known. {_CURE}"
        )
    if number and begin is not None:
        _check_same_table(table, set(times), start, number, log)
    read_times = {requested: time for requested, time in times.items() if begin is None or time > begin}
    if not read_times:
        return None
    if number != 0:
        first = min(read_times.values())
        _check_nothing_missed(table, first, begin, number, log, by_completion=by_completion)
        begin = _before(first)
    instants = InstantRange(begin, max(read_times.values()), by_completion=by_completion, only=frozenset(read_times))
    return replace(query, type=QueryType.INCREMENTAL, instants=instants)


def _read_now(table: TableSnapshot, names: list[str]) -> list[Instant]:
    parsed = [instant for instant in map(table.active.layout.parse, names) if instant is not None]
    completed = {i.requested for i in table.active.timeline.writes().completed()}
    missing = sorted(i.requested for i in parsed if i.requested not in completed)
    if missing:
        raise CheckpointError(
            f"the commits {', '.join(missing)} are no longer in the active timeline: they were archived, or rolled "
            f"back, before the stream read them. {_CURE}"
        )
    return parsed


def _has_oldest(table: TableSnapshot, batch: list[Instant]) -> bool:
    """Return True if a batch has the oldest commit of the active timeline."""
    oldest = table.active.timeline.writes().completed().first
    return oldest is not None and any(i.requested == oldest.requested for i in batch)


def _check_same_table(table: TableSnapshot, batch: set[str], start: StartOffset, number: int, log: ReadLog) -> None:
    """Reject a batch with the oldest commit, if this is not later than the start and no batch before has had commits of
    the table. It is the first batch of another table, or of a moved one: Spark's log has the paths of files.

    Otherwise, all commits of earlier batches have been archived.
    """
    begin = start.for_batch(number)
    by_completion = table.config.version >= FIRST_BY_COMPLETION
    oldest = min(table.active.timeline.writes().completed(), key=lambda i: _time(i, by_completion=by_completion))
    if oldest.requested not in batch or (begin is not None and _time(oldest, by_completion=by_completion) > begin):
        return
    read = log(number)
    is_same = start.limited if read is None else not read.read.isdisjoint(_file_names(table))
    if not is_same:
        raise CheckpointError(
            f"batch {number} has the oldest commit of the table, which is from before the start at {begin} and belongs "
            "to the first batch: the table has been moved since the stream began, is a new one, or the checkpoint "
            f"location belongs to another table. {_CURE}"
        )


def _file_names(table: TableSnapshot) -> set[str]:
    """Return the names of the files of completed writes, archived ones included."""
    active = table.active
    archived = archived_writes(table.storage, active.layout)
    columns = (archived[name].to_pylist() for name in ("requested", "completion", "action"))
    names = {
        active.layout.file_name(requested, action, State.COMPLETED, completion)
        for requested, completion, action in zip(*columns, strict=True)
    }
    return names.union(i.file_name for i in active.timeline.writes().completed())


def _check_nothing_missed(
    table: TableSnapshot,
    first: str,
    begin: str | None,
    number: int | None,
    log: ReadLog,
    *,
    by_completion: bool,
) -> None:
    """Reject a batch if commits have been archived that an earlier batch may not have contained.

    The log of the stream decides, if it is known. Otherwise, earlier batches reach to the last active commit before
    this one. Archived commits are older, except those between commits with savepoints, and those that ran long and
    completed late.
    """
    active = table.active
    start = active.timeline.start
    times = (_time(i, by_completion=by_completion) for i in active.timeline.writes().completed())
    last = max((time for time in times if time < first), default=None)
    reached = max((time for time in (last, begin) if time is not None), default=None)
    if by_completion:
        unread = archived_writes(table.storage, active.layout, completed_after=reached)
        if unread.num_rows and last is not None:
            unread = _without_rewriting(table, unread, reached)
        read = log(number) if unread.num_rows and number else None
        if read is not None:
            unread = _unread(table.active.layout, unread, read)
            if not unread.num_rows:
                return
        archived = pc.coalesce(unread["completion"], unread["requested"]).to_pylist()
    elif last is None or start is None or last < start:
        archived = archived_writes(table.storage, active.layout, after=reached, up_to=first)["requested"].to_pylist()
    else:
        archived = []
    if number is None:
        if archived:
            raise QueryError(_NO_NUMBER)
        return
    if archived:
        since = "the oldest commit of the active timeline" if last is None else f"the next active commit after {last}"
        raise CheckpointError(
            f"batch {number} begins with {first}, {since}, while commits up to {max(archived)} have been archived: "
            f"the stream may have missed some of them, or its checkpoint location belongs to another table. {_CURE}"
        )
    if last is None:
        raise CheckpointError(
            f"batch {number} begins with {first}, the first commit of the table, which belongs to the first batch: "
            "the table is a new one, or an upgrade or downgrade of its version has written the files of its timeline "
            f"again, so that Spark considers all of them new. {_CURE}"
        )


def _unread(layout: Layout, archived: pa.Table, log: SourceLog) -> pa.Table:
    """Return the archived writes that no batch before this one has contained. The first batch includes everything up to
    its last commit."""
    files = (instant for name in log.first if (instant := layout.parse(name)) is not None)
    started = max((instant.order_time for instant in files), default="")
    columns = (archived[name].to_pylist() for name in ("requested", "completion", "action"))
    unread = [
        (completion or requested) > started
        and layout.file_name(requested, action, State.COMPLETED, completion) not in log.read
        for requested, completion, action in zip(*columns, strict=True)
    ]
    return archived.filter(pa.array(unread, pa.bool_()))


def _without_rewriting(table: TableSnapshot, writes: pa.Table, completed_after: str | None) -> pa.Table:
    """Return archived writes without compactions and clusterings, which often run long and change no rows."""
    contents = read_archived_timeline(table.storage, table.active.layout, completed_after=completed_after)
    pairs = zip(contents["requested"].to_pylist(), contents["metadata"].to_pylist(), strict=True)
    required = set(writes["requested"].to_pylist())
    rewriting = [
        requested
        for requested, data in pairs
        if requested in required and data is not None and decode_commit(data).operation in REWRITING_OPERATIONS
    ]
    return writes.filter(pc.invert(pc.is_in(writes["requested"], value_set=pa.array(rewriting, pa.string()))))


_CURE = (
    "Restart with a new checkpoint location (hoodie.datasource.streaming.startOffset sets the start), and "
    f"archive less (hoodie.keep.min.commits) or read more often; {options.INCREMENTAL_FALLBACK_FULL_SCAN.key} "
    "does not apply to streams"
)


def _time(instant: Instant, *, by_completion: bool) -> str:
    return instant.order_time if by_completion else instant.requested


def _before(time: str) -> str:
    """Return the last time before an instant."""
    return str(int(time) - 1).zfill(len(time))
