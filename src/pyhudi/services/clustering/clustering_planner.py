"""Planning and scheduling of clusterings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.index.consistent_hashing import VisibleGroups, load_metadata, partitions_with_buckets
from pyhudi.read.selection.table_files import load_view
from pyhudi.services.clustering.bucket_resizing import is_resizing
from pyhudi.services.clustering.clustering_job import ClusteringJob, check_clusterable, job_without_groups
from pyhudi.services.clustering.plan_strategies import PlanStrategy, clustering_inputs
from pyhudi.services.service_plans import LockedTimeline, lock_timeline, read_plans
from pyhudi.services.service_runner import ServiceRunner
from pyhudi.services.trigger_result import TriggerResult
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.table.view.pending_file_groups import is_clustering, pending_clustering_groups, planned_groups
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.clustering_plan import INPUT_SCHEMA, ClusteringPlan
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.rollback.late_data_files import delete_slices_of_removed_plans
from pyhudi.write.settings.write_settings import max_file_size

_PLANNED_AS = (Action.CLUSTERING, Action.REPLACE_COMMIT)


def pending_clusterings(active: ActiveTimeline) -> list[ClusteringPlan]:
    """Return the plans of pending clusterings, oldest first. Version 6 has no separate action for them.

    Raises:
        CorruptInstantError: A plan cannot be parsed.
    """
    planned = active.timeline.pending().of_actions(*_PLANNED_AS)
    return read_plans(active, (i for i in planned if is_clustering(active, i)), ClusteringPlan.decode)


def plan_clustering(client: TableMetaClient, opts: Options, *, only_if_due: bool = False) -> ClusteringPlan:
    """Return the plan of a clustering now, without writing anything. It is empty if there is nothing to do, with
    ``only_if_due`` also if it is not due.

    Raises:
        UnsupportedTableError: The table is not supported.
        ConfigError: Options are invalid, or a sort column does not exist.
    """
    return _planner(client, opts, only_if_due=only_if_due)(TableSnapshot.load(client))


def schedule_clustering(
    client: TableMetaClient,
    opts: Options,
    *,
    only_if_due: bool = False,
    runner: ServiceRunner[ClusteringJob] | None = None,
) -> ClusteringPlan:
    """Make a plan, as `plan_clustering`, and add it to the timeline unless it is empty, under the lock of the table.

    Another process may execute it. If a ``runner`` of this one will, tables that it does not support are refused before
    there is a plan.

    Raises:
        UnsupportedTableError, ConfigError: As `plan_clustering`; with a ``runner`` also as `ClusteringJob.from_plan`
            and `ServiceRunner.check`.
        SetupError: The ``runner`` is not Spark, which is required.
        LockError: The lock of the table could not be acquired.
        TransactionError: A restore is pending, or Apache Hudi has changed the version of the table halfway.
    """
    client = client.reload()
    client.config.check_writable()
    planner = _planner(client, opts, only_if_due=only_if_due)
    with lock_timeline(client, opts) as locked:
        plan = planner(locked.table)
        if not len(plan):
            return plan
        if runner is not None:
            runner.check(locked.table.config, job_without_groups(locked.table, plan, opts))
        return _requested(client, locked, plan)


def reschedule_clustering(client: TableMetaClient, plan: ClusteringPlan, opts: Options) -> ClusteringPlan | None:
    """Replace a plan that has not been started by one of the current slices of its file groups, under a new instant and
    the lock of the table.

    Returns:
        The new plan; None if the plan is no longer to be started, or its file groups have been replaced.

    Raises:
        LockError: The lock of the table could not be acquired.
        TransactionError: A restore is pending.
    """
    assert plan.instant is not None
    client = client.reload()
    with lock_timeline(client, opts) as locked:
        table = locked.table
        pending = table.active.timeline.find(plan.instant, plan.action)
        if pending is None or pending.state is not State.REQUESTED:
            return None
        slices = FileSystemView.load(table, partitions=plan.partitions).latest_slices()
        renewed = _renewed(plan, slices, max_file_size(opts, client.config.base_file_format))
        # Removed first, because two plans must not have the same file groups. If the process is killed in between, the
        # file groups are free, and a later plan includes them.
        locked.remove(plan.instant, plan.action)
        if is_resizing(plan.strategy):
            delete_slices_of_removed_plans(table.active, {plan.instant})
        return _requested(client, locked, renewed) if len(renewed) else None


def _renewed(plan: ClusteringPlan, slices: pa.Table, new_file_size: int) -> ClusteringPlan:
    """Return a plan for these slices of its file groups; groups without any are omitted."""
    parts = [INPUT_SCHEMA.empty_table()]
    kept: list[int] = []
    for number in range(len(plan)):
        chosen = slices.filter(in_groups(slices, plan.inputs.filter(pc.equal(plan.inputs["group"], number))))
        if chosen.num_rows:
            parts.append(clustering_inputs(chosen.combine_chunks(), len(kept), new_file_size))
            kept.append(number)
    outputs = tuple(plan.outputs[number] for number in kept)
    extra = tuple(plan.extra[number] for number in kept) if plan.extra else ()
    return replace(plan, inputs=pa.concat_tables(parts), outputs=outputs, extra=extra)


def _requested(client: TableMetaClient, locked: LockedTimeline, plan: ClusteringPlan) -> ClusteringPlan:
    """Add a plan to the timeline."""
    made = locked.request(Action.CLUSTERING, plan.encode(client.config.version, client.storage.uri))
    return plan.scheduled(made.action, made.requested)


def commits_since_clustering(timeline: Timeline) -> int:
    """Return the number of completed commits since the last clustering or other replacement of file groups, including
    pending ones."""
    last = max((i.requested for i in timeline.of_actions(*_PLANNED_AS)), default="")
    return sum(i.requested > last for i in timeline.writes().completed())


def evaluate_clustering_trigger(timeline: Timeline, opts: Options) -> TriggerResult:
    """Return True if a clustering is to be planned: inline after `hoodie.clustering.inline.max.commits` commits,
    asynchronously after `hoodie.clustering.async.max.commits`."""
    inline = opts.get_typed(options.CLUSTERING_INLINE)
    option = options.CLUSTERING_INLINE_MAX_COMMITS if inline else options.CLUSTERING_ASYNC_MAX_COMMITS
    min_commits, count = opts.get_typed(option), commits_since_clustering(timeline)
    return TriggerResult(count >= min_commits, f"{count} commits since the last clustering, due at {min_commits}")


def _planner(client: TableMetaClient, opts: Options, *, only_if_due: bool) -> Callable[[TableSnapshot], ClusteringPlan]:
    """Return a function that makes a plan of a snapshot; options are validated before the lock is acquired."""
    strategy = PlanStrategy.from_options(opts, max_file_size(opts, client.config.base_file_format))
    columns = opts.get_typed(options.CLUSTERING_SORT_COLUMNS)

    def plan(table: TableSnapshot) -> ClusteringPlan:
        active = table.active
        due = evaluate_clustering_trigger(active.timeline, opts)
        if only_if_due and not due:
            return ClusteringPlan(reason=f"not due: {due.reason}")
        refuse_moved_instants(active)
        slices = load_view(table, opts).latest_slices()
        if not slices.num_rows:
            return ClusteringPlan(reason="the table has no files")
        spelled = check_clusterable(table, opts, strategy.execution, columns)
        if strategy.resizing is None:
            planned = strategy.plan(_unplanned_slices(active, slices))
        else:
            busy = [i for i in active.timeline.pending().writes() if i.action not in _PLANNED_AS]
            if busy:  # It may have created buckets that are not visible yet.
                return ClusteringPlan(reason=f"buckets are not split or merged during a write: {busy[0]}")
            groups = VisibleGroups(active.timeline.pending().requested_times, slices["file_id"])
            completed = active.timeline.completed().requested_times
            metadata = load_metadata(table.storage, partitions_with_buckets(table.storage), completed, groups=groups)
            planned = strategy.resizing_plan(_slices_without_pending_clustering(active, slices), metadata)
        reason = f"{'due' if due else 'requested; not due yet'}: {due.reason}"
        if not planned:
            reason = f"there are no file groups to cluster; {reason}"
        return replace(planned, sort_columns=spelled, reason=reason)

    return plan


def _slices_without_pending_clustering(active: ActiveTimeline, slices: pa.Table) -> pa.Table:
    """Return the slices that are in no other plan, in partitions without pending clustering, because buckets are split
    and merged one plan at a time."""
    partitions = pc.unique(pending_clustering_groups(active)["partition"])
    return _unplanned_slices(active, slices.filter(pc.invert(pc.is_in(slices["partition"], partitions))))


def _unplanned_slices(active: ActiveTimeline, slices: pa.Table) -> pa.Table:
    """Return the slices that are in no other plan."""
    compacted = planned_groups(active, Action.COMPACTION, Action.LOG_COMPACTION)
    return slices.filter(pc.invert(in_groups(slices, compacted)))
