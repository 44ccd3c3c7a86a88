"""insert, upsert, delete, insert_overwrite and insert_overwrite_table: writes that are planned by file group.

Everything that can fail because of the data (keys, tagging, counting) happens before the write is announced on the
timeline, planned on the timeline as it is then. Should another writer commit in between, the plan is made again.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import MergeMode, Operation
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.write_stages import run_partition_upsert, run_upsert
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.keys.deduplication import is_delete
from pyhudi.spark.spark_errors import spark_errors
from pyhudi.spark.write.group_plan import GroupPlan, plan_groups
from pyhudi.spark.write.partition_plan import PartitionUpsertPlan, by_partition, without_key_indexes
from pyhudi.spark.write.row_routing import route
from pyhudi.spark.write.write_job import WriteJob, touched_partitions
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.transaction.plan_basis import PlanBasis
from pyhudi.write.location_columns import DELETE, FILE_ID
from pyhudi.write.planning.workload_profile import profile_stats
from pyhudi.write.rows.keyed_rows import KeyedWrite
from pyhudi.write.write_operations import replaced_groups, type_name
from pyhudi.write.write_result import WriteResult


def write_groups(job: WriteJob) -> WriteResult:
    """Write a job's rows to their file groups."""
    plan: GroupPlan | PartitionUpsertPlan | None = None
    try:
        if not job.spec.auto_keys:  # generated keys hold the instant, which is not known yet
            with spark_errors(job.df, job.spec):
                plan = plan_groups(job, None if job.client is None else job.client.active_timeline())
        with job.transaction() as tx:
            seek = without_key_indexes(tx.config.metadata_partitions)
            outdated = plan is None or PlanBasis.of(tx.timeline) != plan.seen
            if plan is None or outdated or (isinstance(plan, PartitionUpsertPlan) and not seek):
                if plan is not None:
                    plan.cached.release()
                plan = plan_groups(job, tx.active if job.client is not None else None, tx.instant, seek=seek)
            tx.to_inflight(_marked(job, plan))
            stats = write_planned(job, plan, tx.instant)
            replaced = _replaced(job, plan, stats)
            records = None if isinstance(plan, PartitionUpsertPlan) else plan.records
            changes = KeyChanges(
                stats,
                plan.slices,
                replaced,
                lambda: _deleted(job, plan),
                looked_up=records is not None,
                doubts=records.doubts if records is not None else (),
            )
            index = job.index_delta(tx, changes)
            return job.commit(tx, job.metadata(stats, replaced), index)
    finally:
        if plan is not None:
            plan.cached.release()


def write_planned(job: WriteJob, plan: GroupPlan | PartitionUpsertPlan, instant: str) -> pa.Table:
    """Write the rows of a plan; returns the write stats."""
    context = job.context(instant)
    if context.logs is not None:
        context = replace(context, logs=replace(context.logs, slices=plan.logs))
    if isinstance(plan, PartitionUpsertPlan):
        return run_partition_upsert(by_partition(plan, _max_tasks(job)), context, plan.sought)
    if plan.by_key:
        context = replace(context, keyed=KeyedWrite())  # the index tells file groups, not rows in them
    return run_upsert(route(plan.rows, plan.workload, _max_tasks(job)), context)


def _marked(job: WriteJob, plan: GroupPlan | PartitionUpsertPlan) -> CommitMetadata:
    """Content of the inflight file: the rows of each file group, if they are known by then."""
    name = type_name(job.operation)
    return (
        CommitMetadata(name)
        if isinstance(plan, PartitionUpsertPlan)
        else CommitMetadata(name, profile_stats(plan.workload))
    )


def _deleted(job: WriteJob, plan: GroupPlan | PartitionUpsertPlan) -> DataFrame | None:
    """The keys of records that are certainly gone from their partitions."""
    if isinstance(plan, PartitionUpsertPlan) or DELETE not in plan.rows.columns:
        return None  # nobody wants to know, or none is
    gone = F.col(DELETE) & F.col(FILE_ID).isNotNull()
    if job.changes is not None:
        return plan.rows.where(gone).select(RECORD_KEY, PARTITION_PATH)  # with ordering values of the stored records
    if job.operation is not Operation.DELETE and job.merging.mode is not MergeMode.COMMIT_TIME_ORDERING:
        if job.merging.mode is not MergeMode.EVENT_TIME_ORDERING or not job.global_keys:
            return None
        # where ordering values count, the stored record may win against a delete; but a row that has become one has
        # won already: its record moves to another partition
        gone &= ~is_delete(plan.rows.schema, job.merging)
    return plan.rows.where(gone).select(RECORD_KEY, PARTITION_PATH)


def _max_tasks(job: WriteJob) -> int:
    """The most tasks that write file groups at a time."""
    option = {
        Operation.UPSERT: options.UPSERT_PARALLELISM,
        Operation.DELETE: options.DELETE_PARALLELISM,
    }.get(job.operation, options.INSERT_PARALLELISM)
    return job.opts.get_typed(option) or int(job.df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)


def _replaced(job: WriteJob, plan: GroupPlan | PartitionUpsertPlan, stats: pa.Table) -> pa.Table | None:
    """The file groups that an overwriting operation takes out of view."""
    if job.operation is Operation.INSERT_OVERWRITE_TABLE:
        return replaced_groups(plan.slices, None)
    if job.operation is Operation.INSERT_OVERWRITE:
        named = job.opts.get_typed(options.STATIC_OVERWRITE_PARTITIONS)
        return replaced_groups(plan.slices, named or touched_partitions(stats))
    return None
