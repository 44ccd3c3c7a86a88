"""Write job: the input of a write before it begins, and the steps that all kinds of writes share."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pyhudi.config import Options, options
from pyhudi.config.enums import DuplicatePolicy, Operation
from pyhudi.errors import HudiError
from pyhudi.index.bucket_index import Bucketing
from pyhudi.keygen import KeySpec
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.spark.indexes.dependent_indexes import with_other_indexes
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges, index_delta
from pyhudi.spark.lookup.key_constraint import KeyConstraint
from pyhudi.spark.spark_errors import spark_errors
from pyhudi.storage import Storage
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.table.schema_history import ColumnNamesByInstant
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import WRITE_STAT_SCHEMA, CommitMetadata
from pyhudi.transaction.commit_outcome import Conflicted
from pyhudi.transaction.commit_request import CommitConditions
from pyhudi.transaction.conflicts.serializable_reads import ReadSet
from pyhudi.transaction.table_overwrite.created_table_removal import remove_empty_table
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.settings.write_context import WriteContext
from pyhudi.write.settings.write_settings import write_context
from pyhudi.write.settings.write_target import WriteTarget
from pyhudi.write.write_operations import action_of, type_name
from pyhudi.write.write_result import WriteResult

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Differences of the rows of an UPDATE, DELETE or MERGE from those of other writes (`pyhudi.spark.dml`).

    Args:
        located: Rows of the table say which file group they are in.
        keys_assigned: Columns of the record key may have been assigned, so that keys have to be compared.
        partition_assigned: The same of partition fields: rows may move to another partition.
        new_keys: The keys of new records are known not to be in the table.
        distinct_keys: And no two of them have the same.
        adds: There may be new records.
        bases: The base files (partition, file_id, base_path) in which rows say their positions; None: they do not.
        cached: The rows are cached, so that evaluating them twice is cheap.
        deletes: Some of the rows may be deletes.
        unassigned: Columns of the table that no update assigns. Rows that say their positions have null there, and
            keep what is stored.
    """

    located: bool
    keys_assigned: bool = False
    partition_assigned: bool = False
    new_keys: bool = False
    distinct_keys: bool = False
    adds: bool = True
    bases: pa.Table | None = None
    cached: bool = False
    deletes: bool = True
    unassigned: frozenset[str] = frozenset()

    @property
    def only_updates(self) -> bool:
        """True if all rows are updates of rows at known positions."""
        return self.bases is not None and not (self.adds or self.deletes or self.partition_assigned)


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A write that has passed every check that needs no data.

    ``client`` is None while the table does not exist; ``config`` is then what it will be created with. ``df`` has the
    user's own columns, ``schema`` the columns of the files that are written; ``planned_on`` are the table's columns
    as they were recorded then (Avro JSON). ``bucketing`` distributes rows over buckets (None: with another index).
    ``changes``: the rows are changes of rows that were read; ``reads``: what the statement has read. ``extra`` is
    kept in the commit's extra metadata. ``stored_keys``: rows have the keys that they were read with
    (`pyhudi.spark.write.stored_keys`). ``instant``: the requested time of a write that always has the same (None: a
    new one). ``names_at``: the names of columns in older files (None: the table keeps no history of its schemas).
    ``key_constraint``: what the rows have to fulfil for the write to be done. ``partitions``: paths of the partitions
    that an operation replaces or drops, whatever characters they have (none: as the options say).
    """

    df: DataFrame
    target: WriteTarget
    client: TableMetaClient | None
    operation: Operation
    spec: KeySpec
    schema: pa.Schema
    planned_on: str | None = None
    bucketing: Bucketing | None = None
    changes: RowChanges | None = None
    reads: ReadSet | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    stored_keys: bool = False
    instant: str | None = None
    names_at: ColumnNamesByInstant | None = None
    key_constraint: KeyConstraint | None = None
    partitions: tuple[str, ...] = ()

    @property
    def storage(self) -> Storage:
        """Storage of the table."""
        return self.target.storage

    @property
    def config(self) -> TableConfig:
        """Configuration of the table, or of the table to create."""
        return self.target.config

    @property
    def merging(self) -> MergeSettings:
        """Merge settings of the write."""
        return self.target.merging

    @property
    def opts(self) -> Options:
        """Options of the write."""
        return self.target.opts

    @property
    def action(self) -> str:
        """The timeline action of the write."""
        return action_of(self.operation, self.config.table_type)

    @property
    def global_keys(self) -> bool:
        """True if two rows of the input with the same key are one record even when they are of different partitions."""
        return self.opts.get_typed(options.INDEX_TYPE).is_global

    @property
    def duplicate_policy(self) -> DuplicatePolicy:
        """Treatment of records of an insert whose keys the table already has."""
        if self.operation is not Operation.INSERT:
            return DuplicatePolicy.NONE
        if self.opts.get_typed(options.INSERT_DROP_DUPLICATES):
            return DuplicatePolicy.DROP
        return self.opts.get_typed(options.INSERT_DUP_POLICY)

    @property
    def combines(self) -> bool:
        """True if rows with the same key are merged before they are written; rows that have their locations never
        are."""
        option = {
            Operation.UPSERT: options.COMBINE_BEFORE_UPSERT,
            Operation.DELETE: options.COMBINE_BEFORE_DELETE,
        }.get(self.operation, options.COMBINE_BEFORE_INSERT)
        return self.opts.get_typed(option) or self.duplicate_policy is DuplicatePolicy.DROP

    def slices(self, active: ActiveTimeline) -> pa.Table:
        """The file groups (SLICE_SCHEMA) that the table had at one moment."""
        return FileSystemView.load(PinnedTable(self.storage, self.config, active)).latest_slices()

    def context(self, instant: str) -> WriteContext:
        """Return the context of the tasks."""
        context = write_context(self.target, self.operation, instant, self.schema)
        context = replace(context, names_at=self.names_at)
        if self.changes is None:
            return context
        unassigned = self.changes.unassigned
        return replace(context, unassigned=unassigned, updates_columns=bool(unassigned) and self.changes.only_updates)

    def metadata(self, stats: pa.Table, replaced: pa.Table | None = None) -> CommitMetadata:
        """Return the metadata of the commit."""
        return CommitMetadata(type_name(self.operation), stats, self.extra_metadata(), replaced=replaced)

    def extra_metadata(self) -> Mapping[str, str]:
        """Return the entries of commit metadata besides file statistics."""
        return {**self.target.extra_metadata(self.schema), **self.extra}

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Begin the write, on a table that is created if necessary. An error inside rolls it back; a table that was
        created for this write and stays without any write is removed."""
        created = self.client is None
        client = self.client or TableMetaClient.create(self.storage, self.config, self.opts)
        try:
            stats_reader = SparkFileStatsReader(self.df.sparkSession)
            begun = Transaction.begin(
                client, self.action, type_name(self.operation), self.opts, stats_reader, instant=self.instant
            )
            with begun as tx, spark_errors(self.df, self.spec):
                self._check_reads(tx)
                yield tx
        except BaseException:
            if created:
                try:
                    remove_empty_table(self.storage, self.opts)
                except HudiError as failure:  # what went wrong first is what the caller has to know
                    _log.warning("the empty table at %s is left behind: %s", self.storage.uri(), failure)
            raise

    def _check_reads(self, tx: Transaction) -> None:
        """Fail before anything is written if another writer has changed what this one read.

        Raises:
            ConflictError: so it is.
        """
        if self.reads is None or self.client is None:
            return
        conflict = self.reads.find_conflict(tx.instant, self.client.active_timeline())
        if conflict is not None:
            raise conflict.error()

    def index_delta(self, tx: Transaction, changes: KeyChanges) -> IndexDelta | None:
        """Update the record index with a write (`pyhudi.spark.indexes.record_index.record_index_update.index_delta`);
        None without one."""
        spark = self.df.sparkSession
        return index_delta(spark, self.storage, tx.config, tx.opts, tx.instant, changes)

    def commit(self, tx: Transaction, metadata: CommitMetadata, index: IndexDelta | None = None) -> WriteResult:
        """Publish the write.

        Raises:
            ConflictError: another writer was faster.
        """
        nothing = metadata.stats.num_rows == 0 and not _replaces(metadata)
        if nothing and not self.opts.get_typed(options.ALLOW_EMPTY_COMMIT):
            tx.abort()
            return WriteResult(self.storage.uri(), type_name(self.operation), created_table=self.client is None)
        if self.client is not None:
            commit = IndexedCommit.of(self.df.sparkSession, self.client, self.opts, tx, metadata)
            index = with_other_indexes(commit, index)
        agree = self.opts.get_typed(options.SCHEMA_CONFLICT_RESOLUTION)
        outcome = tx.commit(metadata, index=index, conditions=CommitConditions(self.planned_on, agree, self.reads))
        if isinstance(outcome, Conflicted):
            raise outcome.error()
        return WriteResult(
            self.storage.uri(),
            type_name(self.operation),
            outcome.instant.requested,
            outcome.completion,
            self.client is None,
            metadata.stats.select(WRITE_STAT_SCHEMA.names),
            metadata.replaced if metadata.replaced is not None else WriteResult("", "").replaced,
            outcome.warnings,
            outcome.millis,
        )


def _replaces(metadata: CommitMetadata) -> bool:
    """True if file groups go out of view."""
    return metadata.replaced is not None and metadata.replaced["file_id"].null_count < metadata.replaced.num_rows


def touched_partitions(stats: pa.Table) -> list[str]:
    """The partition paths that files were written to."""
    partitions: list[str] = pc.unique(stats["partitionPath"]).to_pylist()
    return sorted(partitions)
