"""One write: what is known of it before it begins, and the steps that all kinds of writes share."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pyhudi.config import Options, options
from pyhudi.config.values import Operation
from pyhudi.errors import HudiError
from pyhudi.index.bucketing import Bucketing
from pyhudi.keygen import KeySpec
from pyhudi.metadata.indexdelta import RECORD_INDEX, IndexDelta
from pyhudi.schema.arrow_avro import to_avro
from pyhudi.spark.expressionindex import expression_delta
from pyhudi.spark.failures import spark_errors
from pyhudi.spark.filefacts import SparkFacts
from pyhudi.spark.indexbeside import delta_beside
from pyhudi.spark.recorddelta import KeyChanges, index_delta
from pyhudi.spark.secondaryindex import secondary_delta
from pyhudi.storage import Storage
from pyhudi.table.config import TableConfig
from pyhudi.table.merging import MergeSettings
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.table.properties_file import META_FOLDER, PATH
from pyhudi.timeline.metadata import WRITE_STAT_SCHEMA, CommitMetadata
from pyhudi.transaction.begin import current_config
from pyhudi.transaction.outcome import Conflicted
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.context import WriteContext
from pyhudi.write.operations import action_of, type_name
from pyhudi.write.result import WriteResult
from pyhudi.write.settings import write_context

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A write that has passed every check that needs no data.

    ``client`` is None while the table does not exist; ``config`` is then what it will be created with. ``df`` has the
    user's own columns, ``schema`` the columns of the files that are written; ``planned_on`` are the table's columns as
    they were recorded then (Avro JSON).
    """

    df: DataFrame
    storage: Storage
    client: TableMetaClient | None
    config: TableConfig
    merging: MergeSettings
    opts: Options
    operation: Operation
    spec: KeySpec
    schema: pa.Schema
    planned_on: str | None = None

    @property
    def action(self) -> str:
        """The timeline action of the write."""
        return action_of(self.operation, self.config.table_type)

    @property
    def bucketing(self) -> Bucketing | None:
        """How rows are spread over buckets; None: by another index."""
        found = Bucketing.of(self.config, self.opts)
        if found is None or self.client is None:
            return found
        completed = [instant.requested for instant in self.client.active_timeline().timeline.completed()]
        return found.of_table(self.storage, completed)

    @property
    def global_keys(self) -> bool:
        """Whether two rows of the input with the same key are one record also when they are of different partitions."""
        return self.opts.get_typed(options.INDEX_TYPE).is_global

    def context(self, instant: str) -> WriteContext:
        """What the tasks need."""
        return write_context(self.storage, self.config, self.merging, self.opts, self.operation, instant, self.schema)

    def metadata(self, stats: pa.Table, replaced: pa.Table | None = None) -> CommitMetadata:
        """What the commit will say."""
        return CommitMetadata(type_name(self.operation), stats, self.extra_metadata(), replaced=replaced)

    def extra_metadata(self) -> Mapping[str, str]:
        """The table's columns, and options that the user wants to have kept with the commit."""
        prefix = self.opts.get_typed(options.COMMIT_METADATA_KEY_PREFIX)
        kept = self.opts.with_prefix(prefix) if prefix else {}
        return {"schema": to_avro(self.schema, self.config.name), **kept}

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Begin the write, on a table that is made if need be. An error inside rolls it back; a table that was made
        for this write and stays without any write is taken away again."""
        created = self.client is None
        client = self.client or TableMetaClient.create(self.storage, self.config, self.opts)
        try:
            facts = SparkFacts(self.df.sparkSession)
            begun = Transaction.begin(client, self.action, type_name(self.operation), self.opts, facts)
            with begun as tx, spark_errors(self):
                yield tx
        except BaseException:
            if created:
                try:
                    remove_empty_table(self.storage)
                except HudiError as failure:  # what went wrong first is what the caller has to know
                    _log.warning("the empty table at %s is left behind: %s", self.storage.uri(), failure)
            raise

    def index_delta(self, tx: Transaction, changes: KeyChanges) -> IndexDelta | None:
        """Bring the record index up to date with a write (`pyhudi.spark.recorddelta.index_delta`); None without one."""
        spark = self.df.sparkSession
        return index_delta(spark, self.storage, tx.config, tx.typed_options, tx.instant, changes)

    def commit(self, tx: Transaction, metadata: CommitMetadata, index: IndexDelta | None = None) -> WriteResult:
        """Publish the write.

        Raises:
            ConflictError: another writer was faster.
        """
        nothing = metadata.stats.num_rows == 0 and not _replaces(metadata)
        if nothing and not self.opts.get_typed(options.ALLOW_EMPTY_COMMIT):
            tx.abort()
            return WriteResult(self.storage.uri(), type_name(self.operation), created_table=self.client is None)
        index = self._with_others(tx, metadata, index)
        agree = self.opts.get_typed(options.SCHEMA_CONFLICT_RESOLUTION)
        outcome = tx.commit(metadata, planned_on=self.planned_on, agree_on_columns=agree, index=index)
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
        )

    def _with_others(self, tx: Transaction, metadata: CommitMetadata, index: IndexDelta | None) -> IndexDelta | None:
        """Bring other indexes up to date: expression indexes, and secondary indexes if the record index, which they
        need, is; and, when the write is going to be committed, those that are being built or were built meanwhile."""
        if self.client is None:
            return index
        client, spark = self.client, self.df.sparkSession
        before = index or IndexDelta()

        def delta(config: TableConfig, only: Collection[str] | None = None) -> IndexDelta:
            found = IndexDelta()
            if RECORD_INDEX in before.partitions:
                found = found.and_(
                    secondary_delta(spark, client, config, self.opts, tx.timeline, tx.instant, metadata, only)
                )
            return found.and_(expression_delta(spark, client, config, tx.instant, metadata, only))

        def keys(config: TableConfig) -> IndexDelta | None:
            """What the write tells a record index that was begun, or built, since the write began."""
            known = {*config.metadata_partitions, *config.metadata_partitions_inflight}
            lost = RECORD_INDEX in tx.config.metadata_partitions and RECORD_INDEX not in before.partitions
            if lost or RECORD_INDEX not in known:
                return None
            return delta_beside(spark, client, config, self.opts, tx.timeline, tx.instant, metadata)

        def late(config: TableConfig, only: Collection[str]) -> IndexDelta:
            found = delta(config, only) if set(only) - {RECORD_INDEX} else IndexDelta()
            return found.and_(keys(config) if RECORD_INDEX in only else None)

        now = before.and_(delta(tx.config))
        if RECORD_INDEX not in now.partitions:
            # what can be told before others have to wait
            now = now.and_(keys(current_config(client.storage, tx.config)))
        return replace(now, late=late)


def _replaces(metadata: CommitMetadata) -> bool:
    """Whether file groups go out of view."""
    return metadata.replaced is not None and metadata.replaced["file_id"].null_count < metadata.replaced.num_rows


def remove_empty_table(storage: Storage) -> None:
    """Take away a table in which nothing was ever committed, and in which nobody is writing."""
    client = TableMetaClient.open(storage)
    if not client.active_timeline().timeline.writes():
        # the properties first: without them the rest is no table
        storage.delete(PATH)
        storage.delete_tree(META_FOLDER)


def touched_partitions(stats: pa.Table) -> list[str]:
    """The partition paths that files were written to."""
    partitions: list[str] = pc.unique(stats["partitionPath"]).to_pylist()
    return sorted(partitions)
