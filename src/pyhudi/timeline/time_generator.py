"""Generator of instant times: milliseconds, strictly increasing within the process and across processes and machines.

As required by the 1.0 timeline (TrueTime): the generator acquires a lock, reads the clock, and lets no other writer
read a clock before the maximum clock skew (``hoodie.time.generator.max_expected_clock_skew_ms``, 200 ms) has passed.
Any writer that acquires the lock later then reads a later time, regardless of its clock. In addition, a time is always
later than those that the caller has seen in the timeline, so a clock that was set back (or a table written in another
local time zone) cannot break the order.

Writers that read the same clock need not wait: the next one reads a later time anyway.

Only the next holder of the lock must wait, not the writer that has obtained the time: it continues, and the lock is
released when the wait is over. If it acquires the lock again in the meantime, to read the table, it does not wait
either; only to obtain its next time does it wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext

from pyhudi.config import Options
from pyhudi.config.options import TIME_GENERATOR_MAX_CLOCK_SKEW_MS
from pyhudi.storage import Lock, Storage, host_lock
from pyhudi.storage.clock import now_ms
from pyhudi.storage.lock_primitives import DeferredReleaseLock
from pyhudi.timeline.instant import instant_of_millis, next_instant

_last_issued: dict[str, str] = {}
_guard = threading.Lock()


class ReservedTime:
    """A time that was read under the lock :attr:`lock`."""

    def __init__(self, root: str, read: Callable[[], tuple[str, float]], lock: DeferredReleaseLock) -> None:
        self._root = root
        self._read = read
        self._text, self._ready = read()
        self.lock = lock

    def take(self, after: str | None = None) -> str:
        """Return the instant time, later than ``after`` and all issued before.

        From now on the lock is kept until the clock skew has passed. Waits until the clock skew of the times issued
        under the previous lock has passed.
        """
        if self.lock.wait_for_earlier():
            self._text, self._ready = self._read()
        with _guard:
            floor = max(after or "", _last_issued.get(self._root, ""))
            text = self._text if self._text > floor else next_instant(floor)
            _last_issued[self._root] = text
        self.lock.keep_until(self._ready)
        return text


class TimeGenerator:
    """Issues instant times for one table.

    ``timezone`` is ``hoodie.table.timeline.timezone`` (LOCAL or UTC). ``lock`` is the lock of the table if several
    writers use it; by default the widest lock that leaves no files in the table (all processes of this host for a local
    table). ``shares_clock``: all who use the lock read the same clock, so there is no skew. ``clock`` returns epoch
    milliseconds. :attr:`lock` is that lock for other uses, which takes its deferred release into account.
    """

    def __init__(
        self,
        storage: Storage,
        options: Mapping[str, str],
        timezone: str = "LOCAL",
        *,
        lock: Lock | DeferredReleaseLock | None = None,
        shares_clock: bool = False,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._root = storage.root
        self._timezone = timezone
        self.lock = lock if isinstance(lock, DeferredReleaseLock) else DeferredReleaseLock(lock or host_lock(storage))
        self._clock = clock
        self._skew_ms = 0 if shares_clock else Options.parse(options).get_typed(TIME_GENERATOR_MAX_CLOCK_SKEW_MS)

    def next(self, after: str | None = None) -> str:
        """Return a new instant time, later than ``after``. No other is issued before the clock skew has passed."""
        with self.reserve() as reserved:
            return reserved.take(after)

    @contextmanager
    def reserve(self, *, locked: bool = False) -> Iterator[ReservedTime]:
        """Read the clock under the lock and hold the lock for the block.

        The caller does its work under the lock, calls ``take`` for the instant time, and makes it visible (creates the
        timeline file) before the end of the block. ``locked``: the caller holds :attr:`lock` itself.
        """
        with nullcontext() if locked else self.lock:
            yield ReservedTime(self._root, self._read, self.lock)

    def _read(self) -> tuple[str, float]:
        """Return the time of the clock as an instant, and the monotonic time when its clock skew has passed."""
        now, started = self._clock(), time.monotonic()
        # At least one millisecond, so that the next reader of the same clock obtains a later time.
        return instant_of_millis(now, self._timezone), started + max(self._skew_ms, 1) / 1000
