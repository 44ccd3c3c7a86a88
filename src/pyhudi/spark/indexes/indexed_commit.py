"""Commit for which the indexes of a table are updated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.metadata.indexes.file_slice_changes import SliceChanges
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.transaction import Transaction


@dataclass(frozen=True, slots=True)
class IndexedCommit:
    """Commit of a write whose files are written, before it is published.

    Attributes:
        spark: The session.
        client: The table.
        config: Configuration of the table, which names its indexes.
        opts: Options of the write.
        timeline: Timeline on which the write was planned.
        instant: Requested instant of the write.
        metadata: Commit metadata to be published.
        fence: Fence of the write, which tasks check (`GroupFiles`).
    """

    spark: SparkSession
    client: TableMetaClient
    config: TableConfig
    opts: Options
    timeline: Timeline
    instant: str
    metadata: CommitMetadata
    fence: WriteFence

    @classmethod
    def from_transaction(
        cls, spark: SparkSession, client: TableMetaClient, opts: Options, tx: Transaction, metadata: CommitMetadata
    ) -> IndexedCommit:
        """Return the commit of a transaction."""
        return cls(spark, client, tx.config, opts, tx.timeline, tx.instant, metadata, tx.fence)

    @property
    def storage(self) -> Storage:
        """Storage of the table."""
        return self.client.storage

    def slice_changes(self) -> SliceChanges:
        """Return the file groups that the commit changes, with their slices before and after. Lists the partitions of
        the commit."""
        named = self.metadata.stats["partitionPath"]
        if self.metadata.replaced is not None:
            named = pa.chunked_array([*named.chunks, *self.metadata.replaced["partition"].chunks], pa.string())
        partitions = pc.unique(named).drop_null().to_pylist()
        slices = FileSystemView.load(self.client, self.timeline, partitions=partitions).latest_slices()
        return SliceChanges.from_commit(slices, self.metadata)

    def with_config(self, config: TableConfig, fence: WriteFence) -> IndexedCommit:
        """Return the commit with a newer configuration of the table, and another fence."""
        return replace(self, config=config, fence=fence)
