"""Rollback of one instant requested by the user: the last completed write, or a pending one."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.config.property_keys import BOOTSTRAP_UNFINISHED
from pyhudi.errors import InstantNotFoundError, TransactionError
from pyhudi.format.file_names import LOG, file_names_of, parse_names
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS, COLUMN_STATS, FILES
from pyhudi.metadata.writer.enabled_partitions import build_enabled_partitions, is_metadata_enabled
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.services.service_result import PhaseTimer, ServiceResult
from pyhudi.services.snapshot_availability import check_not_cleaned
from pyhudi.table.bootstrap_index import BOOTSTRAP_INSTANTS
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_listing import list_files
from pyhudi.table.view.pending_file_groups import is_clustering
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import archived_writes
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.transaction.concurrency_mode import failed_writes_policy
from pyhudi.transaction.conflicts.changed_groups import touched_groups
from pyhudi.transaction.locks.lock_factory import make_time_generator
from pyhudi.transaction.plan_ownership import check_no_heartbeat
from pyhudi.transaction.post_commit.metadata_updates import MetadataUpdates
from pyhudi.transaction.rollback import late_data_files
from pyhudi.transaction.rollback.rollback_executor import RollbackExecutor
from pyhudi.transaction.rollback.rollback_planner import files_of_instant
from pyhudi.transaction.rollback.upgraded_log_files import check_log_files
from pyhudi.transaction.single_writer_locks import in_process_writer_lock
from pyhudi.transaction.table_checks import current_snapshot

SERVICE = "rollback"

_log = logging.getLogger(__name__)


def roll_back(
    client: TableMetaClient,
    opts: Options,
    stats_reader: FileStatsReader,
    instant: str | None = None,
    *,
    with_plan: bool = False,
) -> ServiceResult:
    """Roll back a write: its files, its instant, and its changes to the metadata table.

    Args:
        client: The table.
        opts: Options of locks, heartbeats and the metadata table.
        stats_reader: Reads files if the metadata table has to be rebuilt.
        instant: The write; default: the one of an unfinished rollback, which is finished, otherwise the last completed
            one. A plan that has not been started is removed.
        with_plan: For a service that has been started, remove its plan, too, so that it is not executed again.

    Raises:
        InstantNotFoundError: The active timeline has no such write.
        TransactionError: Later writes depend on it (on its plan if that is to go, too), it has a savepoint, cleaning
            has deleted earlier files, or a restore is pending.
        BusyError: Another process is executing it.
        LockError: The lock of the table could not be acquired.
    """
    storage, phases = client.storage, PhaseTimer()
    generator = make_time_generator(storage, opts, client.config.timezone)
    with in_process_writer_lock(storage, opts), generator.lock:
        with phases("plan"):
            table = current_snapshot(storage, client.config)
            config, active = table.config, table.active
            rollbacks = RollbackExecutor.from_options(storage, config.version, generator, opts)
            rollbacks.check(active, [])
            finished = rollbacks.complete_and_roll_back(active, [])  # Started by another process.
            # Without an instant the finished one may be an earlier run of the same call: never undo a second write.
            again = [i for i in finished if instant in (None, *active.completed_record(i)["commitsRollback"])]
            if again and not (with_plan and active.timeline.pending().writes().find(instant or "")):
                return _result(client, active, again[-1], phases)
            target = find_write(active, instant, storage.uri())
            with_plan = with_plan or _is_unstarted_plan(active, target) or _is_undone_by_restore(active, target)
            _check_target(table, opts, target, with_plan=with_plan)
            rollbacks.check(active, [target])
        with phases("rollback"):
            done = rollbacks.roll_back(active, target, with_plan=with_plan)
            if done is None:
                raise TransactionError(
                    f"{target} was completed concurrently; run the rollback again to roll it back as a completed write"
                )
            if target.requested in BOOTSTRAP_INSTANTS:  # The user goes on without the rows of its source.
                config.updated(storage, remove=(BOOTSTRAP_UNFINISHED,))
            if with_plan:
                active.delete_pending(target.requested, target.action)
                late_data_files.delete_slices_of_removed_plans(active, {target.requested})
        with phases("metadata"):
            rebuild_metadata(MetadataUpdates(storage, opts, generator, stats_reader), config)
    return _result(client, active, done, phases).published(opts)


def _result(client: TableMetaClient, active: ActiveTimeline, done: Instant, phases: PhaseTimer) -> ServiceResult:
    record = active.completed_record(done)
    (instant,) = record["commitsRollback"]
    counts = {"files": record["totalFilesDeleted"], "partitions": len(record["partitionMetadata"])}
    return ServiceResult(SERVICE, client.storage.uri(), (instant,), counts, millis=phases.millis)


def find_write(active: ActiveTimeline, instant: str | None, root: str) -> Instant:
    """Return the write of an instant, in any state; by default the last completed one.

    Raises:
        InstantNotFoundError: The active timeline has no such write.
    """
    writes = active.timeline.writes()
    done = writes.completed().by_completion()
    write = (done[-1] if done else None) if instant is None else writes.find(instant)
    if write is None:
        missing = "completed write" if instant is None else f"write {instant!r}"
        raise InstantNotFoundError(
            f"the active timeline of the table at {root} has no {missing}; archived writes cannot be rolled back"
        )
    return write


def refuse_savepoint(active: ActiveTimeline, target: Instant) -> None:
    """Refuse to roll back a write with a savepoint."""
    if active.timeline.find(target.requested, Action.SAVEPOINT) is not None:
        raise TransactionError(
            f"{target} has a savepoint and cannot be rolled back; delete it first "
            f"(services.delete_savepoint({target.requested!r}))"
        )


def rebuild_metadata(updates: MetadataUpdates, before: TableConfig) -> None:
    """Rebuild the metadata table, if it was deleted. The lock is held. ``before`` is the previous configuration of the
    table.

    Indexes that require Spark (record index, secondary and expression indexes) are left to later writes, or to the
    user.
    """
    storage, opts = updates.storage, updates.opts
    now = TableConfig.load(storage)
    if FILES not in before.metadata_partitions or FILES in now.metadata_partitions or not is_metadata_enabled(opts):
        return
    flags = {COLUMN_STATS: options.METADATA_COLUMN_STATS_ENABLE, BLOOM_FILTERS: options.METADATA_BLOOM_ENABLE}
    enabled = {option.key: True for partition, option in flags.items() if partition in before.metadata_partitions}
    active = ActiveTimeline.load(storage, now.layout)
    try:
        with updates.generator.reserve(locked=True) as reserved:
            table = updates.locked_table(active, now, reserved).with_options(opts.merged(enabled))
            built = build_enabled_partitions(table)
    except Exception as failure:  # The next write tries again.
        _log.warning("the metadata table of %s has not been rebuilt yet: %s", storage.root, failure)
        return
    missing = sorted(set(before.metadata_partitions) - set(built.metadata_partitions))
    if missing:
        _log.warning("indexes of %s have to be rebuilt: %s", storage.root, ", ".join(missing))


def _check_target(table: TableSnapshot, opts: Options, target: Instant, *, with_plan: bool) -> None:
    """Refuse to roll back a write on which others depend, or that is running. The errors are those of `roll_back`."""
    refuse_savepoint(table.active, target)
    if target.is_completed:
        _check_last(table, target)
    elif failed_writes_policy(opts) is not FailedWritesPolicy.EAGER:
        check_no_heartbeat(table.storage, target, opts)
    if with_plan:
        _refuse_later_logs(table.active, table.config, target)


def _is_unstarted_plan(active: ActiveTimeline, target: Instant) -> bool:
    """Return True for the plan of a compaction or clustering of which a rollback would leave everything."""
    return target.state is State.REQUESTED and (target.action == Action.COMPACTION or is_clustering(active, target))


def _is_undone_by_restore(active: ActiveTimeline, target: Instant) -> bool:
    """Return True for a pending clustering that a restore has rolled back when it was completed. Apache Hudi leaves
    such plans, although the restore may have deleted the files that they name (`docs/format/core.md`, 10, 41)."""
    if target.is_completed or not is_clustering(active, target):
        return False
    restores = active.timeline.completed().of_actions(Action.RESTORE).after(target.requested)
    return any(target.requested in active.completed_record(restore)["instantsToRollback"] for restore in restores)


def _refuse_later_logs(active: ActiveTimeline, config: TableConfig, target: Instant) -> None:
    """Refuse to remove the plan of a compaction after which others have written to its file slices, or may be writing.
    In tables of version 6 their log files belong to the slices that the plan has opened, and go with them."""
    if config.version >= 8 or target.action != Action.COMPACTION:
        return
    kinds = parse_names(file_names_of(files_of_instant(active.storage, target.requested)))["kind"]
    later = [write for write in active.timeline.writes() if write.requested > target.requested]
    running = [write for write in later if not (write.is_completed or is_clustering(active, write))]
    if LOG in pc.unique(kinds).to_pylist():
        why = f"later writes have added log files to the file slices that it opened: {_instant_list(later)}"
    elif running:
        why = f"pending writes may add log files to the file slices that it opened: {_instant_list(running)}"
    else:
        return
    rest = "" if target.state is State.REQUESTED else ", or roll it back without its plan"
    raise TransactionError(
        f"{target} cannot be removed with its plan, because {why}. Run the compaction "
        f"(services.run_compaction({target.requested!r})){rest}"
    )


def _instant_list(instants: Sequence[Instant]) -> str:
    return ", ".join(map(str, instants[:3])) + (", …" if len(instants) > 3 else "")


def _check_last(table: TableSnapshot, target: Instant) -> None:
    """Refuse a completed write unless it is the last one, and its predecessor still exists.

    The first write of a table has none, and leaves an empty table.
    """
    writes = table.active.timeline.writes()
    done = writes.completed().by_completion()
    later = [i for i in done if i.order_time > target.order_time]
    later += [i for i in writes.pending() if i.requested > target.requested]
    if later:
        raise TransactionError(
            f"{target} cannot be rolled back, because {len(later)} later writes may depend on it: "
            f"{_instant_list(later)}. Roll these back first, the last one first, or restore the table to an earlier "
            "instant"
        )
    check_log_files(table.active, table.config.version, [target])
    earlier = [i for i in done if i.order_time < target.order_time]
    since = earlier[-1].requested if earlier else None
    archived = archived_writes(table.storage, table.active.layout, after=since, up_to=target.requested)
    if archived.num_rows:
        # Their files may have been cleaned; and a timeline without any write makes no file visible.
        raise TransactionError(
            f"{target} cannot be rolled back, because the write before it, {archived['requested'][-1].as_py()}, is "
            "archived, so the lost rows cannot be determined. Correct its rows by another write, or restore "
            "the table to a savepoint"
        )
    if earlier:
        groups = touched_groups(table.active.commit_metadata(target))
        check_not_cleaned(table, earlier[-1], f"{target} cannot be rolled back", groups=groups)
    else:
        _refuse_files_of_overwritten_table(table, target)


def _refuse_files_of_overwritten_table(table: TableSnapshot, target: Instant) -> None:
    """Refuse to roll back the first write if it has replaced file groups that still exist. They are those of a table
    with other properties: nothing else hides them once the next write has made them older than the timeline."""
    replaced = table.active.commit_metadata(target).replaced
    if replaced is None or not replaced.num_rows:
        return
    partitions = sorted(pc.unique(replaced["partition"].drop_null()).to_pylist())
    files, _ = list_files(table.storage, partitions)
    left = files["path"].filter(in_groups(files, replaced.filter(pc.is_valid(replaced["file_id"]))))
    if len(left):
        raise TransactionError(
            f"{target} cannot be rolled back: it has overwritten a table with other properties, whose timeline is "
            f"gone while {len(left)} of its files still exist, among them {left[0].as_py()!r}; the next write would "
            "make them part of this table. Delete or overwrite the rows instead"
        )
