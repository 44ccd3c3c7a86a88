"""Start of a write: failed writes of others are rolled back, and its requested instant is created."""

from __future__ import annotations

from dataclasses import dataclass

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.metadata.writer.enabled_partitions import delete_if_disabled
from pyhudi.table.bootstrap_index import BOOTSTRAP_INSTANTS
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.action_avro import requested_replace
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.time_generator import ReservedTime
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.concurrency_mode import failed_writes_policy
from pyhudi.transaction.liveness_signals import LivenessSignals, liveness_signals
from pyhudi.transaction.rollback.rollback_executor import RollbackExecutor
from pyhudi.transaction.table_checks import current_snapshot, refuse_pending_bootstrap


@dataclass(frozen=True, slots=True)
class StartedWrite:
    """A write whose instant is requested.

    Attributes:
        config: Configuration of the table from now on.
        timeline: The timeline before the instant: the write must be planned on it.
        active: The same with its files.
        instant: The requested instant.
        signals: Signals that the write is running.
    """

    config: TableConfig
    timeline: Timeline
    active: ActiveTimeline
    instant: Instant
    signals: LivenessSignals


def start_write(
    config: TableConfig,
    rollbacks: RollbackExecutor,
    opts: Options,
    reserved: ReservedTime,
    action: str,
    *,
    instant: str | None,
) -> StartedWrite:
    """Roll back failed writes, and create the requested instant. The caller holds the lock of the table.

    Args:
        config: Configuration of the table, as it was opened.
        rollbacks: Rollbacks of failed writes.
        opts: Options of the write.
        reserved: Instant times under the lock.
        action: Action of the write.
        instant: The fixed requested time; None: a new one.

    Raises:
        TransactionError: A restore is pending, or the bootstrap of the table, unless this is an attempt at it.
        UnsupportedTableError: The table cannot be written, or a failed write cannot be rolled back by pyhudi. Nothing
            has been changed then.
    """
    storage = rollbacks.storage
    # Read again: the table was opened without its lock, which others may have had since.
    table = current_snapshot(storage, config)
    config, active = table.config, table.active
    is_bootstrap = instant in BOOTSTRAP_INSTANTS
    if not is_bootstrap:
        refuse_pending_bootstrap(active, config)
    policy = failed_writes_policy(opts)
    failed = rollbacks.failed_writes(active, policy, bootstraps=is_bootstrap)
    rollbacks.check(active, failed)
    # Before the first change of the timeline, because a metadata table must not survive the table that it describes.
    config = delete_if_disabled(storage, config, opts)
    rollbacks.complete_and_roll_back(active, failed, leave_running=policy is FailedWritesPolicy.LAZY)
    if instant is not None:  # It may have been used before; those attempts are rolled back by now.
        active = active.reload()
    timeline = active.timeline
    requested = instant or reserved.take(active.latest_time)
    content = requested_replace(config.version) if action == Action.REPLACE_COMMIT else b""
    signals = liveness_signals(storage, requested, opts)
    try:
        signals.start()
        reserved.lock.ensure_held()  # Others may have archived instants later than this one.
        created = active.create_requested(action, requested, content)
    except BaseException:
        signals.stop()
        raise
    return StartedWrite(config, timeline, active, created, signals)
