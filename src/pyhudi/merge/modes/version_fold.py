"""Versions of many records folded into one version each, by the built-in merge modes.

The rule between an older and a newer version is Apache Hudi's (``docs/format/core.md``, section 7):

- a delete without an ordering value beats what came before it, and everything but another delete beats it;
- else the newer version wins unless its ordering value is less (by commit time it always wins);
- with a partial update mode, or in blocks of partial updates, columns that the winner leaves out come from the other
  version, unless one of the two is a delete.

It is applied from the oldest version to the newest. That order matters: a version can be beaten by a delete that is
itself forgotten later. All is computed on whole columns, whatever number of versions a record has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pyhudi.merge.ordering_values import Index, Mask

Given = Callable[[Index], Mask | None]
"""Function from indices of rows to a mask of those that have a column (None: all)."""


@dataclass(frozen=True, slots=True)
class Folded:
    """One row for each record: ``winner`` is the version that stands for it. ``sources`` gives, for the columns that
    were filled from other versions, the row each record's value comes from."""

    winner: Index
    sources: Mapping[str, Index]


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions of records in the order in which they were written, the oldest first.

    ``record``: which record each is a version of, whole numbers from 0 without gaps. ``natural``: deletes without an
    ordering value, a subset of ``is_delete``. ``rank`` gives for rows (by index) whole numbers that order as their
    ordering values; None: by commit time. ``given`` names the columns that a version may leave out.
    """

    record: Index
    is_delete: Mask
    natural: Mask
    rank: Callable[[Index], Index] | None = None
    given: Mapping[str, Given] | None = None


def fold(versions: Versions) -> Folded:
    """Fold versions into one for each record."""
    record = versions.record
    n = len(record)
    records = int(record.max()) + 1 if n else 0
    if records == n and (n < 2 or bool((record == np.arange(n)).all())):
        return Folded(np.arange(n, dtype=np.int64), {})
    order = np.argsort(record, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], np.diff(record[order]) != 0)))
    winner = order[np.append(starts[1:], n) - 1]
    if versions.rank is None and not versions.given and not versions.natural.any():
        return Folded(winner, {})  # the last version
    sizes = np.diff(np.append(starts, n))
    several = sizes > 1
    sources = {name: winner.copy() for name in versions.given or ()}
    if several.any():
        rows = order[np.repeat(several, sizes)]
        ends = np.cumsum(sizes[several])
        groups = _Groups(rows, ends - sizes[several], versions)
        winner[several] = rows[groups.winner]
        for name, given in (versions.given or {}).items():
            sources[name][several] = rows[groups.source(given(rows))]
    return Folded(winner, sources)


class _Groups:
    """Records with several versions: ``rows`` sorted by record and age, each record from one of ``starts`` on.

    Positions in here are places in ``rows``.
    """

    def __init__(self, rows: Index, starts: Index, versions: Versions) -> None:
        n = len(rows)
        self._starts, self._place = starts, np.arange(n, dtype=np.int64)
        self._of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, n)))
        self._delete = versions.is_delete[rows]
        rank = np.zeros(n, dtype=np.int64) if versions.rank is None else versions.rank(rows)
        live = self._live(versions.natural[rows])
        # one running maximum over all groups, since those that follow start from higher numbers
        level = np.where(live, rank + 1, 0) + self._of * (int(rank.max(initial=0)) + 2)
        # the versions that won against all before them
        self._won = live & (level == np.maximum.accumulate(level))
        self.winner = self._last(self._won)
        # what a delete has beaten does not come back, so columns are looked for after the last delete that won
        deleted = self._last(self._won & self._delete)
        since = self._next(self._won & (self._place > deleted[self._of]), default=n)
        self._fillable = live & ~self._delete & (self._place >= since[self._of])

    def source(self, given: Mask | None) -> Index:
        """Version that each record's value of a column comes from."""
        if given is None:
            return self.winner
        usable = self._fillable & given
        chosen = self._last(usable & self._won)
        # nobody who won had it: the first of the others filled the gap
        other = self._next(usable & ~self._won, default=len(self._place))
        chosen = np.where(chosen >= 0, chosen, np.where(other < len(self._place), other, self.winner))
        return np.where(self._delete[self.winner], self.winner, chosen)

    def _live(self, natural: Mask) -> Mask:
        """The versions that no delete without ordering value has wiped out, nor followed such a delete as another."""
        if not natural.any():
            return np.ones(len(self._place), dtype=np.bool_)
        at = self._last(natural)
        after = self._next(~self._delete & (self._place > at[self._of]), default=len(self._place))
        gone = (after == len(self._place)) & (at >= 0)
        live: Mask = self._place >= np.where(at >= 0, np.where(gone, at, after), self._starts)[self._of]
        live &= ~(gone[self._of] & (self._place > at[self._of]))
        return live

    def _last(self, which: Mask) -> Index:
        """The last such place of each record, -1 if there is none."""
        found: Index = np.maximum.reduceat(np.where(which, self._place, -1), self._starts)
        return found

    def _next(self, which: Mask, default: int) -> Index:
        """The first such place of each record."""
        found: Index = np.minimum.reduceat(np.where(which, self._place, default), self._starts)
        return found


def dense(codes: Index) -> tuple[Index, int]:
    """Map whole numbers to numbers from 0 without gaps, in the order of first appearance; also return their count."""
    values, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    place = np.empty(len(values), dtype=np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(values))
    return place[inverse], len(values)
