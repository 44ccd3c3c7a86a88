"""Begin and commit of a write, which all kinds of writes share."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.config import options
from pyhudi.errors import HudiError
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.spark.indexes.dependent_indexes import update_dependent_indexes
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.keys.key_errors import key_errors
from pyhudi.spark.write.precommit_validation import StagedTable, validate_write
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.transaction.commit_conditions import CommitConditions
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.table_overwrite.table_removal import remove_empty_table
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.settings.precommit_validators import query_validations
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_result import WriteResult, result_of_commit

_log = logging.getLogger(__name__)


@contextmanager
def begin_write(job: WriteJob) -> Iterator[Transaction]:
    """Begin the write, on a table that is created if necessary. An error inside the context rolls it back; a table
    that was created for this write and has no other is removed."""
    created = job.client is None
    client = job.client or TableMetaClient.create(job.storage, job.config, job.opts)
    try:
        stats_reader = SparkFileStatsReader(job.df.sparkSession)
        begun = Transaction.begin(
            client, job.action, type_name(job.operation), job.opts, stats_reader, instant=job.instant
        )
        with begun as tx, key_errors(job.df, job.spec):
            _check_reads(job, tx)
            yield tx
    except BaseException:
        if created:
            try:
                remove_empty_table(job.storage, job.opts)
            except HudiError as failure:  # The first error is the one to report.
                _log.warning("the empty table at %s was not removed: %s", job.storage.uri(), failure)
        raise


def _check_reads(job: WriteJob, tx: Transaction) -> None:
    """Check, before anything is written, that no other writer has changed what this one read.

    Raises:
        ConflictError: Another writer has.
    """
    if job.reads is None or job.client is None:
        return
    conflict = job.reads.find_conflict(tx.instant, tx.active)  # which was loaded under the lock
    if conflict is not None:
        raise conflict.error()


def validate_before_commit(job: WriteJob, tx: Transaction, metadata: CommitMetadata) -> None:
    """Run the pre-commit validators of the options on the table as it is now, and with this write.

    Raises:
        ValidationError: One refuses the write.
    """
    validations = query_validations(job.opts)
    if validations:
        tx.reconcile_files(metadata)  # the queries would read the rows of retried tasks twice
        before = TableSnapshot(job.storage, tx.config, tx.active.reload())
        new = job.config if job.client is None else None
        staged = StagedTable.from_commit(before, tx.instant, metadata, replaced_by=new)
        validate_write(job.df.sparkSession, staged, validations)


def commit_write(job: WriteJob, tx: Transaction, metadata: CommitMetadata, index: IndexDelta | None) -> WriteResult:
    """Publish the write.

    Raises:
        ConflictError: Another writer committed a conflicting change first.
        ValidationError: A pre-commit validator refuses the write.
    """
    nothing = metadata.stats.num_rows == 0 and not _replaces(metadata)
    if nothing and not job.opts.get_typed(options.ALLOW_EMPTY_COMMIT):
        tx.abort()
        return WriteResult(job.storage.uri(), type_name(job.operation), created_table=job.client is None)
    validate_before_commit(job, tx, metadata)
    if job.client is not None:
        commit = IndexedCommit.from_transaction(job.df.sparkSession, job.client, job.opts, tx, metadata)
        index = update_dependent_indexes(commit, index)
    agree = job.opts.get_typed(options.SCHEMA_CONFLICT_RESOLUTION)
    already_committed = None if job.idempotent is None else job.idempotent.already_committed
    planned_on = None if job.existing is None else job.existing.columns
    conditions = CommitConditions(planned_on, agree, job.reads, already_committed)
    outcome = tx.commit(metadata, index=index, conditions=conditions)
    if isinstance(outcome, Conflicted):
        raise outcome.error()
    return result_of_commit(job.storage.uri(), outcome, metadata, created_table=job.client is None)


def _replaces(metadata: CommitMetadata) -> bool:
    """Return True if file groups are replaced."""
    return metadata.replaced is not None and metadata.replaced["file_id"].null_count < metadata.replaced.num_rows
