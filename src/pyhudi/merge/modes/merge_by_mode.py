"""Folding of versions of many records into one version each, by the built-in merge modes.

The rule between an older and a newer version is that of Apache Hudi (``docs/format/core.md``, section 7):

- A delete without an ordering value wins against all earlier versions, and every later version except another delete
  wins against it.
- Otherwise the newer version wins unless its ordering value is less (by commit time it always wins).
- With a partial update mode, or in blocks of partial updates, columns that the winner omits are taken from the other
  version, unless one of the two is a delete.

Between rows of one batch, `PartialUpdateAvroPayload` below version 9 has a rule of its own (`_BatchGroups`).

It is applied from the oldest version to the newest. The order matters: a version can lose against a delete that itself
loses later. All computations are on whole columns, regardless of the number of versions per record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import overload

import numpy as np

from pyhudi.merge.ordering_values import Index, Mask

Given = Callable[[Index], Mask | None]
"""Maps row indices to a mask of those that have a column (None: all)."""


@overload
def in_both(one: Mask, other: Mask | None) -> Mask: ...
@overload
def in_both(one: Mask | None, other: Mask | None) -> Mask | None: ...
def in_both(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return the mask of the rows that are in both masks; None stands for all rows."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def given_rows(assigned: Mask | None, by_value: Given | None) -> Given | None:
    """Return which rows have a column.

    Args:
        assigned: Rows of writes that assign the column; None: all.
        by_value: Rows whose values do not stand for "unchanged"; None: all.
    """
    if assigned is None:
        return by_value
    if by_value is None:
        return lambda rows: assigned[rows]
    return lambda rows: in_both(assigned[rows], by_value(rows))


@dataclass(frozen=True, slots=True)
class Folded:
    """One row per record: ``winner`` is the winning version. ``sources`` has, for columns that were filled from other
    versions, the row of each record's value."""

    winner: Index
    sources: Mapping[str, Index]


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of records in the order in which they were written, oldest first.

    ``record``: record number of each version, integers from 0 without gaps. ``natural``: deletes without an ordering
    value, a subset of ``is_delete``. ``rank`` returns integers for rows (by index) with the order of their ordering
    values; None: by commit time. ``given`` are the columns that a version may omit. ``replaces_deletes``: as in
    `MergeRules`. ``newest``: columns that a record takes from its newest version, also if another one wins.
    """

    record: Index
    is_delete: Mask
    natural: Mask
    rank: Callable[[Index], Index] | None = None
    given: Mapping[str, Given] | None = None
    replaces_deletes: bool = False
    newest: Collection[str] = ()


def fold(versions: Versions) -> Folded:
    """Fold versions into one per record."""
    record = versions.record
    count = len(record)
    records = int(record.max()) + 1 if count else 0
    if records == count and (count < 2 or bool((record == np.arange(count)).all())):
        return Folded(np.arange(count, dtype=np.int64), {})
    order = np.argsort(record, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], np.diff(record[order]) != 0)))
    winner = order[np.append(starts[1:], count) - 1]
    if versions.rank is None and not versions.given and not versions.natural.any():
        return Folded(winner, {})  # The last version.
    sizes = np.diff(np.append(starts, count))
    several = sizes > 1
    sources = {name: winner.copy() for name in (*(versions.given or ()), *versions.newest)}
    if several.any():
        rows = order[np.repeat(several, sizes)]
        ends = np.cumsum(sizes[several])
        kind = _BatchGroups if versions.replaces_deletes else _Groups
        groups = kind(rows, ends - sizes[several], versions)
        winner[several] = rows[groups.winner]
        for name, mask_of_rows in (versions.given or {}).items():
            sources[name][several] = rows[groups.source(mask_of_rows(rows))]
        for name in versions.newest:
            sources[name][several] = rows[groups.newest]
    return Folded(winner, sources)


class _Groups:
    """Records with several versions: ``rows`` sorted by record and age, with each record starting at one of ``starts``.

    Positions in this class are indices into ``rows``.
    """

    def __init__(self, rows: Index, starts: Index, versions: Versions) -> None:
        count = len(rows)
        self._starts, self._place = starts, np.arange(count, dtype=np.int64)
        self._of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, count)))
        self._delete = versions.is_delete[rows]
        rank = np.zeros(count, dtype=np.int64) if versions.rank is None else versions.rank(rows)
        self._decide(rank, versions.natural[rows])

    def _decide(self, rank: Index, natural: Mask) -> None:
        """Determine the winner of each record, the versions that won against all earlier ones, and those that columns
        may be taken from."""
        count, live = len(self._place), self._live(natural)
        level = self._levels(live, rank)
        self._won = live & (level == np.maximum.accumulate(level))
        self.winner = self._last(self._won)
        # Versions that lost against a delete are not restored, so columns are searched after the last delete that won.
        deleted = self._last(self._won & self._delete)
        since = self._next(self._won & (self._place > deleted[self._of]), default=count)
        self._fillable = live & ~self._delete & (self._place >= since[self._of])

    @property
    def newest(self) -> Index:
        """Return the newest version of each record since the last delete that won; that delete if none came later."""
        return np.where(self._delete[self.winner], self.winner, self._last(self._fillable))

    def source(self, is_assigned: Mask | None) -> Index:
        """Return the version that provides each record's value of a column."""
        if is_assigned is None:
            return self.winner
        usable = self._fillable & is_assigned
        chosen = self._last(usable & self._won)
        # No winner had it: the first of the other versions filled the gap.
        other = self._next(usable & ~self._won, default=len(self._place))
        chosen = np.where(chosen >= 0, chosen, np.where(other < len(self._place), other, self.winner))
        return np.where(self._delete[self.winner], self.winner, chosen)

    def _levels(self, which: Mask, rank: Index) -> Index:
        """Return numbers in the order of the ranks of some versions. Those of later records are higher, so that one
        running maximum does for all."""
        return np.where(which, rank + 1, 0) + self._of * (int(rank.max(initial=0)) + 2)

    def _live(self, natural: Mask) -> Mask:
        """Return the versions that no delete without ordering value has removed, and that do not repeat such a
        delete."""
        if not natural.any():
            return np.ones(len(self._place), dtype=np.bool_)
        at = self._last(natural)
        after = self._next(~self._delete & (self._place > at[self._of]), default=len(self._place))
        is_deleted = (after == len(self._place)) & (at >= 0)
        live: Mask = self._place >= np.where(at >= 0, np.where(is_deleted, at, after), self._starts)[self._of]
        live &= ~(is_deleted[self._of] & (self._place > at[self._of]))
        return live

    def _last(self, which: Mask) -> Index:
        """Return the last such position of each record, -1 if there is none."""
        last: Index = np.maximum.reduceat(np.where(which, self._place, -1), self._starts)
        return last

    def _next(self, which: Mask, default: int) -> Index:
        """Return the first such position of each record."""
        first: Index = np.minimum.reduceat(np.where(which, self._place, default), self._starts)
        return first


class _BatchGroups(_Groups):
    """Records with several versions in one batch, by the rule of ``PartialUpdateAvroPayload`` below version 9.

    Of two versions the one with the greater ordering value has priority, the newer one if they are equal. If that is a
    delete, the newer of the two is the result as it is, be it the delete or not. Otherwise columns that it omits are
    taken from the other one, also if that is a delete.
    """

    def _decide(self, rank: Index, natural: Mask) -> None:  # noqa: ARG002
        since = self._after_last_delete(rank)
        ends = np.append(self._starts[1:], len(self._place))
        is_deleted = since == ends
        rows = ~self._delete & (self._place >= since[self._of])
        level = self._levels(rows, rank)
        self._won = rows & (level == np.maximum.accumulate(level))
        self.winner = np.where(is_deleted, ends - 1, self._last(self._won))
        self._fillable = self._place >= since[self._of]
        # The last delete gives its columns to the next version, unless that had no priority.
        replaced = np.flatnonzero(~is_deleted & (since > self._starts))
        deletes = since[replaced] - 1
        self._fillable[deletes[rank[deletes + 1] >= rank[deletes]]] = True

    def _after_last_delete(self, rank: Index) -> Index:
        """Return the position of each record after the last delete that was the result."""
        since, ends = self._starts.copy(), np.append(self._starts[1:], len(self._place))
        active = np.ones(len(since), dtype=np.bool_)
        while active.any():
            inside = active[self._of] & (self._place >= since[self._of])
            rows = inside & ~self._delete
            reached = np.maximum.accumulate(self._levels(rows, rank))
            # A delete has no level of its own here; without a row before, the level is that of the record.
            counts = inside & self._delete & (self._levels(inside, rank) >= reached)
            first = self._next(counts, default=len(self._place))
            active &= first < ends
            since = np.where(active, first + 1, since)
            active &= since < ends
        return since


def dense(codes: Index) -> tuple[Index, int]:
    """Map integers to numbers from 0 without gaps, in order of first appearance. Also return their count."""
    values, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    place = np.empty(len(values), dtype=np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(values))
    return place[inverse], len(values)
