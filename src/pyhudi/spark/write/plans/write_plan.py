"""Protocol of plans: what one write does, planned on a table as it was at one moment."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

import pyarrow as pa

from pyhudi.config import options
from pyhudi.config.enums import Operation
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.session_settings import shuffle_partitions
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.timeline import Timeline

_PARALLELISM = {
    Operation.UPSERT: options.UPSERT_PARALLELISM,
    Operation.DELETE: options.DELETE_PARALLELISM,
    Operation.BULK_INSERT: options.BULKINSERT_PARALLELISM,
}


class WritePlan(Protocol):
    """The rows of a write and the file groups that they go to (`pyhudi.spark.write.write_execution` carries it out)."""

    @property
    def slices(self) -> pa.Table:
        """The file groups that the plan saw (SLICE_SCHEMA)."""

    def holds(self, timeline: Timeline, metadata_partitions: Collection[str]) -> bool:
        """Return whether the plan can still be carried out: whether no instant that it depends on has come, gone or
        completed since, and it gives the partitions of the metadata table what they need."""

    def inflight_metadata(self) -> CommitMetadata | None:
        """Return the content of the inflight file; None: an empty file."""

    def write(self, instant: str) -> pa.Table:
        """Write the rows; returns the write stats (WRITE_STAT_SCHEMA). Runs Spark jobs."""

    def key_changes(self, instant: str, stats: pa.Table, replaced: pa.Table | None) -> KeyChanges:
        """Return what the write has done to record keys. ``replaced`` (REPLACED_SCHEMA) goes out of view."""

    def release(self) -> None:
        """Free what the plan keeps in the session's memory."""


def requested_tasks(job: WriteJob) -> int:
    """The number of tasks that the user's options ask for; 0: none in particular."""
    return int(job.opts.get_typed(_PARALLELISM.get(job.operation, options.INSERT_PARALLELISM)))


def most_tasks(job: WriteJob) -> int:
    """The most tasks that write file groups at a time."""
    return requested_tasks(job) or shuffle_partitions(job.df.sparkSession)
