"""Planner of writes to existing and new file groups: rows are keyed, merged, tagged and counted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pyhudi.config import options
from pyhudi.config.enums import DuplicatePolicy, Operation
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.keys.deduplication import dedupe_in_tasks, with_batch_positions
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.lookup.key_constraint import CheckedBatch, KeyConstraintError
from pyhudi.spark.spark_errors import is_refused_value
from pyhudi.spark.write.plans.file_groups.delete_ordering import with_stored_ordering
from pyhudi.spark.write.plans.file_groups.file_group_plan import FileGroupPlan
from pyhudi.spark.write.plans.file_groups.row_tagging import record_index_of
from pyhudi.spark.write.plans.file_groups.table_state import TableState
from pyhudi.spark.write.plans.file_groups.tagged_batch import BatchTagger
from pyhudi.spark.write.plans.in_task_tagging.in_task_tagging_plan import (
    InTaskTaggingPlan,
    supports_in_task_tagging,
    write_cores,
)
from pyhudi.spark.write.plans.in_task_tagging.partition_work import (
    UNCOUNTED_ROWS,
    base_files,
    count_rows_by_partition,
    is_cheaper,
    only_partition,
    partition_work,
)
from pyhudi.spark.write.plans.row_preparation import refuse_stored_keys, with_delete_marks
from pyhudi.spark.write.plans.write_plan import without_key_indexes
from pyhudi.spark.write.row_change_locations import keyed_changes
from pyhudi.spark.write.stored_keys import with_stored_keys
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.write.row_action import ROW_ACTION
from pyhudi.write.settings.log_settings import appended_groups
from pyhudi.write.tasks.in_task_tagging import InTaskTagging


def plan_file_groups(
    job: WriteJob, active: ActiveTimeline | None, metadata_partitions: Collection[str], instant: str
) -> FileGroupPlan | InTaskTaggingPlan:
    """Key the rows of a job, and merge, tag and count them, unless the write tasks do so (`in_task_tagging_plan`),
    which requires that no partition of the metadata table needs the individual keys. Runs Spark jobs; rows stay cached
    until the plan is released.

    ``active`` is the timeline on which the plan is based, with its file slices and pending table services (None: there
    is no table yet); ``instant`` is needed for generated keys.

    Raises:
        RecordKeyError: Keys are missing, or exist already and duplicates are not allowed.
        NonRetryableConflictError: A file group to be changed has a pending clustering.
        UnsupportedTableError: A file group of a copy-on-write table has log files.
        KeyConstraintError: The rows violate the key constraint of the job.
    """
    table = TableState.load(job, active)
    cached = CachedFrames()
    planner = _FileGroupPlanner(table, cached, metadata_partitions)
    try:
        rows = _keyed(job, instant)
        checked: CheckedBatch | None = None
        if job.changes is None:
            if without_key_indexes(metadata_partitions) and supports_in_task_tagging(
                job, table.slices, table.logged, table.clustering
            ):
                rows = with_batch_positions(rows) if job.combines else rows
                return planner.plan_in_tasks_if_cheaper(rows)
            rows, checked = _checked(job, rows, cached)
        return planner.plan_by_counts(rows, checked)
    except BaseException as error:
        cached.release()
        if ROW_ACTION in job.df.columns and is_refused_value(error):
            message = "Spark fails on a row of the batch, perhaps in a clause that would not apply to it"
            raise KeyConstraintError(message) from error
        raise


@dataclass(frozen=True, slots=True)
class _FileGroupPlanner:
    """Planner of keyed rows.

    Attributes:
        table: State of the table on which the plan is based.
        cached: Receives the rows that stay cached until the plan is released.
        metadata_partitions: Partitions of the metadata table that the write updates.
    """

    table: TableState
    cached: CachedFrames
    metadata_partitions: Collection[str]

    def plan_by_counts(self, rows: DataFrame, checked: CheckedBatch | None = None) -> FileGroupPlan:
        """Tag keyed rows, and count them by file group. ``checked``: the rows, if they were checked.

        Raises:
            KeyConstraintError: There are conditional rows, and the lookup may find records that are deleted.
        """
        table, job = self.table, self.table.job
        records = record_index_of(job)
        tagger = BatchTagger(table, self.cached, records, self.metadata_partitions)
        if job.changes is not None and job.changes.located:
            batch = tagger.by_location(rows, job.changes)
        else:
            batch = tagger.by_key(rows, checked)
        _check_duplicates(job, batch.counts)
        workload = table.workload(batch.counts, is_counted=batch.is_counted)
        logs = table.log_slices(appended_groups(workload))
        return FileGroupPlan(job, batch, workload, table.slices, logs, table.snapshot, self.cached, records)

    def plan_in_tasks_if_cheaper(self, rows: DataFrame) -> FileGroupPlan | InTaskTaggingPlan:
        """Have rows tagged in tasks, unless this takes longer. They are counted first, except for micro-batches that
        one task writes."""
        table, job, cached = self.table, self.table.job, self.cached
        worth_it = partial(
            is_cheaper,
            table_type=job.config.table_type,
            cores=write_cores(job, rows),
            max_rows=job.opts.get_typed(options.INDEX_TASK_ROWS),
            bloom=job.opts.get_typed(options.INDEX_TYPE).is_bloom,
        )

        def plan_counted(rows: DataFrame) -> FileGroupPlan | InTaskTaggingPlan:
            rows, checked = _checked(job, rows, cached)
            row_counts = count_rows_by_partition(rows) if checked is None else checked.partitions
            partitions = partition_work(row_counts, table.slices)
            bases = base_files(table.slices, partitions)
            depends_on_records = checked is not None and checked.conditional and table.logged.deletes
            if depends_on_records or not worth_it(partitions, bases):
                return self.plan_by_counts(rows, checked)
            return self._plan_in_tasks(rows, partitions, bases, checked)

        if job.cached and not job.spec.partition_fields and job.key_constraint is None:
            only = only_partition(table.slices)
            bases = base_files(table.slices, only)
            if worth_it(only, bases):
                plan = self._plan_in_tasks(rows, only, bases, max_rows=UNCOUNTED_ROWS)
                if plan.takes_one_task:
                    return replace(plan, plan_by_counts=lambda: plan_counted(rows))
        return plan_counted(cached.add(rows))

    def _plan_in_tasks(
        self,
        rows: DataFrame,
        partitions: pa.Table,
        bases: pa.Table,
        checked: CheckedBatch | None = None,
        *,
        max_rows: int | None = None,
    ) -> InTaskTaggingPlan:
        """Return a plan whose tasks look keys up themselves, in the base files of the partitions."""
        table, job = self.table, self.table.job
        deletes = job.operation is Operation.DELETE
        dedupes = dedupe_in_tasks(job.merging, hard_deletes=deletes) if job.combines else None
        conditional = checked is not None and checked.conditional
        lookup = InTaskTagging(bases, table.placement, dedupes, max_rows, conditional, table.logged.deletes)
        logs = table.log_slices(bases)
        return InTaskTaggingPlan(
            job, rows, partitions, lookup, table.slices, logs, table.snapshot, self.cached, checked=checked
        )


def _keyed(job: WriteJob, instant: str) -> DataFrame:
    """Return the rows with keys and delete marks."""
    if job.changes is not None:
        return keyed_changes(job, instant)
    rows = with_stored_keys(job, instant) if job.keys.stored else with_keys(job.df, job.spec, instant)
    return with_delete_marks(job, rows)


def _checked(job: WriteJob, rows: DataFrame, cached: CachedFrames) -> tuple[DataFrame, CheckedBatch | None]:
    """Check keyed rows, if the job has a constraint on their keys. Return them, with the ordering values that the job
    reads, and the result of the check. Runs a Spark job.

    Raises:
        KeyConstraintError: The rows violate the constraint.
    """
    if job.key_constraint is None:
        return rows, None
    rows = cached.add(rows)
    checked = job.key_constraint.check(rows)
    return with_stored_ordering(job, rows, checked, cached), checked


def _check_duplicates(job: WriteJob, counts: pa.Table) -> None:
    if job.duplicate_policy is DuplicatePolicy.FAIL:
        refuse_stored_keys(pc.sum(counts.filter(pc.is_valid(counts["file_id"]))["rows"]).as_py() or 0)
