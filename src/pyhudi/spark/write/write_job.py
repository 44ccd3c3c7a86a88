"""Write job: the input of a write before it begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pyhudi.config import Options, options
from pyhudi.config.enums import DuplicatePolicy, Operation
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.read.selection.table_files import load_view
from pyhudi.spark.lookup.key_constraint import KeyConstraint
from pyhudi.spark.merger_pickling import check_picklable
from pyhudi.spark.write.dml_commit import DmlCommit, RowChanges
from pyhudi.storage import Storage
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.schema_history import ColumnNamesByInstant
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Instant
from pyhudi.transaction.conflicts.serializable_reads import ReadSet
from pyhudi.write.settings.write_context import WriteContext
from pyhudi.write.settings.write_settings import write_context
from pyhudi.write.settings.write_target import WriteTarget
from pyhudi.write.write_operations import action_of, type_name


@dataclass(frozen=True, slots=True)
class IdempotentCommit:
    """Identification of a commit whose rows may be written more than once, such as those of a micro-batch.

    Attributes:
        extra: Entries of the commit's extra metadata, which identify the rows.
        already_committed: Returns another writer's commit that contains the rows, called under the lock of the table
            before the publication: the write is rolled back then, and raises ConflictError.
    """

    extra: Mapping[str, str]
    already_committed: Callable[[ActiveTimeline], Instant | None] | None


@dataclass(frozen=True, slots=True)
class ExistingTable:
    """The table of a write before the write.

    Attributes:
        client: The table.
        active: Its timeline when the write was checked.
        columns: Its recorded columns (Avro JSON); None: it has none yet.
        names_at: Names of columns in older files; None: the table has no schema history.
    """

    client: TableMetaClient
    active: ActiveTimeline
    columns: str | None = None
    names_at: ColumnNamesByInstant | None = None


@dataclass(frozen=True, slots=True)
class RowKeys:
    """Source of the keys of the rows of a write.

    Attributes:
        spec: Specification of keys.
        stored: Rows have the keys with which they were read (`pyhudi.spark.write.stored_keys`).
    """

    spec: KeySpec
    stored: bool = False


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A write that has passed all checks that do not require data.

    Attributes:
        df: Rows with the user's own columns.
        target: The table and the settings of the write.
        existing: The table before the write; None if it does not exist yet.
        operation: Operation of the write.
        keys: Keys of the rows.
        schema: Columns of the files that are written.
        bucketing: Distribution of rows over buckets; None: with another index.
        dml: What makes the commit of an UPDATE, DELETE or MERGE different; None: of another write.
        instant: Requested instant of a write that always has the same one; None: a new one.
        partitions: Paths of the partitions that the operation replaces or drops, verbatim; empty: as the options say.
        idempotent: How the commit is recognized, if its rows may be written more than once.
        cached: The caller has persisted the rows.
    """

    df: DataFrame
    target: WriteTarget
    existing: ExistingTable | None
    operation: Operation
    keys: RowKeys
    schema: pa.Schema
    bucketing: BucketIndex | None = None
    dml: DmlCommit | None = None
    instant: str | None = None
    partitions: tuple[str, ...] = ()
    idempotent: IdempotentCommit | None = None
    cached: bool = False

    @property
    def client(self) -> TableMetaClient | None:
        """The table; None if it does not exist yet."""
        return None if self.existing is None else self.existing.client

    @property
    def spec(self) -> KeySpec:
        """Specification of keys."""
        return self.keys.spec

    @property
    def changes(self) -> RowChanges | None:
        """Differences from other writes, if the rows are changes of rows that were read."""
        return None if self.dml is None else self.dml.changes

    @property
    def key_constraint(self) -> KeyConstraint | None:
        """Condition on the keys under which the write is executed."""
        return None if self.dml is None else self.dml.key_constraint

    @property
    def counts_changes(self) -> bool:
        """True if the updated, deleted and new rows are counted."""
        return self.dml is not None and self.dml.counts_changes

    @property
    def reads(self) -> ReadSet | None:
        """File groups that the write has read."""
        return None if self.dml is None else self.dml.reads

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
        """Timeline action of the write."""
        return action_of(self.operation, self.config.table_type)

    @property
    def global_keys(self) -> bool:
        """True if rows with the same key are one record even if they are in different partitions."""
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
        """Return the file slices (SLICE_SCHEMA) of the table at a timeline; see `view`."""
        return self.view(active).latest_slices()

    def view(self, active: ActiveTimeline) -> FileSystemView:
        """Return the files of the table at a timeline.

        Raises:
            TransactionError: Apache Hudi has changed the version of the table halfway.
        """
        return load_view(TableSnapshot(self.storage, self.config, active), self.opts)

    def without_in_task_tagging(self) -> WriteJob:
        """Return the job whose rows are tagged before the tasks that write them."""
        opts = self.opts.merged({options.INDEX_TASK_ROWS.key: 0})
        return replace(self, target=replace(self.target, opts=opts))

    def context(self, instant: str) -> WriteContext:
        """Return the context of the tasks."""
        context = write_context(self.target, self.operation, instant, self.schema)
        context = context.with_column_names(None if self.existing is None else self.existing.names_at)
        if self.changes is None:
            return context
        unassigned = self.changes.assigned.unassigned
        updates_columns = bool(unassigned) and self.changes.only_updates
        hard_deletes = context.merging.hard_deletes and not self.changes.ordered_deletes
        merging = replace(
            context.merging, unassigned=unassigned, updates_columns=updates_columns, hard_deletes=hard_deletes
        )
        return replace(context, merging=merging)

    def check_file_options(self) -> None:
        """Check the options of files, such as codecs and sizes.

        Raises:
            ConfigError: Options are invalid, or the merger of the table cannot be pickled.
            UnsupportedTableError: The merger of the table is not registered.
        """
        check_picklable(self.context("").merging.rules)  # An instant makes no difference.

    def metadata(self, stats: pa.Table, replaced: pa.Table | None = None) -> CommitMetadata:
        """Return the metadata of the commit."""
        return CommitMetadata(type_name(self.operation), stats, self.extra_metadata(), replaced=replaced)

    def extra_metadata(self) -> Mapping[str, str]:
        """Return the entries of commit metadata besides file statistics."""
        idempotence = {} if self.idempotent is None else self.idempotent.extra
        return {**self.target.extra_metadata(self.schema), **idempotence}


def touched_partitions(stats: pa.Table) -> list[str]:
    """Return the partition paths of the written files."""
    partitions: list[str] = pc.unique(stats["partitionPath"]).to_pylist()
    return sorted(partitions)
