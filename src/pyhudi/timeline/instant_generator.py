"""New instant times: milliseconds, strictly rising in this process and across processes and machines.

As the 1.0 timeline asks (TrueTime): take a lock, read the clock, and let nobody else read one before the largest
expected difference between two machines' clocks (``hoodie.time.generator.max_expected_clock_skew_ms``, 200 ms) has
passed. Any writer that takes the lock later then reads a later time, whatever its clock. On top of that a time is never
at or before one that the caller has seen on the timeline, so a clock that was set back (or a table written under
another local time zone) cannot bring the order into disarray.

What has to wait is the next taker of the lock, not the one who has the time: he goes on with his work, and the lock is
given back when the wait is over. If he takes the lock again meanwhile, to look at the table, he does not wait either;
only for his next time he does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from pyhudi.config import Options
from pyhudi.config.options import TIME_GENERATOR_MAX_CLOCK_SKEW_MS
from pyhudi.storage.local_locks import DeferredReleaseLock, Lock, host_lock
from pyhudi.timeline.instant import instant_of_millis, next_instant

if TYPE_CHECKING:
    from pyhudi.storage.storage_protocol import Storage


_last_issued: dict[str, str] = {}
_guard = threading.Lock()


class Slot:
    """A time that was read under the lock."""

    def __init__(self, root: str, read: Callable[[], tuple[str, float]], lock: DeferredReleaseLock) -> None:
        self._root = root
        self._read = read
        self._text, self._ready = read()
        self._lock = lock

    def take(self, after: str | None = None) -> str:
        """The instant, later than ``after`` and all that were issued before. From now on the lock is kept until the
        clock skew is over. Waits for that of the times that were issued when the lock was held before."""
        if self._lock.wait_for_earlier():
            self._text, self._ready = self._read()
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
        lock: Lock | DeferredReleaseLock | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._root = storage.root
        self._timezone = timezone
        self.lock = lock if isinstance(lock, DeferredReleaseLock) else DeferredReleaseLock(lock or host_lock(storage))
        self._clock = clock
        self._skew_ms = Options.parse(options).get_typed(TIME_GENERATOR_MAX_CLOCK_SKEW_MS)

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
            yield Slot(self._root, self._read, self.lock)

    def _read(self) -> tuple[str, float]:
        """The clock's time as an instant, and the moment (monotonic) when its clock skew is over."""
        now, started = self._clock(), time.monotonic()
        # at least one millisecond, so that the next reader of the same clock sees a later one
        return instant_of_millis(now, self._timezone), started + max(self._skew_ms, 1) / 1000
