"""The save mode overwrite: a new table replaces an existing one.

Apache Hudi deletes the old table and then writes the new one, so a failed write leaves no table. Here the new
files are written first, next to the old ones and invisible, under a replacecommit on the old table's timeline; then the
tables are exchanged (`pyhudi.transaction.table_overwrite.table_replacement`). Concurrent readers of the old table are
not affected: its files remain.
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config.enums import BucketIndexEngine, Operation
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.keys.key_errors import key_errors
from pyhudi.spark.write.plans.buckets.bucket_plan import store_bucket_counts
from pyhudi.spark.write.plans.buckets.consistent_bucket_routing import refuse_replacing
from pyhudi.spark.write.plans.write_plan import WritePlan
from pyhudi.spark.write.write_commit import validate_before_commit
from pyhudi.spark.write.write_execution import batch_limits, plan_ahead, plan_write
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.schema_history import SchemaHistory
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Action
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.table_overwrite.overwrite_compatibility import RetainedParts, retained_parts
from pyhudi.transaction.table_overwrite.table_replacement import replace_table
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_result import WriteResult, result_of_commit


def overwrite_table(old: TableMetaClient, job: WriteJob) -> WriteResult:
    """Write the rows of a job as a new table in place of the table ``old``. The job has no client, so it treats the
    table as new.

    If writing the rows fails, the old table is unchanged.

    Raises:
        UnsupportedTableError: The new table has consistent hashing.
        ConflictError: A concurrent writer has committed a conflicting change.
        ValidationError: A pre-commit validator refuses the write.
    """
    if job.bucketing is not None and job.bucketing.engine is BucketIndexEngine.CONSISTENT_HASHING:
        refuse_replacing("the save mode overwrite")
    table = TableSnapshot.load(old)
    before = resolve_table_schema(table)
    columns = pa.schema([]) if before is None else before.schema
    keeps_names = before is None or not before.has_history or _keeps_names(table)
    retained = retained_parts(old.config, columns, job.config, job.schema, columns_keep_names=keeps_names)
    plan: WritePlan | None = None
    try:
        plan = plan_ahead(job, None)
        stats_reader = SparkFileStatsReader(job.df.sparkSession)
        operation = type_name(job.operation)
        with (
            batch_limits(job, plan),
            Transaction.begin(old, Action.REPLACE_COMMIT, operation, job.opts, stats_reader) as tx,
            key_errors(job.df, job.spec),
        ):
            plan = plan or plan_write(job, None, (), tx.instant)
            tx.to_inflight(None if job.operation is Operation.BULK_INSERT else CommitMetadata(operation))
            stats = plan.write(tx.instant)
            return _replace(job, tx, stats, retained)
    finally:
        if plan is not None:
            plan.release()


def _keeps_names(table: TableSnapshot) -> bool:
    """Return True if no column of a table with a history of schemas was ever renamed, or replaced by another one."""
    history = SchemaHistory.load(table.active)
    return history is not None and history.keeps_names


def _replace(job: WriteJob, tx: Transaction, stats: pa.Table, retained: RetainedParts) -> WriteResult:
    outcome, metadata = replace_table(
        tx,
        job.config,
        job.metadata(stats),
        keep_index=lambda: store_bucket_counts(job, tx.instant),
        retained=retained,
        validate=lambda metadata: validate_before_commit(job, tx, metadata),
    )
    if isinstance(outcome, Conflicted):
        raise outcome.error()
    return result_of_commit(job.storage.uri(), outcome, metadata, created_table=True)
