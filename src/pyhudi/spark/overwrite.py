"""The save mode overwrite: a new table in place of an old one.

The original deletes the old table and then writes the new one, so that a write that fails leaves nothing. Here the new
files are written first, beside the old ones and invisible, under a replacecommit on the old table's timeline; then the
tables are exchanged (`pyhudi.transaction.exchange`).
"""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config.values import BucketEngine, Operation
from pyhudi.spark.consistent import refuse_replacing
from pyhudi.spark.failures import spark_errors
from pyhudi.spark.filefacts import SparkFacts
from pyhudi.spark.group_plan import plan_groups
from pyhudi.spark.write_buckets import keep_counts, write_bucketed
from pyhudi.spark.write_bulk import write_new_files
from pyhudi.spark.write_groups import write_planned
from pyhudi.spark.write_job import WriteJob
from pyhudi.table.fsview import SLICE_SCHEMA
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.timeline.instants import Action
from pyhudi.timeline.metadata import WRITE_STAT_SCHEMA, CommitMetadata
from pyhudi.transaction.exchange import exchange_table
from pyhudi.transaction.outcome import Conflicted
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.operations import type_name
from pyhudi.write.result import WriteResult


def overwrite_table(old: TableMetaClient, job: WriteJob) -> WriteResult:
    """Write a job's rows as a new table in place of the table ``old``. The job has no client: to it, there is no table.

    A failure while the rows are written leaves the old table as it was.

    Raises:
        UnsupportedTableError: the new table is to have consistent hashing.
        ConflictError: another writer was faster.
    """
    if job.bucketing is not None and job.bucketing.engine is BucketEngine.CONSISTENT_HASHING:
        refuse_replacing("the save mode overwrite")
    plan = None
    try:
        by_groups = job.operation is not Operation.BULK_INSERT and job.bucketing is None
        if by_groups and not job.spec.auto_keys:
            with spark_errors(job):
                plan = plan_groups(job, None)
        facts = SparkFacts(job.df.sparkSession)
        begun = Transaction.begin(old, Action.REPLACE_COMMIT, type_name(job.operation), job.opts, facts)
        with begun as tx, spark_errors(job):
            if job.bucketing is not None:
                tx.to_inflight(CommitMetadata(type_name(job.operation)))
                stats = write_bucketed(job, tx.instant, SLICE_SCHEMA.empty_table(), None)
            elif job.operation is Operation.BULK_INSERT:
                tx.to_inflight(None)
                stats = write_new_files(job, tx.instant)
            else:
                plan = plan or plan_groups(job, None, tx.instant)
                tx.to_inflight(CommitMetadata(type_name(job.operation)))
                stats = write_planned(job, plan, tx.instant)
            return _exchange(job, tx, stats)
    finally:
        if plan is not None:
            plan.cached.release()


def _exchange(job: WriteJob, tx: Transaction, stats: pa.Table) -> WriteResult:
    outcome, metadata = exchange_table(tx, job.config, job.metadata(stats), lambda: keep_counts(job))
    if isinstance(outcome, Conflicted):
        raise outcome.error()
    assert metadata.replaced is not None
    done = outcome.instant
    written = stats.select(WRITE_STAT_SCHEMA.names)
    return WriteResult(
        job.storage.uri(), type_name(job.operation), done.requested, done.completion, True, written, metadata.replaced
    )
