"""Appends without a session of pyhudi: checked and begun by one process of Python, written by tasks, committed by
another process, as Spark gives a Python data source none that lives from the beginning to the end of a write."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import FailedWritesPolicy, IndexType, Operation, SortMode
from pyhudi.config.misspelled_options import refuse_misspelt
from pyhudi.errors import HudiError, NotAHudiTableError, QueryError, UnsupportedTableError
from pyhudi.keygen import KeySpec
from pyhudi.keygen.partition_path_text import partition_paths
from pyhudi.keygen.record_key_text import generated_keys, new_record_keys
from pyhudi.metadata.writer.file_stats_reader import LOCAL
from pyhudi.read.schema.table_columns import TableSchema, table_schema
from pyhudi.read.table_location import refuse_nested_table
from pyhudi.schema.arrow_avro import to_avro
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.spark_json import from_spark_json
from pyhudi.services.inline_services import after_commit, services_beside
from pyhudi.services.upgrade.auto_upgrade import version_wanted
from pyhudi.spark.write.dataframe_writer import key_spec
from pyhudi.spark.write.write_input import own_schema, write_schema
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.key_generator_type import PartitionKind
from pyhudi.table.config.merge_settings import with_delete_marker
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.rollback.rollback_failed import failed_writes_policy
from pyhudi.transaction.suspended_transaction import ResumableTransaction, SuspendedTransaction
from pyhudi.transaction.table_overwrite.created_table_removal import remove_empty_table
from pyhudi.write.planning.existing_files import check_not_bucketed
from pyhudi.write.unsupported_options import check_unsupported_options
from pyhudi.write.write_checks import check_writable
from pyhudi.write.write_context import TaskId, WriteContext
from pyhudi.write.write_operations import action_of, type_name
from pyhudi.write.write_settings import write_context
from pyhudi.write.write_status import decode_stats
from pyhudi.write.write_tasks import bulk_insert_task

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pyhudi.config.option import Option

ACTIVATE = "call pyhudi.activate(spark) first"
_BULK_INSERT = f"{options.OPERATION.key}={Operation.BULK_INSERT}"
_WITHOUT_JOBS = frozenset({"files", "column_stats", "partition_stats", "bloom_filters"})
"""Partitions of the metadata table that are kept up to date by what the tasks of a write tell, or from its files."""
_NEEDS_JOBS: tuple[Option[bool], ...] = (
    options.COMBINE_BEFORE_INSERT,
    options.INSERT_DROP_DUPLICATES,
    options.METADATA_GLOBAL_RECORD_INDEX_ENABLE,
    options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE,
    options.COMPACT_INLINE,
    options.COMPACT_SCHEDULE_INLINE,
    options.LOG_COMPACTION_INLINE,
    options.CLUSTERING_INLINE,
    options.CLUSTERING_SCHEDULE_INLINE,
    options.TTL_INLINE,
    options.SCHEMA_EVOLUTION_ENABLE,
)
_LOOKED_UP = (
    IndexType.BUCKET,
    IndexType.RECORD_INDEX,
    IndexType.GLOBAL_RECORD_LEVEL_INDEX,
    IndexType.RECORD_LEVEL_INDEX,
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AppendJob:
    """A bulk insert that has passed every check that needs no data.

    Args:
        storage: The table's.
        client: The table; None while there is none.
        config: Its configuration, or that of the table which will be created.
        opts: Options of the write.
        spec: How keys are made.
        incoming: The rows' own columns.
        schema: The columns of the files.
        planned_on: The table's columns as they were recorded then (Avro JSON).
        context: What tasks need, but for the instant.
    """

    storage: Storage
    client: TableMetaClient | None
    config: TableConfig
    opts: Options
    spec: KeySpec
    incoming: pa.Schema
    schema: pa.Schema
    planned_on: str | None
    context: WriteContext

    def begin(self) -> BegunAppend:
        """Announce the write, on a table that is created if necessary.

        Raises:
            UnsupportedTableError: the table cannot be written.
            LockError: the table's lock could not be taken.
        """
        created = self.client is None
        client = self.client or TableMetaClient.create(self.storage, self.config, self.opts)
        try:
            action = action_of(Operation.BULK_INSERT, self.config.table_type)
            with ResumableTransaction.begin(client, action, type_name(Operation.BULK_INSERT), self.opts) as tx:
                _check_indexes(tx.config)
                tx.to_inflight()
                context = replace(self.context, instant=tx.instant)
                return BegunAppend(
                    tx.suspend(), self.opts, self.spec, self.incoming, self.schema, self.planned_on, context, created
                )
        except BaseException:
            if created:
                _remove(self.storage, self.opts)
            raise


@dataclass(frozen=True, slots=True)
class BegunAppend:
    """A bulk insert under way, to be pickled: the state of its transaction, and of `AppendJob` what comes later.
    ``created``: there was no table before it."""

    state: SuspendedTransaction
    opts: Options
    spec: KeySpec
    incoming: pa.Schema
    schema: pa.Schema
    planned_on: str | None
    context: WriteContext
    created: bool

    def write(self, batches: Iterable[pa.RecordBatch], task: TaskId) -> bytes:
        """Write the rows of a task; returns the write stats of its files, encoded.

        Raises:
            RecordKeyError: a row has no key, or its partition cannot be a folder.
        """
        return bulk_insert_task(self._keyed(batches, task), self.context, task)

    def commit(self, stats: Iterable[bytes]) -> None:
        """Publish the write, then clean and archive as far as that is due.

        Raises:
            ConflictError: another writer was faster, or has taken this one for dead; nothing is left of it.
        """
        storage = self.state.storage
        found = decode_stats(stats)
        with ResumableTransaction.resume(self.state) as tx:
            if found.num_rows == 0 and not self.opts.get_typed(options.ALLOW_EMPTY_COMMIT):
                tx.abort()
                return
            agree = self.opts.get_typed(options.SCHEMA_CONFLICT_RESOLUTION)
            metadata = CommitMetadata(type_name(Operation.BULK_INSERT), found, self._extra_metadata())
            outcome = tx.commit(metadata, planned_on=self.planned_on, agree_on_columns=agree)
        if isinstance(outcome, Conflicted):
            raise outcome.error()
        with services_beside(storage, self.opts, LOCAL):
            after_commit(storage, self.opts, LOCAL)

    def abort(self) -> None:
        """Roll the write back; nothing if it is committed."""
        ResumableTransaction.resume(self.state).abort()
        if self.created:
            _remove(self.state.storage, self.opts)

    def _extra_metadata(self) -> Mapping[str, str]:
        prefix = self.opts.get_typed(options.COMMIT_METADATA_KEY_PREFIX)
        kept = self.opts.with_prefix(prefix) if prefix else {}
        return {"schema": to_avro(self.schema, self.state.config.name), **kept}

    def _keyed(self, batches: Iterable[pa.RecordBatch], task: TaskId) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in batches:
            # Spark names its session's zone in timestamps, and may send large texts
            rows = batch.select(self.incoming.names).cast(self.incoming)
            if self.spec.auto_keys:
                keys = generated_keys(self.state.entry.requested, task.partition, first, rows.num_rows)
                first += rows.num_rows
            else:
                keys = new_record_keys(rows, self.spec)
            yield rows.append_column(RECORD_KEY, keys).append_column(PARTITION_PATH, partition_paths(rows, self.spec))


def prepare_append(source: Mapping[str, str], columns: StructType) -> AppendJob:
    """Check everything that can be checked without the data; nothing is touched.

    Args:
        source: Options of the data source, with the path.
        columns: Columns of the rows.

    Raises:
        QueryError: there is no path.
        UnsupportedTableError: the operation, the table or an option needs jobs of Spark.
        ConfigError: options contradict each other or the table.
        SchemaMismatchError: the columns cannot become the table's.
    """
    given: dict[str, Any] = dict(source)
    path = given.pop("path", None)
    if path is None:
        raise QueryError("format('hudi') needs the path of a table: .save(path)")
    refuse_misspelt(given)
    opts = Options.parse(given)
    check_unsupported_options(opts)
    storage = open_storage(path, opts)
    client = _open(storage, opts)
    if client is None:
        refuse_nested_table(storage.root, opts)
    config = TableConfig.for_new_table(opts) if client is None else client.config
    if client is not None:
        opts = config.validate_against(opts)
    _check_operation(opts, keyed=bool(config.record_keys))
    _check_options(config, opts)
    _check_indexes(config)
    merging = with_delete_marker(config.merging_for(opts.get_typed(options.PAYLOAD_CLASS)), opts)
    check_writable(config, merging, Operation.BULK_INSERT, opts)
    if client is not None:
        check_not_bucketed(client)
    spec = KeySpec.from_config(config, opts) if client is None else key_spec(client, opts)
    _check_keys(spec)
    table = _table_columns(client)
    incoming = own_schema(from_spark_json(columns.json()))
    _check_key_columns(incoming, spec)
    schema = write_schema(incoming, None if table is None else table.schema, config, opts, Operation.BULK_INSERT)
    context = write_context(storage, config, merging, opts, Operation.BULK_INSERT, "", schema)
    planned_on = None if table is None else table.recorded
    return AppendJob(storage, client, config, opts, spec, incoming, schema, planned_on, context)


def _open(storage: Storage, opts: Options) -> TableMetaClient | None:
    try:
        return TableMetaClient.open(storage, opts)
    except NotAHudiTableError:
        return None


def _check_operation(opts: Options, *, keyed: bool) -> None:
    """Refuse what looks at records of the table, also where that is the default."""
    operation = opts.get_typed(options.OPERATION)
    if operation is Operation.BULK_INSERT or not (keyed or opts.is_set(options.OPERATION)):
        return
    told = "" if opts.is_set(options.OPERATION) else ", the operation of tables with record keys if none is named,"
    raise UnsupportedTableError(
        f"format('hudi') of a session without pyhudi appends rows as they are: {operation}{told} has to look at the "
        f"table's records, by jobs of its own. Give {_BULK_INSERT} if no key is in the table yet, or {ACTIVATE}"
    )


def _check_options(config: TableConfig, opts: Options) -> None:
    """Refuse options of things that are not done here."""
    wanted = [f"{option.key}=true" for option in _NEEDS_JOBS if opts.is_set(option) and opts.get_typed(option)]
    if opts.get_typed(options.INDEX_TYPE) in _LOOKED_UP:
        wanted.append(f"{options.INDEX_TYPE.key}={opts.get_typed(options.INDEX_TYPE)}")
    if opts.get_typed(options.BULKINSERT_SORT_MODE) is not SortMode.NONE:
        wanted.append(f"{options.BULKINSERT_SORT_MODE.key}={opts.get_typed(options.BULKINSERT_SORT_MODE)}")
    if opts.get_typed(options.BULKINSERT_SORT_COLUMNS):
        wanted.append(options.BULKINSERT_SORT_COLUMNS.key)
    if version_wanted(config, opts) is not None:
        wanted.append(f"an upgrade to version {version_wanted(config, opts)}")
    if wanted:
        raise UnsupportedTableError(
            f"{wanted[0]} needs jobs of Spark, which a Python data source cannot run; leave it out, or {ACTIVATE}"
        )
    policy = failed_writes_policy(opts)
    if policy is not FailedWritesPolicy.EAGER:
        raise UnsupportedTableError(
            f"failed writes are rolled back {policy} ({options.CONCURRENCY_MODE.key}, "
            f"{options.FAILED_WRITES_POLICY.key}), for which a writer gives signs of life; a Python data source has no "
            f"process that could. Let one writer at a time write, or {ACTIVATE}"
        )


def _check_indexes(config: TableConfig) -> None:
    more = sorted(set(config.metadata_partitions) - _WITHOUT_JOBS)
    if more:
        raise UnsupportedTableError(
            f"the table has the index {more[0]!r}, which a write keeps up to date by a job of Spark, and a Python data "
            f"source cannot run one; {ACTIVATE}"
        )


def _check_keys(spec: KeySpec) -> None:
    formatted = [field.name for field in spec.partition_fields if field.kind is PartitionKind.TIMESTAMP]
    if formatted or spec.consistent_timestamps:
        what = f"the partition field {formatted[0]!r}" if formatted else "the record key"
        raise UnsupportedTableError(f"{what} holds times as texts, which are made by Spark's functions; {ACTIVATE}")


def _check_key_columns(incoming: pa.Schema, spec: KeySpec) -> None:
    """Refuse missing columns and types of which no key can be made."""
    nothing = pa.RecordBatch.from_pylist([], incoming)
    if not spec.auto_keys:
        new_record_keys(nothing, spec)
    partition_paths(nothing, spec)


def _table_columns(client: TableMetaClient | None) -> TableSchema | None:
    found = None if client is None else table_schema(PinnedTable.of(client))
    if found is not None and found.has_history:
        raise UnsupportedTableError(
            f"the table keeps a history of its schemas, which a write has to go on with; {ACTIVATE}"
        )
    return found


def _remove(storage: Storage, opts: Options) -> None:
    """Take away a table in which nothing was committed; what went wrong first is what the caller has to know."""
    try:
        remove_empty_table(storage, opts)
    except HudiError as failure:
        _log.warning("the empty table at %s is left behind: %s", storage.uri(), failure)
