"""Heartbeats: signals that a writer is alive while other writers may roll back failed writes.

``.hoodie/.heartbeat/<instant>`` is an empty file that its writer rewrites periodically; its modification time counts. A
writer without a heartbeat for more than ``tolerable_misses`` + 1 intervals is considered dead, and its write may be
rolled back. The file is deleted when the write completes, or when the interpreter exits before, as after Ctrl-C in a
process whose streaming query writes in another thread. After a crash it remains and expires.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import threading
import time
from dataclasses import dataclass
from typing import Self

from pyhudi.config import Options, options
from pyhudi.errors import ConflictError
from pyhudi.storage import Storage, clock
from pyhudi.storage.table_paths import META_FOLDER

HEARTBEAT_FOLDER = f"{META_FOLDER}/.heartbeat"

_log = logging.getLogger(__name__)
_running: set[Heartbeat] = set()
"""Heartbeats that are refreshed. `atexit` would keep a place for each function that is registered and removed again."""


def heartbeat_path(instant: str, folder: str = HEARTBEAT_FOLDER) -> str:
    """Return the heartbeat file of an instant, relative to the root of the table. The metadata table has its own
    ``folder``."""
    return f"{folder}/{instant}"


@dataclass(frozen=True, slots=True)
class HeartbeatPolicy:
    """Interval of heartbeats, and the number of misses after which a writer is considered dead."""

    interval_ms: int = options.HEARTBEAT_INTERVAL_MS.default
    tolerable_misses: int = options.HEARTBEAT_TOLERABLE_MISSES.default

    @classmethod
    def from_options(cls, opts: Options) -> Self:
        """Return the policy of ``hoodie.client.heartbeat.interval_in_ms`` and
        ``hoodie.client.heartbeat.tolerable.misses``."""
        return cls(opts.get_typed(options.HEARTBEAT_INTERVAL_MS), opts.get_typed(options.HEARTBEAT_TOLERABLE_MISSES))

    @property
    def longest_silence_ms(self) -> int:
        """Milliseconds since the last heartbeat after which a writer is considered dead."""
        return self.interval_ms * (self.tolerable_misses + 1)

    def is_dead(self, storage: Storage, instant: str, folder: str = HEARTBEAT_FOLDER) -> bool:
        """Return True if the writer of an instant is considered dead: its heartbeat file is missing, or too old by the
        clock of this machine, which may differ from that of the storage by less than an interval."""
        heartbeat = storage.stat(heartbeat_path(instant, folder))
        return heartbeat is None or clock.now_ms() - heartbeat.mtime_ms > self.longest_silence_ms


class Heartbeat:
    """Heartbeat of one write. ``with heartbeat:`` starts it, and stops it when the block ends."""

    def __init__(self, storage: Storage, instant: str, policy: HeartbeatPolicy, folder: str = HEARTBEAT_FOLDER) -> None:
        self.storage = storage
        self.instant = instant
        self._folder = folder
        self._interval = policy.interval_ms / 1000
        self._patience = policy.longest_silence_ms / 1000
        self._last = 0.0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def path(self) -> str:
        """Path of the heartbeat file, relative to the root of the table."""
        return heartbeat_path(self.instant, self._folder)

    @property
    def running(self) -> bool:
        """True if the file is being refreshed."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def expired(self) -> bool:
        """True if other writers may consider this writer dead."""
        return time.monotonic() - self._last > self._patience

    def start(self) -> None:
        """Write the file and refresh it in a thread until :meth:`stop`. Does nothing if it is running."""
        if self.running:
            return
        self.refresh()
        self._ended.clear()
        self._thread = threading.Thread(target=self._beat, name=f"pyhudi-heartbeat-{self.instant}", daemon=True)
        try:
            self._thread.start()
        except BaseException:  # An interrupt while it starts, or too many threads: there may be none to join.
            self._ended.set()
            self._thread = None
            raise
        self._process = os.getpid()
        _running.add(self)

    def refresh(self) -> None:
        """Write the file now."""
        started = time.monotonic()
        self.storage.write(self.path, b"")
        self._last = started

    def check(self) -> None:
        """Raise ``ConflictError`` if the heartbeat was not refreshed for so long that another writer may have rolled
        back the write."""
        if self.expired:
            raise ConflictError(
                f"the heartbeat of instant {self.instant} was not refreshed for more than {self._patience:g} s, "
                "so another writer may have rolled it back; run the write again"
            )

    def stop(self) -> None:
        """Stop refreshing and remove the file. From now on `check` fails."""
        self.abandon()
        self._last = -math.inf
        self.storage.delete(self.path)

    def abandon(self) -> None:
        """Stop refreshing and leave the file to the process that has taken over the instant."""
        _running.discard(self)
        self._ended.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def stop_at_exit(self) -> None:
        """Stop, because the thread that writes does not outlive the interpreter, so that another writer may roll back
        the write at once. A fork of the process does not write."""
        if os.getpid() != self._process:
            return
        try:
            self.stop()
        except Exception as error:  # The file remains and expires.
            _log.warning("could not remove the heartbeat of %s: %s", self.instant, error)
        except BaseException:  # Simulated crash in a test.
            return

    def _beat(self) -> None:
        while not self._ended.wait(self._interval):
            try:
                self.refresh()
            except Exception as error:
                _log.warning("heartbeat of instant %s not refreshed: %s", self.instant, error)
            except BaseException:  # Simulated crash in a test.
                return

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


@atexit.register
def _stop_running() -> None:
    for heartbeat in tuple(_running):
        heartbeat.stop_at_exit()
