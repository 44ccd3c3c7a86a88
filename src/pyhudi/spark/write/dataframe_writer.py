"""Writes of DataFrames to Hudi tables: ``write`` is the entry point of every operation and save mode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import IndexType, Operation
from pyhudi.config.misspelled_options import refuse_misspelt
from pyhudi.errors import ConfigError, InvalidOptionError, TableExistsError
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.sampled_keys import sample_keys
from pyhudi.keygen import KeySpec
from pyhudi.read.execution.merged_reader import column_names
from pyhudi.read.log_only_keys import log_only_keys
from pyhudi.read.query.table_location import refuse_nested_table
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.services.post_commit_services import (
    after_commit,
    after_deltacommit,
    check_inline,
    cluster_after_commit,
    errors_after_commit,
    run_async_services,
)
from pyhudi.services.upgrade.auto_upgrade import required_version
from pyhudi.services.upgrade.upgrade_downgrade import UpgradeDowngrade
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.record_index.record_index_build import ensure_record_index
from pyhudi.spark.keys.deduplication import batch_order
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.lookup.key_constraint import KeyConstraint
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.read.table_lineage import snapshot_ids
from pyhudi.spark.services.spark_clustering import SparkClusteringRunner
from pyhudi.spark.services.spark_compaction import spark_runner
from pyhudi.spark.session import check_workers
from pyhudi.spark.spark_types import spark_schema
from pyhudi.spark.write.bootstrap_write import write_bootstrap
from pyhudi.spark.write.delete_partition import delete_selected_partitions
from pyhudi.spark.write.overwrite_table import overwrite_table
from pyhudi.spark.write.plans.bulk_insert_sort import check_sort_columns
from pyhudi.spark.write.row_changes import CHANGE_COLUMNS
from pyhudi.spark.write.stored_keys import identifies_records, keep_stored_keys
from pyhudi.spark.write.write_execution import execute_write
from pyhudi.spark.write.write_input import as_in_table, own_columns, write_schema
from pyhudi.spark.write.write_job import IdempotentCommit, RowChanges, WriteJob
from pyhudi.storage import Storage, open_storage
from pyhudi.table.bucket_index_detection import check_not_bucketed
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.config.version_support import WRITABLE_VERSIONS
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.partition_ttl import PartitionTtl, TtlResult
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.transaction.conflicts.serializable_reads import ReadSet
from pyhudi.transaction.in_process_locks import in_process_writer_lock
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.settings.unsupported_options import check_unsupported_options
from pyhudi.write.settings.write_target import WriteTarget, open_existing
from pyhudi.write.write_checks import check_partial, check_table_exists, check_writable, warn_of_old_partitions
from pyhudi.write.write_operations import check_operation, type_name
from pyhudi.write.write_result import WriteResult

__all__ = ["WriteResult", "write"]

_log = logging.getLogger(__name__)

APPEND, OVERWRITE, IGNORE, ERROR = "append", "overwrite", "ignore", "errorifexists"
_MODES = {APPEND: APPEND, OVERWRITE: OVERWRITE, IGNORE: IGNORE, ERROR: ERROR, "error": ERROR, "default": ERROR}


def parse_mode(text: str) -> str:
    """Return Spark's save mode: APPEND, OVERWRITE, IGNORE or ERROR.

    Raises:
        InvalidOptionError: There is no such mode.
    """
    mode = _MODES.get(text.lower())
    if mode is None:
        raise InvalidOptionError("mode", text, ", ".join(sorted(_MODES)))
    return mode


def write(
    df: DataFrame,
    target: TableMetaClient | str,
    given: Mapping[str, object] | None = None,
    mode: str = APPEND,
    *,
    partitions: Sequence[str] = (),
    idempotent: IdempotentCommit | None = None,
    retries: bool = True,
) -> WriteResult:
    """Write a DataFrame. A table that does not exist is created.

    Everything that can be checked without the data is checked before anything is written; a write that fails later is
    rolled back.

    Args:
        df: Rows to write.
        target: The table, or its path.
        given: Apache Hudi's options; they override the session's settings for the object store.
        mode: Save mode of Spark: append, overwrite (a new table in place of the old one), ignore, errorifexists.
        partitions: Paths of the partitions that the operation insert_overwrite replaces, or delete_partition drops.
            Empty: as the options say.
        idempotent: How the commit is recognized, if its rows may be written more than once.
        retries: Retry after conflicts as the options say, except if the rows come from the table as it was before;
            False: the caller does.

    Returns:
        The result, with the instant of the commit and the files written.

    Raises:
        TableExistsError: There is a table, and ``mode`` is errorifexists.
        ConfigError: Options contradict each other or the table.
        UnsupportedTableError: The table or the operation cannot be written.
        ConflictError: Another writer changed the same file groups first, more often than the write is retried
            (`hoodie.write.num.retries.on.conflict.failures`); this write has been rolled back.
        NonRetryableConflictError: So it was, and the rows come from the table as it was before.
    """
    check_workers(df.sparkSession)
    refuse_misspelt(given or {})
    location = target.storage.uri() if isinstance(target, TableMetaClient) else target
    opts = Options.parse({**session_settings(df.sparkSession, location), **(given or {})})
    check_unsupported_options(opts)
    save_mode = parse_mode(mode)
    storage = target.storage if isinstance(target, TableMetaClient) else open_storage(target, opts)

    def complete(job: WriteJob) -> WriteJob:
        return replace(job, partitions=tuple(partitions), idempotent=idempotent)

    def attempt() -> WriteResult:
        return _write_once(df, storage, opts, save_mode, complete)

    if retries:
        return with_retries(storage, opts, attempt, lambda: bool(snapshot_ids(df, storage)))
    with in_process_writer_lock(storage, opts):
        return attempt()


def _write_once(
    df: DataFrame, storage: Storage, opts: Options, save_mode: str, complete: Callable[[WriteJob], WriteJob]
) -> WriteResult:
    """Write a DataFrame to the current table. ``complete`` adds the conditions of the commit that the caller sets."""
    client = open_existing(storage, opts)
    keyed = bool(opts.get_typed(options.RECORDKEY_FIELD) if client is None else client.config.record_keys)
    keyed |= client is not None and identifies_records(df.columns)
    operation = _operation(opts, keyed=keyed)
    if client is not None and save_mode == IGNORE:
        return WriteResult(storage.uri(), type_name(operation))
    if client is not None and save_mode == ERROR:
        raise TableExistsError(
            f"there is a Hudi table at {storage.uri()!r} already; write with mode 'append' to add to it, 'overwrite' "
            "to replace it, 'ignore' to leave it"
        )
    if operation is Operation.BOOTSTRAP:
        if client is None:
            refuse_nested_table(storage.root, opts)
        return write_bootstrap(df, storage, opts)
    replaces = save_mode == OVERWRITE and operation is not Operation.INSERT_OVERWRITE_TABLE
    if replaces and operation in (Operation.DELETE, Operation.DELETE_PARTITION):
        raise ConfigError(f"{operation.value} goes with the save mode 'append' only, not with {save_mode!r}")
    if client is None:
        check_table_exists(storage.uri(), operation)
        refuse_nested_table(storage.root, opts)
    if client is not None and not replaces:
        client = _upgraded(df, client, opts, operation)
    fresh = client is None or replaces
    job = complete(_prepare(df, storage, None if fresh else client, opts, operation))
    if client is not None and replaces:
        return _with_record_index(job, overwrite_table(client, job))
    try:
        return _run_with_services(job)
    except TableExistsError:
        if client is not None or save_mode == ERROR:
            raise
        # Another process has created the table since it was looked for, and nothing was written.
        return _write_once(df, storage, opts, save_mode, complete)


def _upgraded(df: DataFrame, client: TableMetaClient, opts: Options, operation: Operation) -> TableMetaClient:
    """Upgrade the table if the options request it and the write is otherwise possible. Return the resulting table."""
    to = required_version(client.config, opts)
    if to is None:
        return client
    if client.config.version in WRITABLE_VERSIONS:
        _prepare(df, client.storage, client, opts, operation)
    spark = df.sparkSession
    own = client.config.validate_against(opts)
    UpgradeDowngrade(client, own, spark_runner(spark), SparkFileStatsReader(spark)).run(to)
    return client.reload()


def _run_with_services(job: WriteJob) -> WriteResult:
    """Write, and run the table services that the options request during and after the write."""
    spark = job.df.sparkSession
    stats_reader = SparkFileStatsReader(spark)
    with run_async_services(job.storage, job.opts, stats_reader) if job.client is not None else nullcontext():
        result = execute_write(job)
    if result.instant is None:
        return result
    after_commit(job.storage, job.opts, stats_reader)
    after_deltacommit(job.storage, job.opts, spark_runner(spark))
    cluster_after_commit(job.storage, job.opts, SparkClusteringRunner(spark))
    if job.opts.get_typed(options.TTL_INLINE) and job.opts.get_typed(options.TABLE_SERVICES_ENABLED):
        _expire_after_commit(job)
    return _with_record_index(job, result)


def _with_record_index(job: WriteJob, result: WriteResult) -> WriteResult:
    """Build the record index if the options request it. Raises nothing, because the rows are committed."""
    try:
        ensure_record_index(job.df.sparkSession, job.storage, job.opts)
    except Exception as failure:
        text = f"the write is committed, but the record index was not looked after: {failure}"
        _log.warning("%s", text)
        return replace(result, warnings=(*result.warnings, text))
    return result


def _expire_after_commit(job: WriteJob) -> None:
    """Drop the partitions that have expired. The rows are committed, so an error is logged, unless
    `hoodie.fail.writes.on.inline.table.service.exception` is set to true."""
    with errors_after_commit("the deletion of expired partitions", job.opts):
        delete_expired_partitions(job.df.sparkSession, TableMetaClient.open(job.storage, job.opts), job.opts)


def delete_expired_partitions(spark: SparkSession, client: TableMetaClient, given: Mapping[str, object]) -> TtlResult:
    """Drop the partitions whose time to live is over, in one commit of the operation delete_partition.

    Raises:
        ConfigError: no time to live is set.
        ConflictError: another writer was faster.
        UnsupportedTableError: the table cannot be written, or has consistent hashing.
    """
    opts = client.config.validate_against(Options.parse(given))
    ttl = PartitionTtl.from_options(opts)
    with in_process_writer_lock(client.storage, opts):
        client = client.reload()
        pinned = PinnedTable.of(client)
        found = ttl.expired(pinned)
        if not found:
            return TtlResult(reason=f"no partition has expired: {ttl}")
        columns = resolve_table_schema(pinned)
        assert columns is not None  # there are files
        nothing = spark.createDataFrame([], spark_schema(columns.schema))
        own = Options.parse({**opts, options.PARTITIONS_TO_DELETE.key: ",".join(found)})
        job = _prepare(nothing, client.storage, client, own, Operation.DELETE_PARTITION)

        def choose(table: PinnedTable, view: FileSystemView) -> Sequence[str]:
            found[:] = ttl.expired_in(table, view)
            return found

        result = delete_selected_partitions(job, choose)
        return TtlResult(tuple(found), result.instant)


@dataclass(frozen=True, slots=True)
class DmlCommit:
    """Commit of an UPDATE, DELETE or MERGE.

    Attributes:
        operation: Operation of the commit.
        reads: Files that the statement has read.
        changes: Differences from the rows of other writes; None: keys are looked up as in an upsert.
        key_constraint: Constraint on the keys of the rows.
    """

    operation: Operation
    reads: ReadSet
    changes: RowChanges | None = None
    key_constraint: KeyConstraint | None = None


def write_changes(
    df: DataFrame, client: TableMetaClient, given: Mapping[str, object], commit: DmlCommit
) -> WriteResult:
    """Write the rows of an UPDATE, DELETE or MERGE as one commit.

    Args:
        df: The rows (`pyhudi.spark.write.row_changes`), or, without ``changes``, rows whose keys are looked up.
        client: The table as the statement has read it.
        given: Options of the statement.
        commit: The commit.

    Raises:
        KeyConstraintError: The keys violate the constraint; nothing was written.
        ConflictError: another writer changed what was read; nothing of the write is left.
    """
    opts = Options.parse(given)
    check_unsupported_options(opts)
    own = [name for name in df.columns if name not in CHANGE_COLUMNS]
    rows, changes = df.select(*(quoted([name]) for name in own)), commit.changes
    job = _prepare(rows, client.storage, client, opts, commit.operation, changes)
    job = replace(job, reads=commit.reads, key_constraint=commit.key_constraint)
    job = job if changes is None else replace(job, df=df, changes=changes)
    return _run_with_services(job)


def key_spec(client: TableMetaClient, opts: Options) -> KeySpec:
    """Return the specification of the keys of a table."""
    spec, version = KeySpec.from_config(client.config, opts), client.config.version
    if spec.keygen is KeyGenType.COMPLEX and len(spec.record_fields) == 1 and version < 9:
        return spec.matching(*(sample_keys(client) or log_only_keys(client, opts)))
    return spec


def _operation(opts: Options, *, keyed: bool) -> Operation:
    """Operation that the options ask for; records without keys can only be added."""
    operation = opts.get_typed(options.OPERATION)
    check_operation(operation)
    if not opts.is_set(options.OPERATION) and not keyed:
        return Operation.BULK_INSERT
    if opts.get_typed(options.INSERT_DROP_DUPLICATES) and operation is Operation.UPSERT:
        return Operation.INSERT  # as in the original: nothing is left to be updated
    return operation


def _prepare(
    df: DataFrame,
    storage: Storage,
    client: TableMetaClient | None,
    opts: Options,
    operation: Operation,
    changes: RowChanges | None = None,
) -> WriteJob:
    """Check everything that can be checked without the data."""
    target = WriteTarget.of(storage, client, opts)
    config, merging, opts = target.config, target.merging, target.opts
    located = changes is not None and changes.located
    changing = operation.changes_records
    stored_keys = not config.record_keys and changes is None and changing and identifies_records(df.columns)
    stored_keys &= client is not None and config.populate_meta_fields
    check_writable(config, merging, operation, opts, located=located or stored_keys)
    check_inline(config, opts)
    if client is not None:
        warn_of_old_partitions(config, operation, opts)
    bucketed = opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET
    if client is not None and operation is not Operation.DELETE_PARTITION and not bucketed:
        check_not_bucketed(client)
    spec = KeySpec.from_config(config, opts) if client is None else key_spec(client, opts)
    by_key = stored_keys and operation is Operation.DELETE  # needs no other column
    rows = own_columns(df, may_be_none=by_key)
    if not by_key and (operation is not Operation.DELETE_PARTITION or not opts.get_typed(options.PARTITIONS_TO_DELETE)):
        with_keys(rows, spec, "")  # refuses missing key and partition columns; the frame itself is made later
    if operation is Operation.BULK_INSERT:
        check_sort_columns(rows.schema, opts)
    check_partial(config, operation, opts, rows.columns)
    pinned = None if client is None else PinnedTable.of(client)
    table = None if pinned is None else resolve_table_schema(pinned)
    incoming = from_spark_json(rows.schema.json())
    schema = write_schema(incoming, None if table is None else table.schema, config, opts, operation)
    # the key generator of Apache Hudi gets rows with the table's types, too
    keyed_by = [*spec.record_fields, *(field.name for field in spec.partition_fields), *merging.ordering_fields]
    rows = as_in_table(rows, keyed_by, schema)
    planned_on = None if table is None else table.recorded
    bucketing = _bucketing(storage, client, config, opts)
    job = WriteJob(rows, target, client, operation, spec, schema, planned_on, bucketing)
    if pinned is not None and table is not None and table.has_history:
        job = replace(job, names_at=column_names(pinned, schema))
    if stored_keys:
        job = replace(job, df=keep_stored_keys(as_in_table(df, keyed_by, schema)), stored_keys=True)
    job.context("")  # refuses codecs and sizes that cannot be
    if operation not in (Operation.DELETE, Operation.DELETE_PARTITION) and job.combines:
        batch_order(spark_schema(remove_meta_columns(schema)), merging)  # and ordering columns that are missing
    return job


def _bucketing(
    storage: Storage, client: TableMetaClient | None, config: TableConfig, opts: Options
) -> BucketIndex | None:
    """Distribution of rows over buckets, with the numbers of buckets that the table keeps."""
    found = BucketIndex.from_options(config, opts)
    if found is None or client is None:
        return found
    return found.of_table(storage, client.active_timeline().timeline)
