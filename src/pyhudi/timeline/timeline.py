"""Immutable view of a timeline: sorted instants and queries on them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from pyhudi.timeline.instant import Action, Instant, State


class Timeline:
    """Instants, one per (requested time, completed action) in its latest state, sorted by requested time."""

    def __init__(self, instants: Iterable[Instant] = (), *, root: Timeline | None = None) -> None:
        """Create a timeline. ``root`` is the whole active timeline if ``instants`` are only a part of it."""
        self.instants: tuple[Instant, ...] = tuple(sorted(instants, key=lambda i: (i.requested, i.action)))
        self._root = root

    @classmethod
    def from_files(cls, files: Iterable[Instant]) -> Timeline:
        """Combine one instant per state file into one per instant, with its latest state."""
        best: dict[tuple[str, str], Instant] = {}
        for instant in files:
            key = (instant.requested, instant.family)
            current = best.get(key)
            if current is None or _precedes(instant, current):
                best[key] = instant
        return cls(best.values())

    def __len__(self) -> int:
        return len(self.instants)

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __bool__(self) -> bool:
        return bool(self.instants)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timeline) and self.instants == other.instants

    def __hash__(self) -> int:
        return hash(self.instants)

    def __repr__(self) -> str:
        span = f"{self.instants[0].requested}…{self.instants[-1].requested}" if self.instants else "empty"
        return f"Timeline({len(self.instants)} instants, {span})"

    # --- parts ---------------------------------------------------------------------------------------------------

    def filter(self, keep: Callable[[Instant], bool]) -> Timeline:
        """Return the instants that satisfy ``keep``. The whole timeline is retained for :attr:`start`."""
        return Timeline(filter(keep, self.instants), root=self._root or self)

    def completed(self) -> Timeline:
        return self.filter(lambda i: i.state is State.COMPLETED)

    def pending(self) -> Timeline:
        """Return requested and inflight instants, without savepoints: these have the time of a completed write, which
        is not pending for readers and writers while a savepoint of it is created."""
        return self.filter(_is_pending)

    def writes(self) -> Timeline:
        """Return commits, deltacommits and replacecommits, including pending table services that complete as such."""
        return self.filter(lambda i: i.is_write)

    def of_actions(self, *actions: str) -> Timeline:
        """Return instants whose current action is one of these (``compaction`` only while it is pending)."""
        wanted = frozenset(actions)
        return self.filter(lambda i: i.action in wanted)

    def up_to(self, requested: str) -> Timeline:
        """Return instants with requested time ≤ ``requested``."""
        return self.filter(lambda i: i.requested <= requested)

    def after(self, requested: str) -> Timeline:
        """Return instants with requested time > ``requested``."""
        return self.filter(lambda i: i.requested > requested)

    def by_completion(self) -> list[Instant]:
        """Return completed instants in order of completion (requested order if the layout has no completion times)."""
        done = (i for i in self.instants if i.state is State.COMPLETED)
        return sorted(done, key=lambda i: (i.order_time, i.requested))

    # --- queries -------------------------------------------------------------------------------------------------

    @property
    def first(self) -> Instant | None:
        return self.instants[0] if self.instants else None

    @property
    def last(self) -> Instant | None:
        return self.instants[-1] if self.instants else None

    @cached_property
    def start(self) -> str | None:
        """Start of the active timeline: its first completed write without a savepoint.

        Older instants have been archived. (Archival may pass a savepoint and leave its commit in the active timeline,
        so a commit with a savepoint is ignored as long as there is another one. After a restore to a savepoint there is
        none: then everything before the last one has been archived, except the remaining instants.) None while no write
        is completed.
        """
        if self._root is not None:
            return self._root.start
        saved = {i.requested for i in self.instants if i.action == Action.SAVEPOINT}
        done = [i.requested for i in self.instants if i.is_completed and i.is_write]
        return next((requested for requested in done if requested not in saved), done[-1] if done else None)

    @cached_property
    def _pending(self) -> frozenset[str]:
        if self._root is not None:
            return self._root._pending
        return frozenset(i.requested for i in self.instants if _is_pending(i))

    @cached_property
    def _completions(self) -> dict[str, str | None]:
        return {i.requested: i.completion for i in self.instants if i.is_completed and i.action != Action.SAVEPOINT}

    @cached_property
    def requested_times(self) -> tuple[str, ...]:
        """Requested times of the instants, sorted."""
        return tuple(i.requested for i in self.instants)

    def find(self, requested: str, *actions: str) -> Instant | None:
        """Return the instant with this requested time (and one of these actions or completed actions), or None."""
        at = bisect_left(self.requested_times, requested)
        while at < len(self.instants) and self.instants[at].requested == requested:
            instant = self.instants[at]
            if (not actions and instant.action != Action.SAVEPOINT) or {instant.action, instant.family} & set(actions):
                return instant
            at += 1
        return None

    def __contains__(self, requested: str) -> bool:
        return self.find(requested) is not None

    def is_completed(self, requested: str) -> bool:
        """Return True if an instant (except savepoints) with this requested time is completed."""
        return requested in self._completions

    def completion_of(self, requested: str) -> str | None:
        """Return the completion time, or None if the instant is not completed or the layout has none."""
        return self._completions.get(requested)

    def is_before_start(self, requested: str) -> bool:
        """Return True if ``requested`` is older than the active timeline and thus archived."""
        return self.start is not None and requested < self.start and requested not in self._pending

    def contains_or_before_start(self, requested: str) -> bool:
        """Return True if files of that instant are visible: it is completed, or older than the active timeline.

        This is Apache Hudi's rule for base files. It is valid because a failed write is rolled back before the timeline
        is archived beyond it. An instant that is pending in the whole timeline is never visible, however old it is.
        """
        return requested in self._completions or self.is_before_start(requested)


def _is_pending(instant: Instant) -> bool:
    return not instant.is_completed and instant.action != Action.SAVEPOINT


def _precedes(one: Instant, other: Instant) -> bool:
    if one.state is not other.state:
        return one.state.rank > other.state.rank
    # Two completed files of one instant can only be written without a lock; the first to complete became visible.
    return one.completion is not None and (other.completion is None or one.completion < other.completion)
