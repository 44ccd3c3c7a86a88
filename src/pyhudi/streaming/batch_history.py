"""Commits that a stream has read before a micro-batch, and checks that it has missed none.

Spark only passes the timeline files of a batch. Commits that were archived before the stream has read them are in no
batch, and would be missing in its results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import options
from pyhudi.errors import CheckpointError, QueryError
from pyhudi.read.query.query import FIRST_BY_COMPLETION
from pyhudi.streaming.source_log import SourceLog
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.archive.archived_timeline import archived_writes, read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.operation_types import REWRITING_OPERATIONS
from pyhudi.timeline.timeline_layout import Layout

ReadLog = Callable[[int], SourceLog | None]
"""Returns what a stream has read before the batch of this number, if that is known."""
NO_NUMBER = (
    "a stream can only be read in the thread of its query, because Spark does not expose the batch number elsewhere"
)
CURE = (
    "Restart with a new checkpoint location (hoodie.datasource.streaming.startOffset sets the start), and "
    f"archive less (hoodie.keep.min.commits) or read more often; {options.INCREMENTAL_FALLBACK_FULL_SCAN.key} "
    "does not apply to streams"
)


@dataclass(frozen=True, slots=True)
class BatchHistory:
    """Commits of a table that a stream has read before a micro-batch.

    Attributes:
        table: The current table.
        number: Number of the batch; None: not known.
        after: Time after which commits belong to the batch; None: all do.
        log: Returns the instants that the stream has read.
    """

    table: TableSnapshot
    number: int | None
    after: str | None
    log: ReadLog

    @property
    def _by_completion(self) -> bool:
        return is_by_completion(self.table)

    def _commits(self) -> Iterator[tuple[str, Instant]]:
        """Yield the commits of the active timeline with their times."""
        for instant in self.table.active.timeline.writes().completed():
            yield time_of(instant, by_completion=self._by_completion), instant

    def check_same_table(self, batch: Collection[str], *, is_limited: bool) -> None:
        """Reject a batch with the oldest commit, if this is not later than the start and no batch before has had
        commits of the table. It is the first batch of another table, or of a moved one: Spark's log has the paths of
        files.

        Otherwise, all commits of earlier batches have been archived.

        Args:
            batch: Requested times of the commits of the batch, which is not the first one.
            is_limited: Batches have a limit, so that the first one may not have all commits from before the start.
        """
        time, oldest = min(self._commits(), key=lambda commit: commit[0])
        if oldest.requested not in batch or (self.after is not None and time > self.after):
            return
        assert self.number is not None
        read = self.log(self.number)
        is_same = is_limited if read is None else not read.read.isdisjoint(_file_names(self.table))
        if not is_same:
            raise CheckpointError(
                f"batch {self.number} has the oldest commit of the table, which is from before the start at "
                f"{self.after} and belongs to the first batch: the table has been moved since the stream began, is a "
                f"new one, or the checkpoint location belongs to another table. {CURE}"
            )

    def check_nothing_missed(self, first: str) -> None:
        """Reject a batch if commits have been archived that an earlier batch may not have contained.

        Args:
            first: Time of the first commit of the batch.

        Raises:
            CheckpointError: Commits may have been missed, or the batch should be the first one.
            QueryError: The batch number is required and not known.
        """
        last = max((time for time, _ in self._commits() if time < first), default=None)
        archived = self._archived_before(first, last)
        if archived is None:
            return
        if self.number is None:
            if archived:
                raise QueryError(NO_NUMBER)
        elif archived:
            since = (
                "the oldest commit of the active timeline" if last is None else f"the next active commit after {last}"
            )
            raise CheckpointError(
                f"batch {self.number} begins with {first}, {since}, while commits up to {max(archived)} have been "
                "archived: the stream may have missed some of them, or its checkpoint location belongs to another "
                f"table. {CURE}"
            )
        elif last is None:
            raise CheckpointError(
                f"batch {self.number} begins with {first}, the first commit of the table, which belongs to the first "
                "batch: the table is a new one, or an upgrade or downgrade of its version has written the files of its "
                f"timeline again, so that Spark considers all of them new. {CURE}"
            )

    def _archived_before(self, first: str, last: str | None) -> list[str] | None:
        """Return the times of archived commits that an earlier batch may not have contained; None: the log of the
        stream has all of them.

        The log decides, if it is known. Otherwise, earlier batches reach to the last active commit before this one.
        Archived commits are older, except those between commits with savepoints, and those that ran long and completed
        late.

        Args:
            first: Time of the first commit of the batch.
            last: Time of the last active commit before it, if there is one.
        """
        active = self.table.active
        start = active.timeline.start
        reached = max((time for time in (last, self.after) if time is not None), default=None)
        if not self._by_completion:
            if last is not None and start is not None and last >= start:
                return []
            requested = archived_writes(active.storage, active.layout, after=reached, up_to=first)["requested"]
            return [str(time) for time in requested.to_pylist()]
        unread = archived_writes(active.storage, active.layout, completed_after=reached)
        if unread.num_rows and last is not None:
            unread = _without_rewriting(self.table, unread, reached)
        read = self.log(self.number) if unread.num_rows and self.number else None
        if read is not None:
            unread = _unread(active.layout, unread, read)
            if not unread.num_rows:
                return None
        return [str(time) for time in pc.coalesce(unread["completion"], unread["requested"]).to_pylist()]


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


def is_by_completion(table: TableSnapshot) -> bool:
    """Return True if the commits of a stream are ordered by completion times, otherwise by requested times."""
    return table.config.version >= FIRST_BY_COMPLETION


def time_of(instant: Instant, *, by_completion: bool) -> str:
    """Return the time by which a commit is ordered in a stream."""
    return instant.order_time if by_completion else instant.requested
