"""Removal of duplicate record keys from a partition, by rewriting the file groups that contain some.

Rows keep their commit times, so that incremental queries do not return them as new. One replacecommit replaces
the old file groups; the replaced files remain readable by time travel until they are cleaned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.config.enums import Operation
from pyhudi.index.bucket_file_ids import new_file_id_suffix
from pyhudi.read.execution.file_slice_reader import column_names
from pyhudi.read.schema.table_columns import stored_columns
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.table_types import as_nullable
from pyhudi.services.repair.duplicate_keys import DedupeType, Deduplication, refuse_planned
from pyhudi.spark.column_names import select_names
from pyhudi.spark.execution.write_stages import WriteTask, run_write_tasks
from pyhudi.spark.indexes.dependent_indexes import update_dependent_indexes
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges, index_delta
from pyhudi.spark.services.duplicate_rows import COPY_ORDER, deduplicated_rows, find_duplicates
from pyhudi.spark.spark_errors import task_errors
from pyhudi.table.bucket_index_detection import bucket_evidence
from pyhudi.table.config.merge_settings import with_delete_marker
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata
from pyhudi.timeline.instant import Action
from pyhudi.transaction.commit_outcome import Committed, Conflicted
from pyhudi.transaction.single_writer_locks import in_process_writer_lock
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.location_columns import FILE_ID
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.settings.write_settings import write_context
from pyhudi.write.settings.write_target import WriteTarget
from pyhudi.write.tasks.clustering_rewrite import copied_columns, write_copies, write_copies_to
from pyhudi.write.write_operations import type_name
from pyhudi.write.write_status import encode_stats

OPERATION = type_name(Operation.UPSERT)
"""Operation type in the commit metadata. INSERT_OVERWRITE would say that the partition has no other file groups than
the new ones (`pyhudi.timeline.operation_types.OVERWRITES`)."""
_MAX_TASKS = 10_000


def preview_deduplication(
    spark: SparkSession,
    client: TableMetaClient,
    opts: Options,
    *,
    partition: str,
    kind: DedupeType,
    output: str | None,
) -> Deduplication:
    """Find what `deduplicate` would change, without changing the table.

    Args:
        spark: The session to run on.
        client: The table.
        opts: Options of the query.
        partition: Path of the partition.
        kind: Selects the rows to keep.
        output: Folder into which the rows are written that would be kept in the affected file groups, as Parquet.

    Returns:
        The duplicates that were found.

    Raises:
        UnsupportedTableError: The table has no record keys, or its file groups cannot be replaced individually.
        QueryError: The partition has no files, or the dedupe type leaves several rows of a key.
    """
    table = TableSnapshot.load(client)
    duplicates = find_duplicates(spark, table, opts, partition, kind)
    if output is not None:
        rows = deduplicated_rows(spark, table, opts, duplicates).drop(FILE_ID, COPY_ORDER)
        with task_errors():
            rows.write.format("parquet").mode("error").save(output)
    return duplicates


def deduplicate(
    spark: SparkSession, client: TableMetaClient, opts: Options, partition: str, kind: DedupeType
) -> Deduplication:
    """Remove the rows whose record keys occur more than once in a partition. If the process is killed, the table has
    all or none of the changes, and the next call completes the removal.

    Args:
        spark: The session to run on.
        client: The table.
        opts: Options of files, locks and heartbeats.
        partition: Path of the partition.
        kind: Selects the rows to keep.

    Returns:
        The duplicates that were found, and the changes that were made.

    Raises:
        UnsupportedTableError: The table has no record keys, or its file groups cannot be replaced individually.
        QueryError: The partition has no files, or the dedupe type leaves several rows of a key.
        BusyError: Other operations are running on the table, or have planned to rewrite a file group with duplicates.
        ConflictError: A concurrent writer has committed a conflicting change.
    """
    table = TableSnapshot.load(client)
    duplicates = find_duplicates(spark, table, opts, partition, kind)
    if not duplicates.num_keys:
        return duplicates
    with in_process_writer_lock(client.storage, opts):
        refuse_planned(table, duplicates.groups, opts)
        begun = Transaction.begin(client, Action.REPLACE_COMMIT, OPERATION, opts, SparkFileStatsReader(spark))
        with begun as tx:
            tx.to_inflight(CommitMetadata(OPERATION))
            # commits before this point are part of the input, later ones are checked for conflicts
            table = TableSnapshot(client.storage, tx.config, tx.active)
            duplicates = find_duplicates(spark, table, opts, partition, kind)
            if not duplicates.num_keys:
                return duplicates  # another writer has removed the duplicates: the write is rolled back
            outcome = _replace(spark, client, tx, table=table, opts=opts, duplicates=duplicates)
    if isinstance(outcome, Conflicted):
        raise outcome.error()
    return replace(duplicates, instant=outcome.instant.requested)


def _replace(
    spark: SparkSession,
    client: TableMetaClient,
    tx: Transaction,
    *,
    table: TableSnapshot,
    opts: Options,
    duplicates: Deduplication,
) -> Committed | Conflicted:
    """Write the new file groups and commit."""
    stored, table_schema = stored_columns(table, "deduplicate", None)
    merging = with_delete_marker(table.config.merging, opts)
    target = WriteTarget(table.storage, table.config, merging, opts)
    context = write_context(target, Operation.BULK_INSERT, tx.instant, table_schema)
    column_version = column_names(table, as_nullable(stored))
    context = replace(context, logs=None).with_column_names(column_version)
    names = [*copied_columns(context), FILE_ID, COPY_ORDER]
    rows = select_names(deduplicated_rows(spark, table, opts, duplicates), names)
    tasks = min(duplicates.groups.num_rows, _MAX_TASKS)
    rows = rows.repartition(tasks, FILE_ID).sortWithinPartitions(FILE_ID, COPY_ORDER)
    with task_errors():
        stats = run_write_tasks(rows, _writing(context, duplicates.partition, _bucket_ids(table, duplicates)))
    slices = FileSystemView.load(table, partitions=[duplicates.partition]).latest_slices()
    replaced = pa.Table.from_arrays(
        [duplicates.groups["partition"], duplicates.groups["file_id"]], schema=REPLACED_SCHEMA
    )
    version = {} if column_version is None else column_version.recorded()
    extra = {"schema": to_avro(table_schema, table.config.name), **version}
    metadata = CommitMetadata(OPERATION, stats, extra, replaced=replaced)
    changes = KeyChanges(stats, slices, replaced)
    index = index_delta(spark, tx, tx.opts, changes)
    index = update_dependent_indexes(IndexedCommit.from_transaction(spark, client, opts, tx, metadata), index)
    return tx.commit(metadata, index=index)


def _bucket_ids(table: TableSnapshot, duplicates: Deduplication) -> Mapping[str, str]:
    """Return the new file group of each old one in a table with buckets, whose file ids begin with the bucket number;
    empty for other tables."""
    if bucket_evidence(table) is None:
        return {}
    tail = new_file_id_suffix()
    return {file_id: file_id[: file_id.index("-")] + tail for file_id in duplicates.groups["file_id"].to_pylist()}


def _writing(context: WriteContext, partition: str, buckets: Mapping[str, str]) -> WriteTask:
    """Return a function that writes the rows of a task in the order they come in, one file group or bucket after the
    other."""

    def write(batches: Iterable[pa.RecordBatch], task: TaskId) -> bytes:
        rows = (batch for batch in batches if batch.num_rows)
        if not buckets:
            return encode_stats(write_copies(context, task, partition, task.partition, rows))
        routed = ((batch, _by_bucket(batch, buckets)) for batch in rows)
        return encode_stats(write_copies_to(context, task, partition, routed))

    return write


def _by_bucket(batch: pa.RecordBatch, buckets: Mapping[str, str]) -> dict[str, pa.Array]:
    """Return the indices (int64) of the rows of a batch that go to each new file group."""
    ids = batch.column(FILE_ID)
    return {
        buckets[file_id]: pc.indices_nonzero(pc.equal(ids, file_id)).cast(pa.int64())
        for file_id in pc.unique(ids).to_pylist()
    }
