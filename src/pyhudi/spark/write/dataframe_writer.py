"""Writes of DataFrames to Hudi tables: ``write`` is the entry point of every operation and save mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.config.misspelled_options import refuse_misspelled
from pyhudi.errors import ConfigError, InvalidOptionError, TableExistsError
from pyhudi.read.query.table_location import refuse_nested_table
from pyhudi.services.upgrade.auto_upgrade import required_version
from pyhudi.services.upgrade.upgrade_downgrade import UpgradeDowngrade
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.requested_indexes import with_requested_indexes
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.read.table_lineage import snapshot_ids
from pyhudi.spark.services.spark_compaction import SparkCompactionRunner
from pyhudi.spark.session import check_not_stopped, check_workers, stopped_session_errors
from pyhudi.spark.write.dml_commit import DmlCommit
from pyhudi.spark.write.operations.bootstrap import write_bootstrap
from pyhudi.spark.write.operations.overwrite_table import overwrite_table
from pyhudi.spark.write.row_change_locations import CHANGE_COLUMNS
from pyhudi.spark.write.stored_keys import identifies_records
from pyhudi.spark.write.sync_after_write import check_sync_options, sync_after_write
from pyhudi.spark.write.write_job import IdempotentCommit, WriteJob
from pyhudi.spark.write.write_preparation import KeyedSnapshot, prepare_write
from pyhudi.spark.write.write_services import write_with_services
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.version_support import WRITABLE_VERSIONS
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.single_writer_locks import in_process_writer_lock
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.row_action import ROW_ACTION
from pyhudi.write.settings.unsupported_options import check_unsupported_options
from pyhudi.write.settings.write_target import open_existing
from pyhudi.write.write_checks import check_table_exists
from pyhudi.write.write_operations import check_operation, type_name, with_operation_of_payload
from pyhudi.write.write_result import WriteResult

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
    write_options: Mapping[str, object] | None = None,
    mode: str = APPEND,
    *,
    partitions: Sequence[str] = (),
    idempotent: IdempotentCommit | None = None,
    cached: bool = False,
) -> WriteResult:
    """Write a DataFrame. A table that does not exist is created. After conflicts the write is retried according to the
    options, unless the rows were read from the table before the conflicting commit.

    Everything that can be checked without the data is checked before anything is written; a write that fails later is
    rolled back.

    Args:
        df: Rows to write.
        target: The table, or its path.
        write_options: Apache Hudi's options; they override the session's settings for the object store.
        mode: Save mode of Spark: append, overwrite (a new table in place of the old one), ignore, errorifexists.
        partitions: Paths of the partitions that the operation insert_overwrite replaces, or delete_partition drops.
            Empty: those in the options.
        idempotent: How the commit is recognized, if its rows may be written more than once.
        cached: The caller has persisted the rows.

    Returns:
        The result, with the instant of the commit and the files written.

    Raises:
        TableExistsError: There is a table, and ``mode`` is errorifexists.
        ConfigError: Options contradict each other or the table.
        UnsupportedTableError: The table or the operation cannot be written.
        ConflictError: Another writer changed the same file groups first, more often than the write is retried
            (`hoodie.write.num.retries.on.conflict.failures`); this write has been rolled back.
        NonRetryableConflictError: As ConflictError, but the rows were read from this table before that commit.
        ServiceAfterCommitError: The write is committed, but a service after it or the sync to a catalog failed.
        SetupError: The session has been stopped. If it was meanwhile, this write has been rolled back.
    """
    request = _WriteRequest.from_arguments(df, target, write_options or {}, mode)
    request = replace(request, partitions=tuple(partitions), idempotent=idempotent, cached=cached)
    storage, opts = request.storage, request.opts
    with stopped_session_errors(df.sparkSession):
        result = with_retries(storage, opts, lambda: _write_once(request), lambda: bool(snapshot_ids(df, storage)))
    return sync_after_write(df.sparkSession, storage, opts, result)


def append_once(
    df: DataFrame, target: str, write_options: Mapping[str, object], *, partitions: Sequence[str]
) -> WriteResult:
    """Write a DataFrame like `write` in the mode append, for a caller that repeats the write after conflicts.

    Args:
        df: Rows to write.
        target: Path of the table.
        write_options: Options, as of `write`.
        partitions: Partitions, as of `write`.

    Returns:
        The result.

    Raises:
        ConflictError: Another writer changed the same file groups first; this write has been rolled back.
    """
    request = replace(_WriteRequest.from_arguments(df, target, write_options, APPEND), partitions=tuple(partitions))
    with stopped_session_errors(df.sparkSession), in_process_writer_lock(request.storage, request.opts):
        result = _write_once(request)
    return sync_after_write(df.sparkSession, request.storage, request.opts, result)


@dataclass(frozen=True, slots=True)
class _WriteRequest:
    """A call of `write`, whose arguments have been checked.

    Attributes:
        df: Rows to write.
        storage: Storage of the table.
        opts: Options of the write, with the session's settings.
        save_mode: Save mode.
        partitions: As of `write`.
        idempotent: As of `write`.
        cached: As of `write`.
    """

    df: DataFrame
    storage: Storage
    opts: Options
    save_mode: str
    partitions: tuple[str, ...] = ()
    idempotent: IdempotentCommit | None = None
    cached: bool = False

    @classmethod
    def from_arguments(
        cls, df: DataFrame, target: TableMetaClient | str, write_options: Mapping[str, object], mode: str
    ) -> _WriteRequest:
        """Check the arguments."""
        check_not_stopped(df.sparkSession)
        check_workers(df.sparkSession)
        refuse_misspelled(write_options)
        location = target.storage.uri() if isinstance(target, TableMetaClient) else target
        opts = with_operation_of_payload(
            Options.parse({**session_settings(df.sparkSession, location), **write_options})
        )
        check_unsupported_options(opts)
        check_sync_options(df.sparkSession, opts)
        save_mode = parse_mode(mode)
        storage = target.storage if isinstance(target, TableMetaClient) else open_storage(target, opts)
        return cls(df, storage, opts, save_mode)

    def job(self, client: TableMetaClient | None, operation: Operation) -> WriteJob:
        """Prepare the write to a table; None: to a new one."""
        job = prepare_write(self.df, self.storage if client is None else client, operation, self.opts)
        return replace(job, partitions=self.partitions, idempotent=self.idempotent, cached=self.cached)


def _write_once(request: _WriteRequest) -> WriteResult:
    """Write the rows of a request to the table as it is now."""
    df, storage, opts, save_mode = request.df, request.storage, request.opts, request.save_mode
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
        raise ConfigError(f"{operation.value} requires the save mode 'append', not {save_mode!r}")
    if client is None:
        check_table_exists(storage.uri(), operation)
        refuse_nested_table(storage.root, opts)
    if client is not None and not replaces:
        client = _upgraded(df, client, operation, opts)
    fresh = client is None or replaces
    job = request.job(None if fresh else client, operation)
    if client is not None and replaces:
        return with_requested_indexes(df.sparkSession, storage, job.opts, overwrite_table(client, job))
    try:
        return write_with_services(job)
    except TableExistsError:
        if client is not None or save_mode == ERROR:
            raise
        # Another process has created the table since it was looked for, and nothing was written.
        return _write_once(request)


def _upgraded(df: DataFrame, client: TableMetaClient, operation: Operation, opts: Options) -> TableMetaClient:
    """Upgrade the table if the options request it and the write is otherwise possible. Return the resulting table."""
    to = required_version(client.config, opts)
    if to is None:
        return client
    if client.config.version in WRITABLE_VERSIONS:
        prepare_write(df, client, operation, opts)
    spark = df.sparkSession
    table_options = client.config.validate_against(opts)
    UpgradeDowngrade(client, table_options, SparkCompactionRunner(spark), SparkFileStatsReader(spark)).run(to)
    return client.reload()


def write_changes(
    df: DataFrame,
    pinned: KeyedSnapshot,
    write_options: Mapping[str, object],
    operation: Operation,
    commit: DmlCommit,
    *,
    partitions: Sequence[str] = (),
) -> WriteResult:
    """Write the rows of an UPDATE, DELETE, MERGE or INSERT … REPLACE WHERE as one commit.

    Args:
        df: The rows (`pyhudi.spark.write.row_change_locations`), or, without ``changes``, rows whose keys are
            looked up, possibly with their actions (`ROW_ACTION`) if they have the types of the table.
        pinned: The table as the statement has read it.
        write_options: Options of the statement.
        operation: Operation of the commit.
        commit: The files that the statement has read, and its changes.
        partitions: Paths of the partitions that the operation insert_overwrite replaces.

    Raises:
        KeyConstraintError: The keys violate the constraint; nothing was written.
        ConflictError: Another writer changed rows that the statement has read; nothing of the write is left.
    """
    opts = Options.parse(write_options)
    check_unsupported_options(opts)
    check_sync_options(df.sparkSession, opts)
    changes, table = commit.changes, pinned.table
    client = TableMetaClient(table.storage, table.config, opts)
    rows = df.drop(*CHANGE_COLUMNS, ROW_ACTION)
    job = prepare_write(rows, client, operation, opts, changes=changes, pinned=pinned)
    is_prepared = changes is None and ROW_ACTION not in df.columns
    job = replace(job, df=job.df if is_prepared else df, dml=commit, partitions=tuple(partitions))
    return sync_after_write(df.sparkSession, table.storage, opts, write_with_services(job))


def _operation(opts: Options, *, keyed: bool) -> Operation:
    """Return the operation of the options; records without keys can only be added."""
    operation = opts.get_typed(options.OPERATION)
    check_operation(operation)
    if not opts.is_set(options.OPERATION) and not keyed:
        return Operation.BULK_INSERT
    if opts.get_typed(options.INSERT_DROP_DUPLICATES) and operation is Operation.UPSERT:
        return Operation.INSERT  # as in the original: nothing is left to be updated
    return operation
