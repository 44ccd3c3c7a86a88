"""Write that is pending: its instant, which becomes inflight, and its end by a rollback or by the next writer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from pyhudi.config import Options
from pyhudi.errors import InstantNotFoundError, TransactionError
from pyhudi.storage import Storage
from pyhudi.storage.lock_primitives import DeferredReleaseLock
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.timeline.instant import Instant, State
from pyhudi.timeline.markers import Markers
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.file_reconciliation import reconcile_against_markers
from pyhudi.transaction.liveness_signals import LivenessSignals
from pyhudi.transaction.locks.lock_factory import make_time_generator
from pyhudi.transaction.rollback.rollback_executor import RollbackExecutor
from pyhudi.transaction.rollback.rollback_status import find_rollback, refuse_if_rolled_back
from pyhudi.transaction.table_checks import refuse_pending_restore
from pyhudi.transaction.write_start import start_write

_log = logging.getLogger(__name__)


class PendingWrite:
    """A running write on one table, until it is published (`pyhudi.transaction.transaction.Transaction`). Not
    thread-safe.

    ``instant`` is its requested time. ``timeline`` is the timeline at its start: the write must be planned on it,
    because only later completions are checked for conflicts. ``config`` is the table's configuration from now on. In a
    ``with`` block the write is aborted unless it was committed, and an InstantNotFoundError becomes a TransactionError.
    """

    def __init__(self, storage: Storage, config: TableConfig, operation: str, opts: Options) -> None:
        self.storage = storage
        self.config = config
        self.operation = operation
        self.opts = opts
        generator = make_time_generator(storage, opts, config.timezone)
        self._rollbacks = RollbackExecutor.from_options(storage, config.version, generator, opts)
        self._signals = LivenessSignals()
        self._active: ActiveTimeline
        self._instant: Instant
        self._fixed_instant = False
        self._fence_closed = False
        self._finished = False
        self._start = time.perf_counter()
        self.timeline: Timeline

    def _create_requested(self, action: str, instant: str | None) -> None:
        """Roll back failed writes and create the requested instant, with the fixed time ``instant`` if there is one."""
        try:
            with self._rollbacks.generator.reserve() as reserved:
                started = start_write(self.config, self._rollbacks, self.opts, reserved, action, instant=instant)
                self._signals, self._fixed_instant = started.signals, instant is not None
        except BaseException:
            self._signals.stop()
            raise
        self.config, self.timeline = started.config, started.timeline
        self._active, self._instant = started.active, started.instant

    @property
    def instant(self) -> str:
        """Requested time, which is part of the names of the write's files."""
        return self._instant.requested

    @property
    def action(self) -> str:
        return self._instant.action

    @property
    def lock(self) -> DeferredReleaseLock:
        """Lock of the table."""
        return self._rollbacks.generator.lock

    @property
    def fence(self) -> WriteFence:
        """Fence of the tasks of this write, open from `to_inflight` to `commit`."""
        return WriteFence(self.storage, self.instant)

    @property
    def markers(self) -> Markers:
        """Markers, one of which is created before each data file of the write."""
        return Markers(self.storage, self.instant)

    @property
    def active(self) -> ActiveTimeline:
        """`timeline` with its files: the basis for planning the write."""
        return self._active

    def to_inflight(self, metadata: CommitMetadata | None = None) -> None:
        """Move the write to inflight before data files are written; ``metadata`` is the workload profile (None: an
        empty file).

        Raises:
            ConflictError: Another writer considered this one dead and rolled it back, or removed its plan.
            BusyError: Another process executes its plan.
            LockError: The lock of the table could not be acquired.
        """
        content = b"" if metadata is None else metadata.encode(self.config.version, self.action)
        with self.lock:
            self.fence.open()  # A process that plans a rollback after this check closes it.
            # Listed again: while the write was planned without the lock, others may have taken it for dead.
            self._check_alive(self._active.reload(), State.REQUESTED)
            self._instant = self._active.to_inflight(self._instant, content)
            self._after_inflight()

    def _after_inflight(self) -> None:
        """Called after the inflight file has been created, under the lock."""

    def _close_fence(self) -> None:
        """Allow no more files of tasks, from `Transaction.commit` on, or from the end of the write."""
        if not self._fence_closed:
            self.fence.close()
            self._fence_closed = True

    def leave_pending(self) -> None:
        """Leave the write pending for the next writer to resolve. From now on the heartbeat expires."""
        self._signals.abandon()
        self._finished = True

    def abort(self) -> None:
        """Roll back the write by a rollback action. Does nothing if it is committed or aborted."""
        if self._finished:
            return
        with self.lock:
            self._undo(self._active.reload())
        if not self._finished:
            self._finish()

    def _undo(self, active: ActiveTimeline) -> None:
        """Roll back the instant of this write in the timeline. The lock is held."""
        if self._fixed_instant and find_rollback(active, self.timeline, self.instant) is not None:
            self.leave_pending()  # The instant, its files and its markers may be those of the next attempt.
            return
        current = active.timeline.find(self.instant, self._instant.family)  # A completed plan has another action.
        if current is not None and not current.is_completed:
            self._rollbacks.roll_back(active, current)
            return
        # Another process has rolled it back and deleted the markers of that time, or completed the same plan; or an
        # interrupt came after the publication.
        named = CommitMetadata(self.operation) if current is None else active.commit_metadata(current)
        self.fence.close()
        reconcile_against_markers(self.storage, self.instant, named)

    def _check_alive(self, active: ActiveTimeline, expected: State) -> None:
        """Refuse to continue a write that another writer has rolled back or started to, or that a restore rolls
        back."""
        refuse_pending_restore(active)
        self._signals.check()
        refuse_if_rolled_back(self._instant, expected, self.timeline, active)

    def _finish(self) -> list[str]:
        """Remove markers and heartbeat, each even if another failed. Return warnings for failures, whose leftovers the
        next writer removes."""
        warnings: list[str] = []
        for step in self._cleanup_steps():
            try:
                step()
            except Exception as failure:
                warnings.append(f"leftovers of {self._instant} remain for the next writer: {failure}")
                _log.warning("%s", warnings[-1])
        self._finished = True
        return warnings

    def _cleanup_steps(self) -> list[Callable[[], object]]:
        return [self._close_fence, self.markers.delete, *self._signals.cleanup_steps()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._finished:
            return
        if error is None:
            self.abort()
            return
        try:
            self.abort()
        except Exception as failure:
            _log.warning("%s is left for the next writer to roll back: %s", self._instant, failure)
            self._signals.stop()
        if isinstance(error, InstantNotFoundError):  # which means to callers that nothing was begun
            raise TransactionError(f"{self._instant} was not committed: {error}") from error
