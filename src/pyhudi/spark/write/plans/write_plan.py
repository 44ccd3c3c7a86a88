"""Protocol of write plans, each made on a table as of one instant."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa

from pyhudi.config import options
from pyhudi.config.enums import Operation
from pyhudi.metadata.metadata_layout import FILE_PARTITIONS
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.session_settings import shuffle_partitions
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.timeline import Timeline
from pyhudi.write.write_result import ChangeCounts

_PARALLELISM = {
    Operation.UPSERT: options.UPSERT_PARALLELISM,
    Operation.DELETE: options.DELETE_PARALLELISM,
    Operation.BULK_INSERT: options.BULKINSERT_PARALLELISM,
}


class WritePlan(Protocol):
    """The rows of a write and their file groups (`pyhudi.spark.write.write_execution` executes it)."""

    @property
    def slices(self) -> pa.Table:
        """Return the file groups that the plan is based on (SLICE_SCHEMA)."""

    @property
    def row_count(self) -> int | None:
        """Return the number of rows to write; None: it is not known yet."""

    @property
    def planned_changes(self) -> ChangeCounts | None:
        """Return the numbers of the rows that a statement changes; None: they are not counted."""

    def is_current(self, timeline: Timeline, metadata_partitions: Collection[str]) -> bool:
        """Return True if the plan is still valid: no instant that it depends on was added, removed or completed
        since, and it supplies the updates that the partitions of the metadata table require."""

    def inflight_metadata(self) -> CommitMetadata | None:
        """Return the content of the inflight file; None for an empty file."""

    def write(self, instant: str) -> pa.Table:
        """Write the rows; return the write stats (WRITE_STAT_SCHEMA). Runs Spark jobs."""

    def key_changes(self, instant: str, stats: pa.Table, replaced: pa.Table | None) -> KeyChanges:
        """Return the changes of record keys by the write. ``replaced`` (REPLACED_SCHEMA) are the file groups that it
        replaces."""

    def release(self) -> None:
        """Release the rows that the plan caches in the session."""


def without_key_indexes(partitions: Collection[str]) -> bool:
    """Return True if no partition of the metadata table needs the individual keys."""
    return set(partitions) <= set(FILE_PARTITIONS)


def requested_tasks(job: WriteJob) -> int:
    """Return the number of tasks that the user's options request; 0 if none is set."""
    return int(job.opts.get_typed(_PARALLELISM.get(job.operation, options.INSERT_PARALLELISM)))


def max_tasks(job: WriteJob) -> int:
    """Return the maximum number of tasks that write file groups at a time."""
    return requested_tasks(job) or shuffle_partitions(job.df.sparkSession)
