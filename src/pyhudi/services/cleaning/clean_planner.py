"""Planning of a clean: reads the timeline and the files of the affected partitions, and applies the policy."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.option import compile_regex
from pyhudi.format.file_names import BASE, CDC, LOG, file_names_of
from pyhudi.read.selection.table_files import TableFiles
from pyhudi.services.cleaning.clean_progress import EMPTY_PLANS, CleanProgress, LastClean
from pyhudi.services.compaction.compaction_planner import pending_compactions
from pyhudi.services.trigger_result import TriggerResult
from pyhudi.storage import join_path
from pyhudi.storage.clock import now_ms
from pyhudi.storage.concurrent_reads import concurrent_map, read_ahead, read_each
from pyhudi.storage.table_paths import PARTITION_METADATA
from pyhudi.table.clean_retention import (
    NEEDED_SCHEMA,
    CleanRetention,
    ProtectedFiles,
    earliest_instant_to_retain,
    expired_files,
)
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.table.view.pending_file_groups import pending_clustering_groups
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State, instant_hours_before
from pyhudi.timeline.plans.clean_plan import ActionInstant, CleanPlan
from pyhudi.timeline.timeline import Timeline

MAX_FILES = 1_000_000
"""Maximum number of files of one plan. Further ones are left to the next clean."""


def pending_cleans(active: ActiveTimeline) -> list[CleanPlan]:
    """Return the plans of cleans that are not completed, oldest first. An incomplete plan has no files.

    Raises:
        CorruptInstantError: A plan cannot be parsed.
    """
    plans = []
    for instant in active.timeline.pending().of_actions(Action.CLEAN):
        requested = active.in_state(instant, State.REQUESTED) or instant
        data = active.read(requested)
        if not data:
            plans.append(CleanPlan(instant=instant.requested, state=instant.state))
            continue
        with active.parsing(requested):
            plans.append(CleanPlan.decode(instant, data))
    return plans


def evaluate_clean_trigger(timeline: Timeline, last: LastClean | None, opts: Options) -> TriggerResult:
    """Return True if a clean is to be planned: after `hoodie.clean.trigger.max.commits` writes since the last one."""
    done = timeline.completed().writes()
    since = "" if last is None else last.last_completed
    count = sum(i.requested > since for i in done)
    min_commits = opts.get_typed(options.CLEAN_TRIGGER_MAX_COMMITS)
    return TriggerResult(count >= min_commits, f"{count} commits since the last clean, due at {min_commits}")


def make_clean_plan(table: TableSnapshot, opts: Options, *, only_if_due: bool = False) -> CleanPlan:
    """Plan a clean, without writing anything. The plan is empty, with a reason, if there is nothing to do.

    Args:
        table: The table with its current timeline.
        opts: Options of cleaning.
        only_if_due: Plan nothing before the trigger is due.

    Raises:
        CorruptInstantError: The timeline cannot be read.
        InvalidOptionError: The partition filter is not a regular expression.
    """
    active, retention = table.active, CleanRetention.from_options(opts)
    last = LastClean.load(active)
    due = evaluate_clean_trigger(active.timeline, last, opts)
    if only_if_due and not due:
        return CleanPlan(policy=retention.policy.value, reason=f"not due: {due.reason}")
    earliest = earliest_instant_to_retain(active.timeline, retention, now_ms(), table.config.timezone)
    if earliest is not None and last is not None:
        earliest = _bounded(active.timeline, earliest, last, opts.get_typed(options.CLEAN_MAX_COMMITS_TO_CLEAN))
    done = active.timeline.writes().completed().last
    savepoints = read_savepoints(active)
    plan = CleanPlan(
        policy=retention.policy.value,
        earliest=None if earliest is None else ActionInstant.from_instant(earliest),
        last_completed="" if done is None else done.requested,
        savepoints=tuple(savepoints) if table.config.is_partitioned else (),
        reason=due.reason,
    )
    if earliest is None and not retention.by_versions:
        return _with_reason(plan, f"the timeline has no writes beyond the last {retention}")
    complete_plan = _with_files(
        table, opts, plan, retention=retention, last=EMPTY_PLANS.progress(table, last), savepoints=savepoints
    )
    if earliest is not None and not len(complete_plan) and not complete_plan.incomplete:
        EMPTY_PLANS.add(table, CleanProgress(earliest.requested, plan.last_completed, plan.savepoints))
    return complete_plan


def with_last_clean_retained(plan: CleanPlan, active: ActiveTimeline, opts: Options) -> CleanPlan:
    """Return a plan of files that the policy did not select, such that the next clean continues where the last one
    ended."""
    last = LastClean.load(active)
    plan = replace(plan, policy=CleanRetention.from_options(opts).policy.value)
    if last is None:
        return replace(plan, incomplete=True)
    retained = active.timeline.find(last.earliest) if last.earliest else None
    action = Action.COMMIT if retained is None else retained.action
    return replace(
        plan,
        earliest=ActionInstant(last.earliest, action, State.COMPLETED.value) if last.earliest else None,
        last_completed=last.last_completed,
        savepoints=last.savepoints,
        incomplete=last.incomplete,
    )


def read_savepoints(active: ActiveTimeline) -> dict[str, pa.Array]:
    """Return the paths of the files of each savepoint, by its instant.

    Raises:
        CorruptInstantError: A savepoint cannot be parsed.
    """
    files = {}
    savepoints = active.timeline.completed().of_actions(Action.SAVEPOINT).instants
    for instant, record in read_each(active.completed_record, savepoints):
        parts = record["partitionMetadata"].items()
        paths = [join_path(partition, name) for partition, part in parts for name in part["savepointDataFile"]]
        files[instant.requested] = pa.array(paths, pa.string())
    return files


def needed_slices(active: ActiveTimeline) -> pa.Table:
    """Return the slices of pending compactions, log compactions and clusterings (`NEEDED_SCHEMA`).

    Raises:
        CorruptInstantError: A plan cannot be parsed.
    """
    plans = pending_compactions(active, Action.COMPACTION) + pending_compactions(active, Action.LOG_COMPACTION)
    parts = [plan.operations.select(NEEDED_SCHEMA.names).cast(NEEDED_SCHEMA) for plan in plans]
    clustered = pending_clustering_groups(active)
    everything = [clustered["partition"], clustered["file_id"], pa.array([""] * clustered.num_rows, pa.string())]
    return pa.concat_tables([*parts, pa.Table.from_arrays(everything, schema=NEEDED_SCHEMA)])


def _with_files(
    table: TableSnapshot,
    opts: Options,
    plan: CleanPlan,
    *,
    retention: CleanRetention,
    last: CleanProgress | None,
    savepoints: dict[str, pa.Array],
) -> CleanPlan:
    active = table.active
    files = TableFiles(table, opts, (BASE, LOG, CDC))
    partitions = None
    if not retention.by_versions and last is not None and opts.get_typed(options.CLEAN_INCREMENTAL):
        partitions = changed_partitions(active, last, plan, is_partitioned=table.config.is_partitioned)
    before = partitions
    partitions = _filtered(table, files, partitions, opts)
    plan = replace(plan, incomplete=partitions != before)
    if partitions is not None and not partitions:
        return _with_reason(plan, "no partition has changed since the last clean")
    view = _view_with_change_data(table, files, partitions)
    expired = expired_files(
        view.all_slices(),
        view.replaced_slices(None if retention.by_versions else plan.earliest_instant),
        retention,
        plan.earliest_instant,
        ProtectedFiles(
            needed_slices(active),
            pa.concat_arrays([pa.array([], pa.string()), *savepoints.values()]),
            active.timeline.pending().of_actions(Action.COMPACTION).requested_times,
        ),
    )
    if not expired.num_rows:
        return _with_reason(plan, f"all files are needed for the last {retention}")
    if expired.num_rows > MAX_FILES:
        left = f"{expired.num_rows - MAX_FILES:,} files are left to the next clean"
        return replace(plan, files=expired.slice(0, MAX_FILES), incomplete=True, reason=f"{plan.reason}; {left}")
    return replace(plan, files=expired, partitions=_emptied(table, view.files, expired))


def _view_with_change_data(table: TableSnapshot, files: TableFiles, partitions: list[str] | None) -> FileSystemView:
    """Return the view of some partitions (None: all) in which change data files count as log files of their slices,
    with which they are deleted."""
    view = FileSystemView.load(table, partitions=partitions, lister=files.list)
    listed = view.files
    kind = pc.if_else(pc.equal(listed["kind"], CDC), LOG, listed["kind"])
    listed = listed.set_column(listed.column_names.index("kind"), "kind", kind)
    if partitions is not None:
        listed = listed.filter(pc.is_in(listed["partition"], value_set=pa.array(partitions, pa.string())))
    return view.with_files(listed)


def changed_partitions(
    active: ActiveTimeline, last: CleanProgress, plan: CleanPlan, *, is_partitioned: bool
) -> list[str] | None:
    """Return the partitions in which a clean may find more files than the last one; None: any.

    They are those of the writes that the last clean retained and this one does not, and of savepoints that were deleted
    since.
    """
    start = active.timeline.start
    if last.incomplete or not last.earliest or start is None or last.earliest < start:
        return None
    writes = active.timeline.completed().writes()
    affected = [i for i in writes if last.earliest <= i.requested < plan.earliest_instant]
    if is_partitioned or last.savepoints:
        deleted_savepoints = set(last.savepoints) - set(plan.savepoints)
        savepoint_writes = [i for i in writes if i.requested in deleted_savepoints]
        if len(savepoint_writes) < len(deleted_savepoints):
            return None
        affected += savepoint_writes
    paths: set[str] = set()
    for metadata in read_ahead(active.commit_metadata, affected):
        paths.update(pc.unique(metadata.stats["partitionPath"]).to_pylist())
        if metadata.replaced is not None:
            paths.update(pc.unique(metadata.replaced["partition"]).to_pylist())
    return sorted(paths)


def _bounded(timeline: Timeline, earliest: Instant, last: LastClean, max_commits: int) -> Instant:
    """Return the earliest instant to retain, limited to a number of commits after that of the last clean."""
    between = [i for i in timeline.completed().writes() if last.earliest < i.requested <= earliest.requested]
    return between[max_commits - 1] if last.earliest and len(between) > max_commits else earliest


def _filtered(table: TableSnapshot, files: TableFiles, partitions: list[str] | None, opts: Options) -> list[str] | None:
    """Return those of the partitions that pass the filters; None: all partitions."""
    named = opts.get_typed(options.CLEAN_PARTITIONS)
    pattern = opts.get_typed(options.CLEAN_PARTITION_REGEX)
    if named:
        partitions = [p for p in named if partitions is None or p in partitions]
    if pattern:
        expression = compile_regex(options.CLEAN_PARTITION_REGEX, pattern)
        candidates = partitions if partitions is not None else files.partitions()
        if candidates is None:
            candidates = files.list(table.storage, None)[1]
        partitions = [p for p in candidates if expression.fullmatch(p)]
    return partitions


def _emptied(table: TableSnapshot, files: pa.Table, expired: pa.Table) -> tuple[str, ...]:
    """Return the partitions of which a clean deletes all files. Files that were not listed are looked up in storage."""
    num_files = files.group_by("partition").aggregate([("path", "count")])
    num_expired = expired.group_by("partition").aggregate([("name", "count")])
    counts = num_files.join(num_expired, keys="partition", join_type="inner")
    whole = counts.filter(pc.equal(counts["path_count"], counts["name_count"]))["partition"].to_pylist()
    candidates = sorted(filter(None, whole))
    expired_names = CleanPlan(expired).names_by_partition()

    def has_no_other(partition: str) -> bool:
        names = file_names_of(table.storage.list(partition)["path"]).to_pylist()
        other = set(names).difference(expired_names[partition])
        has_other = any(not name.startswith(PARTITION_METADATA) for name in other)
        return not has_other and not table.storage.list_dirs(partition)

    return tuple(compress(candidates, concurrent_map(has_no_other, candidates)))


def empty_clean_due(table: TableSnapshot, plan: CleanPlan, opts: Options) -> bool:
    """Return True if a clean without files should be added to the timeline, by the time since the last one."""
    hours = opts.get_typed(options.CLEAN_EMPTY_INTERVAL_HOURS)
    if hours < 0 or plan.earliest is None:
        return False
    last = LastClean.load(table.active)
    if last is None:
        return True
    since = instant_hours_before(now_ms(), hours, table.config.timezone)
    return last.instant <= since and plan.earliest_instant > last.earliest


def _with_reason(plan: CleanPlan, reason: str) -> CleanPlan:
    """Return the plan with the reason why it has no files, before that why it was made."""
    return replace(plan, reason=f"{reason}; {plan.reason}" if plan.reason else reason)
