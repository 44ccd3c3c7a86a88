"""Signals by which other writers tell a write that is running from one that has failed.

Where failed writes are rolled back eagerly, a table has one writer, which considers every pending write failed.
Otherwise a write has a heartbeat, until whose end no other writer rolls it back, and an intent, from which others learn
of a publication whose outcome is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.storage import Storage
from pyhudi.timeline.fencing.publication_intent import PublicationIntent
from pyhudi.timeline.heartbeat import Heartbeat, HeartbeatPolicy
from pyhudi.transaction.concurrency_mode import failed_writes_policy

_log = logging.getLogger(__name__)


class LivenessSignals:
    """Signals of one write, from its start to its end: none, for the only writer of a table."""

    def start(self) -> None:
        """Signal that the write is running, before its instant is created."""

    def check(self) -> None:
        """Check that no other writer may consider this one dead.

        Raises:
            ConflictError: The signals were missing for so long that the write may have been rolled back.
        """

    def before_publication(self) -> None:
        """Record that the publication is about to be requested."""

    def cleanup_steps(self) -> tuple[Callable[[], object], ...]:
        """Return the steps that remove the signals of a write that has ended."""
        return ()

    def abandon(self) -> None:
        """Give no more signals, and leave those in the storage: they expire, or belong to another process by now."""

    def stop(self) -> None:
        """Remove the signals of a write that has failed, so that other writers may roll it back. A failure is
        logged."""


@dataclass(frozen=True, slots=True)
class HeartbeatSignals(LivenessSignals):
    """Signals of a write with a heartbeat.

    Attributes:
        heartbeat: Heartbeat of the write.
        intent: Record of its publication.
    """

    heartbeat: Heartbeat
    intent: PublicationIntent

    def start(self) -> None:
        self.heartbeat.start()

    def check(self) -> None:
        self.heartbeat.check()

    def before_publication(self) -> None:
        self.intent.set()

    def cleanup_steps(self) -> tuple[Callable[[], object], ...]:
        return self.intent.remove, self.heartbeat.stop

    def abandon(self) -> None:
        self.heartbeat.abandon()

    def stop(self) -> None:
        try:
            self.heartbeat.stop()
        except Exception as failure:  # The file remains and expires.
            _log.warning("could not remove the heartbeat of %s: %s", self.heartbeat.instant, failure)


def liveness_signals(storage: Storage, instant: str, opts: Options) -> LivenessSignals:
    """Return the signals of a write, not started yet.

    Args:
        storage: Storage of the table.
        instant: Requested time of the write.
        opts: Options of the write.
    """
    if failed_writes_policy(opts) is FailedWritesPolicy.EAGER:
        return LivenessSignals()
    heartbeat = Heartbeat(storage, instant, HeartbeatPolicy.from_options(opts))
    return HeartbeatSignals(heartbeat, PublicationIntent(storage, instant))
