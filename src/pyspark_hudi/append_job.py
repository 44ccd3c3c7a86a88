"""Appends without an active pyhudi session: validated and started by one Python process, written by tasks, committed by
another process, because Spark has no process of a Python data source that lives from the start to the end of a
write."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.arrow.empty_offsets import with_offsets
from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.config.misspelled_options import refuse_misspelled
from pyhudi.errors import HudiError, QueryError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.keygen.partition_path_formatter import partition_paths
from pyhudi.keygen.record_key_formatter import generated_keys, new_record_keys
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.read.query.table_location import refuse_nested_table
from pyhudi.schema.converters.spark_arrow import spark_arrow_schema
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.type_conversion import convert
from pyhudi.services.indexing.index_of_write import check_index_of_write
from pyhudi.services.post_commit_services import PostCommitServices
from pyhudi.spark.write.write_input import checked_own_columns, write_schema
from pyhudi.spark.write.write_preparation import key_spec_of_write
from pyhudi.storage import Storage, open_storage
from pyhudi.table.bucket_index_detection import check_not_bucketed
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.transaction.commit_conditions import CommitConditions
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.suspended_transaction import ResumableTransaction, SuspendedTransaction
from pyhudi.transaction.table_overwrite.table_removal import remove_empty_table
from pyhudi.write.settings.unsupported_options import check_unsupported_options
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.settings.write_settings import write_context
from pyhudi.write.settings.write_target import WriteTarget, open_existing
from pyhudi.write.tasks.write_tasks import bulk_insert_task
from pyhudi.write.write_checks import check_writable
from pyhudi.write.write_operations import action_of, type_name
from pyhudi.write.write_status import decode_stats
from pyspark_hudi.append_checks import (
    check_indexes,
    check_key_columns,
    check_keys,
    check_operation,
    check_options,
    columns_without_history,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AppendJob:
    """A bulk insert that has passed all checks that do not require data.

    Attributes:
        target: The table and the settings of the write.
        client: The table; None if it does not exist yet.
        spec: Specification of keys.
        incoming: Columns of the input rows.
        schema: Columns of the files.
        planned_on: The recorded columns of the table at the start (Avro JSON).
        context: Context of the tasks, without the instant.
    """

    target: WriteTarget
    client: TableMetaClient | None
    spec: KeySpec
    incoming: pa.Schema
    schema: pa.Schema
    planned_on: str | None
    context: WriteContext

    def begin(self) -> BegunAppend:
        """Start the write, on a table that is created if necessary.

        Raises:
            UnsupportedTableError: The table cannot be written.
            LockError: The lock of the table could not be acquired.
        """
        target, created = self.target, self.client is None
        client = self.client or TableMetaClient.create(target.storage, target.config, target.opts)
        try:
            action = action_of(Operation.BULK_INSERT, target.config.table_type)
            with ResumableTransaction.begin(client, action, type_name(Operation.BULK_INSERT), target.opts) as tx:
                check_indexes(tx.config)
                tx.to_inflight()
                context = replace(self.context, instant=tx.instant)
                return BegunAppend(
                    tx.suspend(), target, self.spec, self.incoming, self.schema, self.planned_on, context, created
                )
        except BaseException:
            if created:
                _remove(target.storage, target.opts)
            raise


@dataclass(frozen=True, slots=True)
class BegunAppend:
    """A running bulk insert, to be pickled: the state of its transaction, and the remaining parts of `AppendJob`.
    ``created``: the table was created by it."""

    state: SuspendedTransaction
    target: WriteTarget
    spec: KeySpec
    incoming: pa.Schema
    schema: pa.Schema
    planned_on: str | None
    context: WriteContext
    created: bool

    def write(self, batches: Iterable[pa.RecordBatch], task: TaskId) -> bytes:
        """Write the rows of a task. Return the encoded write stats of its files.

        Raises:
            RecordKeyError: A row has no key, or its partition is not a valid folder name.
        """
        return bulk_insert_task(self._keyed(batches, task), self.context, task)

    def commit(self, stats: Iterable[bytes]) -> None:
        """Publish the write, then clean and archive if due.

        Raises:
            ConflictError: Another writer committed a conflicting change first, or considered this one dead; the write
                is rolled back completely.
        """
        storage, opts = self.state.storage, self.target.opts
        written = decode_stats(stats)
        with ResumableTransaction.resume(self.state) as tx:
            if written.num_rows == 0 and not opts.get_typed(options.ALLOW_EMPTY_COMMIT):
                tx.abort()
                return
            agree = opts.get_typed(options.SCHEMA_CONFLICT_RESOLUTION)
            metadata = CommitMetadata(
                type_name(Operation.BULK_INSERT), written, self.target.extra_metadata(self.schema)
            )
            outcome = tx.commit(metadata, conditions=CommitConditions(self.planned_on, agree))
        if isinstance(outcome, Conflicted):
            raise outcome.error()
        services = PostCommitServices(storage, opts)
        with services.run_async(LOCAL):
            services.clean_and_archive(LOCAL)

    def abort(self) -> None:
        """Roll back the write. Does nothing if it is committed."""
        ResumableTransaction.resume(self.state).abort()
        if self.created:
            _remove(self.state.storage, self.target.opts)

    def _keyed(self, batches: Iterable[pa.RecordBatch], task: TaskId) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in with_offsets(batches):
            # Spark adds the session's time zone to timestamps, and may send large texts.
            batch = batch.select(self.incoming.names).cast(spark_arrow_schema(self.incoming))
            rows = self._with_key_types(batch)
            if self.spec.auto_keys:
                keys = generated_keys(self.state.instant.requested, task.partition, first, rows.num_rows)
                first += rows.num_rows
            else:
                keys = new_record_keys(rows, self.spec)
            yield rows.append_column(RECORD_KEY, keys).append_column(PARTITION_PATH, partition_paths(rows, self.spec))

    def _with_key_types(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with the table's types of key and partition columns, which have other texts than narrower
        ones: 1 is ``1.0`` as a double."""
        for name in (*self.spec.record_fields, *(field.name for field in self.spec.partition_fields)):
            top = name if name in rows.schema.names else name.split(".")[0]
            at, stored = rows.schema.get_field_index(top), self.schema.get_field_index(top)
            if at >= 0 and stored >= 0:
                target = self.schema.field(stored)
                rows = rows.set_column(at, target, convert(rows.column(at), target.type, top))
        return rows


def prepare_append(source: Mapping[str, str], columns: StructType) -> AppendJob:
    """Check everything that can be checked without the data, without changing anything.

    Args:
        source: Options of the data source, with the path.
        columns: Columns of the rows.

    Raises:
        QueryError: There is no path.
        UnsupportedTableError: The operation, the table or an option requires Spark jobs.
        ConfigError: Options contradict each other or the table.
        SchemaMismatchError: The columns cannot be converted to the table's.
    """
    given: dict[str, Any] = dict(source)
    path = given.pop("path", None)
    if path is None:
        raise QueryError("format('hudi') requires the path of a table: .save(path)")
    refuse_misspelled(given)
    opts = Options.parse(given)
    check_unsupported_options(opts)
    storage = open_storage(path, opts)
    client = open_existing(storage, opts)
    if client is None:
        refuse_nested_table(storage.root, opts)
    target = WriteTarget.from_options(storage, client, opts)
    config, opts = target.config, target.opts
    check_operation(opts, keyed=bool(config.record_keys))
    check_options(config, opts)
    check_indexes(config)
    check_writable(config, target.merging, Operation.BULK_INSERT, opts)
    pinned = None if client is None else TableSnapshot.load(client)
    if pinned is not None:
        check_not_bucketed(pinned)
    spec = key_spec_of_write(target, pinned)
    check_keys(spec)
    table = columns_without_history(pinned)
    incoming = checked_own_columns(from_spark_json(columns.json()))
    check_key_columns(incoming, spec)
    schema = write_schema(incoming, None if table is None else table.schema, config, Operation.BULK_INSERT, opts)
    check_index_of_write(storage, config, remove_meta_columns(schema), opts)
    context = write_context(target, Operation.BULK_INSERT, "", schema)
    planned_on = None if table is None else table.recorded
    return AppendJob(target, client, spec, incoming, schema, planned_on, context)


def _remove(storage: Storage, opts: Options) -> None:
    """Remove a table without commits; errors are logged, because the first error is the one to report."""
    try:
        remove_empty_table(storage, opts)
    except HudiError as failure:
        _log.warning("the empty table at %s was not removed: %s", storage.uri(), failure)
