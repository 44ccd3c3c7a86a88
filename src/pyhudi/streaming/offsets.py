"""Offsets of the streaming source: the commits of a micro-batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pyhudi.config.enums import QueryType
from pyhudi.errors import CheckpointError, QueryError
from pyhudi.read.query.query import InstantRange, Query
from pyhudi.storage import join_path
from pyhudi.streaming.batch_history import CURE, NO_NUMBER, BatchHistory, ReadLog, is_by_completion, time_of
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.archive.archived_timeline import archived_writes
from pyhudi.timeline.instant import Instant, just_before
from pyhudi.timeline.timeline_layout import Layout


@dataclass(frozen=True, slots=True)
class StartOffset:
    """Start of a stream. ``after``: commits up to this time are excluded from all batches. ``first_batch_after``:
    commits up to this time are excluded from the first batch, which contains all commits from before the start of the
    stream. None: no limit.

    Times are those of incremental queries: completion times from table version 8 on, otherwise requested times.
    ``limited``: batches have a limit, so that the first one may end before ``after``. ``is_past``: ``after`` was in the
    past when the stream was started or restarted, so that all commits up to it were in its first batch, if it has no
    limit.
    """

    after: str | None = None
    first_batch_after: str | None = None
    limited: bool = False
    is_past: bool = False

    def for_batch(self, number: int | None) -> str | None:
        """Return the time after which commits belong to a batch.

        Raises:
            QueryError: It depends on the batch number, which is not known.
        """
        if self.first_batch_after is not None and number is None:
            raise QueryError(NO_NUMBER)
        return self.first_batch_after if self.after is None and number == 0 else self.after

    def is_superseded(self, number: int | None, *, by_completion: bool) -> bool:
        """Return True if the checkpoint location alone decides which commits a batch has: a query that is restarted
        with another start goes on where it was, as in Apache Hudi.

        ``after`` still counts if it is in the future, for a limit, with which batches after the first one may have
        commits up to it, and by requested times, as commits up to it may complete late.
        """
        return bool(number) and self.is_past and by_completion and not self.limited


def opposite_layout(layout: Layout) -> Layout:
    """Return the layout to which an upgrade or a downgrade converts the timeline."""
    return Layout.v2() if layout.version == 1 else Layout.v1()


def timeline_files_of_batch(paths: list[str], started: Layout, current: Layout) -> list[str]:
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
            f"timeline again, in {current.folder!r} instead of {started.folder!r}. {CURE}"
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
    by_completion = is_by_completion(table)
    commits = [
        (modified.get(join_path(active.layout.folder, i.file_name), 0), time_of(i, by_completion=by_completion))
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
    by_completion = is_by_completion(table)
    done = _read_now(table, names)
    if number and _has_oldest(table, done) and (read := log(number)) is not None and not read.has_begun:
        number = 0  # the first batch with commits of this table, after some with those of other sources
    begin = start.for_batch(number)
    times = {i.requested: time_of(i, by_completion=by_completion) for i in done}
    if number == 0 and start.first_batch_after is not None and start.first_batch_after > max(times.values()):
        raise CheckpointError(
            f"the first batch of a stream from 'latest' is repeated after {start.first_batch_after} was committed: "
            f"with which commit the stream began is no longer known. {CURE}"
        )
    if number and begin is not None:
        BatchHistory(table, number, begin, log).check_same_table(times, is_limited=start.limited)
    excluded = None if start.is_superseded(number, by_completion=by_completion) else begin
    read_times = {requested: time for requested, time in times.items() if excluded is None or time > excluded}
    if not read_times:
        return None
    if number != 0:
        first = min(read_times.values())
        BatchHistory(table, number, excluded, log).check_nothing_missed(first)
        begin = just_before(first)
    instants = InstantRange(begin, max(read_times.values()), by_completion=by_completion, only=frozenset(read_times))
    return replace(query, type=QueryType.INCREMENTAL, instants=instants)


def check_not_archived(table: TableSnapshot, names: Collection[str], start: StartOffset, number: int) -> None:
    """Reject a batch whose timeline files no longer exist, if commits of it have been archived. Spark leaves out files
    that do not exist when it repeats a batch. Commits that were rolled back or restored have no rows to read.

    Args:
        table: The current table.
        names: The timeline files of the batch.
        start: Start of the stream.
        number: Batch number.

    Raises:
        CheckpointError: Commits of the batch have been archived.
    """
    layout, by_completion = table.active.layout, is_by_completion(table)
    parsed = (instant for instant in map(layout.parse, names) if instant is not None)
    excluded = None if start.is_superseded(number, by_completion=by_completion) else start.after
    wanted = {i.requested for i in parsed if excluded is None or time_of(i, by_completion=by_completion) > excluded}
    archived = archived_writes(table.storage, layout)["requested"].to_pylist() if wanted else ()
    missing = sorted(wanted.intersection(archived))
    if missing:
        raise _gone(missing)


def _gone(requested: Sequence[str]) -> CheckpointError:
    return CheckpointError(
        f"the commits {', '.join(requested)} are no longer in the active timeline: they were archived, or rolled "
        f"back, before the stream read them. {CURE}"
    )


def _read_now(table: TableSnapshot, names: list[str]) -> list[Instant]:
    parsed = [instant for instant in map(table.active.layout.parse, names) if instant is not None]
    completed = set(table.active.timeline.writes().completed().requested_times)
    missing = sorted(i.requested for i in parsed if i.requested not in completed)
    if missing:
        raise _gone(missing)
    return parsed


def _has_oldest(table: TableSnapshot, batch: list[Instant]) -> bool:
    """Return True if a batch has the oldest commit of the active timeline."""
    oldest = table.active.timeline.writes().completed().first
    return oldest is not None and any(i.requested == oldest.requested for i in batch)
