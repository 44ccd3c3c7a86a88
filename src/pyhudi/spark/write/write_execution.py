"""Execution of writes: plans the changes of a job, adds the instant to the timeline, writes, and publishes the commit.

What can fail because of the data (keys, tagging, counting) happens before the instant is added to the timeline, and is
planned on the timeline at that time. If another writer commits in between, the plan is made again. Invalid keys of a
micro-batch whose rows are not counted (ADR 14) are found while writing, and roll the write back.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pyarrow as pa

from pyhudi.config import options
from pyhudi.config.enums import Operation
from pyhudi.errors import AmbiguousLocationError
from pyhudi.spark.execution.arrow_batch_limits import batches_limited_by_rows
from pyhudi.spark.indexes.record_index.record_index_update import index_delta
from pyhudi.spark.keys.key_errors import key_errors
from pyhudi.spark.write.plans.buckets.bucket_plan import plan_buckets, store_bucket_counts
from pyhudi.spark.write.plans.bulk_insert.bulk_insert_plan import BulkInsertPlan
from pyhudi.spark.write.plans.file_groups.file_group_planner import plan_file_groups
from pyhudi.spark.write.plans.write_plan import WritePlan
from pyhudi.spark.write.write_commit import begin_write, commit_write
from pyhudi.spark.write.write_job import WriteJob, touched_partitions
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.write.write_operations import groups_to_replace
from pyhudi.write.write_result import WriteResult


def execute_write(job: WriteJob) -> WriteResult:
    """Execute a job: insert, bulk_insert, upsert, delete, insert_overwrite(_table) or bucket_rescale."""
    try:
        return _execute_once(job)
    except AmbiguousLocationError:  # of the write tasks; all of it has been rolled back
        return _execute_once(job.without_in_task_tagging())


def _execute_once(job: WriteJob) -> WriteResult:
    plan: WritePlan | None = None
    try:
        plan = plan_ahead(job, None if job.existing is None else job.existing.active)
        with batch_limits(job, plan), begin_write(job) as tx:
            partitions = tx.config.metadata_partitions
            if plan is None or not plan.is_current(tx.timeline, partitions):
                if plan is not None:
                    plan.release()
                plan = plan_write(job, None if job.client is None else tx.active, partitions, tx.instant)
            tx.to_inflight(plan.inflight_metadata())
            stats = plan.write(tx.instant)
            store_bucket_counts(job, tx.instant)
            replaced = _replaced(job, plan.slices, stats)
            index = index_delta(job.df.sparkSession, tx, tx.opts, plan.key_changes(tx.instant, stats, replaced))
            result = commit_write(job, tx, job.metadata(stats, replaced), index)
            return replace(result, planned_changes=plan.planned_changes)
    finally:
        if plan is not None:
            plan.release()


def batch_limits(job: WriteJob, plan: WritePlan | None) -> AbstractContextManager[None]:
    """Return a context manager with the limits of the batches in which tasks get rows.

    Args:
        job: The job that writes the rows.
        plan: Its plan; None: there is none yet.
    """
    # changed rows and micro-batches are too few for what the choice of a limit takes
    changes_rows = job.dml is not None and job.operation.changes_records
    if changes_rows or job.idempotent is not None:
        return nullcontext()
    return batches_limited_by_rows(job.df, None if plan is None else plan.row_count)


def plan_ahead(job: WriteJob, active: ActiveTimeline | None) -> WritePlan | None:
    """Plan a job before its instant is created, on the timeline with which it was prepared (None if there is no table
    yet); return None if that is not possible, because generated keys contain the instant, or has no benefit.

    What others have committed since is seen when the instant is created, under the lock of the table, and the plan is
    made again then.
    """
    if job.spec.auto_keys or _writes_new_files(job):
        return None
    partitions = () if job.client is None else job.client.config.metadata_partitions
    with key_errors(job.df, job.spec):
        return plan_write(job, active, partitions)


def plan_write(
    job: WriteJob, active: ActiveTimeline | None, metadata_partitions: Collection[str], instant: str = ""
) -> WritePlan:
    """Plan a job. ``active`` is the timeline that the plan is based on (None if there is no table yet),
    ``metadata_partitions`` are those of the table; ``instant`` is required for generated keys."""
    if _writes_new_files(job):
        return BulkInsertPlan(job)
    if job.bucketing is not None:
        return plan_buckets(job, active, metadata_partitions)
    return plan_file_groups(job, active, metadata_partitions, instant)


def _writes_new_files(job: WriteJob) -> bool:
    """Return True if rows go to new file groups regardless of the current locations of their keys."""
    return job.operation is Operation.BULK_INSERT and job.bucketing is None


def _replaced(job: WriteJob, slices: pa.Table, stats: pa.Table) -> pa.Table | None:
    """Return the file groups that an overwriting operation replaces."""
    if job.operation is Operation.INSERT_OVERWRITE_TABLE:
        return groups_to_replace(slices, None)
    if job.operation is Operation.BUCKET_RESCALE:
        return groups_to_replace(slices, job.partitions)
    if job.operation is Operation.INSERT_OVERWRITE:
        named = job.partitions or job.opts.get_typed(options.STATIC_OVERWRITE_PARTITIONS)
        return groups_to_replace(slices, named or touched_partitions(stats))
    return None
