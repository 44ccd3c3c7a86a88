"""New instant times: milliseconds, strictly rising in this process and across processes and machines.

As the 1.0 timeline asks (TrueTime): take a lock, read the clock, and let nobody else read one before the largest
expected difference between two machines' clocks (``hoodie.time.generator.max_expected_clock_skew_ms``, 200 ms) has
passed. Any writer that takes the lock later then reads a later time, whatever its clock. On top of that a time is never
at or before one that the caller has seen on the timeline, so a clock that was set back (or a table written under
another local time zone) cannot bring the order into disarray.

What has to wait is the next taker of the lock, not the one who has the time: he goes on with his work, and the lock is
given back when the wait is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from pyhudi.errors import InvalidOptionError
from pyhudi.storage.locking import LingeringLock, Lock, host_lock
from pyhudi.timeline.instants import instant_of_millis, next_instant

if TYPE_CHECKING:
    from pyhudi.storage.base import Storage

MAX_CLOCK_SKEW = "hoodie.time.generator.max_expected_clock_skew_ms"
DEFAULT_CLOCK_SKEW_MS = 200

_last_issued: dict[str, str] = {}
_guard = threading.Lock()


class Slot:
    """A time that was read under the lock."""

    def __init__(self, root: str, text: str, ready: float, lock: LingeringLock) -> None:
        self._root = root
        self._text = text
        self._ready = ready
        self._lock = lock

    def take(self, after: str | None = None) -> str:
        """The instant, later than ``after`` and all that were issued before. From now on the lock is kept until the
        clock skew is over."""
        with _guard:
            floor = max(after or "", _last_issued.get(self._root, ""))
            text = self._text if self._text > floor else next_instant(floor)
            _last_issued[self._root] = text
        self._lock.keep_until(self._ready)
        return text


class InstantGenerator:
    """Issues instant times for one table.

    ``timezone`` is ``hoodie.table.timeline.timezone`` (LOCAL or UTC). ``lock`` is the table's lock when several writers
    use it; without one the widest lock that leaves no trace in the table serves (all processes of this host for a
    local table). ``clock`` gives epoch milliseconds. :attr:`lock` is that lock for other uses, aware that it may still
    be on its way back.
    """

    def __init__(
        self,
        storage: Storage,
        options: Mapping[str, str],
        timezone: str = "LOCAL",
        *,
        lock: Lock | LingeringLock | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._root = storage.root
        self._timezone = timezone
        self.lock = lock if isinstance(lock, LingeringLock) else LingeringLock(lock or host_lock(storage))
        self._clock = clock
        raw = options.get(MAX_CLOCK_SKEW, str(DEFAULT_CLOCK_SKEW_MS))
        try:
            self._skew_ms = int(raw)
        except ValueError:
            self._skew_ms = -1
        if self._skew_ms < 0:
            raise InvalidOptionError(MAX_CLOCK_SKEW, raw, "a number of milliseconds, 0 or more")

    def next(self, after: str | None = None) -> str:
        """A new instant, later than ``after``. Nobody gets another one before the clock skew is over."""
        with self.reserve() as slot:
            return slot.take(after)

    @contextmanager
    def reserve(self, *, locked: bool = False) -> Iterator[Slot]:
        """Read the clock under the lock and keep the lock for the block.

        The caller does what it has to do meanwhile, calls ``take`` for the instant, and makes it visible (creates the
        timeline file) before it leaves the block. ``locked``: the caller holds :attr:`lock` itself.
        """
        with nullcontext() if locked else self.lock:
            now, started = self._clock(), time.monotonic()
            # at least one millisecond, so that the next reader of the same clock sees a later one
            ready = started + max(self._skew_ms, 1) / 1000
            yield Slot(self._root, instant_of_millis(now, self._timezone), ready, self.lock)
