"""Offsets of the streaming source: the commits of a micro-batch, and a check that none is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import options
from pyhudi.config.enums import QueryType
from pyhudi.errors import CheckpointError, QueryError
from pyhudi.read.query import FIRST_BY_COMPLETION, Query
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.timeline.archive.archived_timeline import read_history
from pyhudi.timeline.instant import WRITE_ACTIONS, Instant

_NO_NUMBER = (
    "a stream cannot be read outside of the thread of its query, where Spark does not tell the number of the batch"
)


@dataclass(frozen=True, slots=True)
class StartOffset:
    """Start of a stream. ``after``: commits up to this time are left out of every batch. ``first_batch_after``: up
    to this time, out of the first batch, which has all commits that were there before the stream. None: nothing is.

    Times are those of incremental queries: of completion from table version 8 on, else requested.
    """

    after: str | None = None
    first_batch_after: str | None = None

    def of_batch(self, number: int | None) -> str | None:
        """The time after which commits count in a batch.

        Raises:
            QueryError: it depends on the number of the batch, which is not known.
        """
        if self.first_batch_after is not None and number is None:
            raise QueryError(_NO_NUMBER)
        return self.first_batch_after if self.after is None and number == 0 else self.after


def batch_query(
    table: PinnedTable, names: list[str], start: StartOffset, number: int | None, query: Query
) -> Query | None:
    """The incremental query of the commits of a micro-batch; None: the stream begins after them.

    The first batch takes along what has been archived after the start of the stream.

    Args:
        table: The table now.
        names: The timeline files of the batch.
        start: Where the stream begins.
        number: That of the batch; None: not known.
        query: What else the user's options say.

    Raises:
        CheckpointError: commits before the batch have been archived, which the stream may have missed.
        QueryError: the number of the batch is needed and not known.
    """
    by_completion = table.config.version >= FIRST_BY_COMPLETION
    begin = start.of_batch(number)
    done = _read_now(table, names)
    times = {i.requested: _time(i, by_completion=by_completion) for i in done}
    wanted = {requested: time for requested, time in times.items() if begin is None or time > begin}
    if not wanted:
        return None
    oldest = min(_time(i, by_completion=by_completion) for i in table.active.timeline.writes().completed())
    first = min(wanted.values())
    if number != 0:
        if first == oldest:
            _check_nothing_before(table, first, begin, number, by_completion=by_completion)
        begin = _before(first)
    return replace(
        query,
        type=QueryType.INCREMENTAL,
        begin=begin,
        end=max(wanted.values()),
        by_completion=by_completion,
        only=frozenset(wanted),
    )


def _read_now(table: PinnedTable, names: list[str]) -> list[Instant]:
    parsed = [instant for instant in map(table.active.layout.parse, names) if instant is not None]
    there = {i.requested for i in table.active.timeline.writes().completed()}
    gone = sorted(i.requested for i in parsed if i.requested not in there)
    if gone:
        raise CheckpointError(
            f"the commits {', '.join(gone)} are not in the active timeline any more: they were archived, or taken "
            f"back, before the stream has read them. {_CURE}"
        )
    return parsed


def _check_nothing_before(
    table: PinnedTable, first: str, begin: str | None, number: int | None, *, by_completion: bool
) -> None:
    """Refuse a batch that begins with the oldest active commit if others came before it, after the stream's start."""
    names = read_history(table.storage, table.active.layout, metadata=False)
    names = names.filter(pc.is_in(names["action"], value_set=pa.array(sorted(WRITE_ACTIONS))))
    time = pc.coalesce(names["completion"], names["requested"]) if by_completion else names["requested"]
    archived = [t for t in time.to_pylist() if t < first and (begin is None or t > begin)]
    if not archived:
        return
    if number is None:
        raise QueryError(_NO_NUMBER)
    raise CheckpointError(
        f"batch {number} begins with {first}, the oldest commit of the active timeline, while commits up to "
        f"{max(archived)} have been archived: the stream may not have read them all, or its checkpoint location is "
        f"that of another table. {_CURE}"
    )


_CURE = (
    "Begin again with a new checkpoint location (hoodie.datasource.streaming.startOffset says where), and archive less "
    f"(hoodie.keep.min.commits) or read more often; {options.INCREMENTAL_FALLBACK_FULL_SCAN.key} does not help here"
)


def _time(instant: Instant, *, by_completion: bool) -> str:
    return instant.order_time if by_completion else instant.requested


def _before(time: str) -> str:
    """The last time before an instant."""
    return str(int(time) - 1).zfill(len(time))
