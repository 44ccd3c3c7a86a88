"""Planning and scheduling of compactions and log compactions."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import FailedWritesPolicy, TableType
from pyhudi.errors import UnsupportedTableError
from pyhudi.read.selection.table_files import load_view
from pyhudi.services.compaction.compaction_job import CompactionJob, job_without_slices
from pyhudi.services.compaction.compaction_strategies import Limits, apply_strategies, named_strategies
from pyhudi.services.compaction.compaction_triggers import (
    evaluate_compaction_trigger,
    evaluate_log_compaction_trigger,
    trigger_time,
)
from pyhudi.services.compaction.log_compaction_candidates import log_compaction_candidates
from pyhudi.services.service_plans import lock_timeline, read_plans
from pyhudi.services.service_runner import ServiceRunner
from pyhudi.services.trigger_result import TriggerResult
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.compaction_operations import operations_of
from pyhudi.table.view.pending_file_groups import planned_groups
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, current_instant
from pyhudi.timeline.plans.compaction_plan import CompactionPlan
from pyhudi.transaction.concurrency_mode import failed_writes_policy
from pyhudi.write.settings.write_settings import max_file_size


def pending_compactions(active: ActiveTimeline, action: str) -> list[CompactionPlan]:
    """Return the plans of pending compactions or log compactions, oldest first.

    Raises:
        CorruptInstantError: A plan cannot be parsed.
    """
    return read_plans(active, active.timeline.pending().of_actions(action), CompactionPlan.decode)


def plan_compaction(
    client: TableMetaClient, opts: Options, *, action: str = Action.COMPACTION, only_if_due: bool = False
) -> CompactionPlan:
    """Make a plan without writing it. It is empty if there is nothing to do, with ``only_if_due`` also if it is not
    due.

    Raises:
        UnsupportedTableError: The table is not a merge-on-read table.
        ConfigError: The strategy is unknown, or does not match the partitions of the table.
    """
    check_compactable(client.config)
    planner = _planner(opts, action=action, only_if_due=only_if_due)
    return planner(TableSnapshot.load(client), current_instant(client.config.timezone))


def schedule_compaction(
    client: TableMetaClient,
    opts: Options,
    *,
    action: str = Action.COMPACTION,
    only_if_due: bool = False,
    runner: ServiceRunner[CompactionJob] | None = None,
) -> CompactionPlan:
    """Make a plan, as `plan_compaction`, and add it to the timeline unless it is empty.

    Another process, with other mergers or of another release, may execute it. If a ``runner`` of this one will, jobs
    that it does not support are refused before there is a plan.

    The lock of the table is held: writes completed before the plan's instant are part of the plan, later ones belong to
    the slices that the compaction opens.

    Raises:
        UnsupportedTableError, ConfigError: As `plan_compaction`; with a ``runner`` also as `CompactionJob.from_plan`
            and `ServiceRunner.check`.
        LockError: The lock of the table could not be acquired.
        TransactionError: A restore is pending, or Apache Hudi has changed the version of the table halfway.
    """
    check_compactable(client.config)
    client = client.reload()
    client.config.check_writable()
    planner = _planner(opts, action=action, only_if_due=only_if_due)
    with lock_timeline(client, opts) as locked:
        table = locked.table
        plan = planner(table, trigger_time(table))
        if not len(plan):
            return plan
        if runner is not None:
            runner.check(table.config, job_without_slices(table, opts, action=action))
        made = locked.request(plan.action, plan.encode(client.config.version))
        return plan.scheduled(made.requested)


def check_compactable(config: TableConfig) -> None:
    """Refuse tables without log files."""
    if config.table_type is not TableType.MERGE_ON_READ:
        raise UnsupportedTableError(
            f"the table {config.name!r} has type {config.table_type}, which has no log files to compact; "
            f"compaction requires the type {TableType.MERGE_ON_READ}"
        )


def _planner(opts: Options, *, action: str, only_if_due: bool) -> Callable[[TableSnapshot, str], CompactionPlan]:
    """Return a function that makes a plan of a snapshot; options are validated before the lock is acquired."""
    strategies, limits = named_strategies(opts), Limits.from_options(opts)

    def plan(table: TableSnapshot, now: str) -> CompactionPlan:
        active = table.active
        is_log = action == Action.LOG_COMPACTION
        due = (
            evaluate_log_compaction_trigger(active, opts)
            if is_log
            else evaluate_compaction_trigger(active.timeline, now, opts)
        )
        reason = _plan_reason(due, active, action)
        blocked = _blocked_by(table, opts)
        if blocked is not None:
            return CompactionPlan(action=action, reason=blocked)
        if only_if_due and not due:
            return CompactionPlan(action=action, reason=f"not due: {due.reason}")
        candidates = _candidates(table, opts, action=action)
        if not candidates.num_rows:
            reason = f"there are no log files to merge; {reason}"
        if is_log:
            return CompactionPlan(candidates, action=Action.LOG_COMPACTION, reason=reason)
        chosen = apply_strategies(strategies, candidates, limits)
        missing = chosen.left_out if limits.names_left_out else ()
        return CompactionPlan(chosen.operations, reason=reason, missing=missing)

    return plan


def _plan_reason(due: TriggerResult, active: ActiveTimeline, action: str) -> str:
    """Return the reason for a plan at this time, and the existing plans, which are executed before it."""
    why = f"due: {due.reason}" if due else f"requested; not due yet: {due.reason}"
    planned = active.timeline.pending().of_actions(action).requested_times
    return f"{why}; earlier pending plans: {', '.join(planned)}" if planned else why


def _candidates(table: TableSnapshot, opts: Options, *, action: str) -> pa.Table:
    """Return all slices that can be compacted, as OPERATION_SCHEMA: those that are in no other plan.

    Raises:
        TransactionError: Apache Hudi has changed the version of the table halfway.
    """
    refuse_moved_instants(table.active)
    is_log = action == Action.LOG_COMPACTION
    others = (Action.COMPACTION, Action.LOG_COMPACTION) if is_log else (Action.COMPACTION,)
    operations = operations_of(
        load_view(table, opts).latest_slices(),
        planned_groups(table.active, *others),
        max_file_size(opts, table.config.base_file_format),
    )
    if is_log and operations.num_rows:
        threshold = opts.get_typed(options.LOG_COMPACTION_BLOCKS_THRESHOLD)
        operations = log_compaction_candidates(table, operations, threshold)
    return operations


def _blocked_by(table: TableSnapshot, opts: Options) -> str | None:
    """Return the reason why nothing can be planned. In version 6 log files belong to slices by name, so a running write
    adds to slices that the compaction would close; with concurrent writers, the writers check this themselves."""
    if table.config.version >= 8 or failed_writes_policy(opts) is not FailedWritesPolicy.EAGER:
        return None
    services = (Action.COMPACTION, Action.LOG_COMPACTION)
    first = next((i for i in table.active.timeline.pending().writes() if i.action not in services), None)
    if first is None:
        return None
    version = table.config.version
    return f"{first} is pending, and compactions of a table of version {version} cannot be planned during a write"
