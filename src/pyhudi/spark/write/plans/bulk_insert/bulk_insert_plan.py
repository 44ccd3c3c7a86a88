"""Plan of a bulk_insert: one pass over the input, new file groups only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.config import options
from pyhudi.spark.execution.write_stages import run_bulk_insert
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.keys.deduplication import dedupe
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.write.plans.bulk_insert.bulk_insert_sort import sort_for_bulk_insert
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class BulkInsertPlan:
    """A `WritePlan` that does not depend on the table. Rows are read once; an invalid key rolls the write back."""

    job: WriteJob

    @property
    def slices(self) -> pa.Table:
        """Return no file groups: the plan depends on none."""
        return SLICE_SCHEMA.empty_table()

    @property
    def row_count(self) -> None:
        """Return None: rows are not counted before they are written."""

    @property
    def planned_changes(self) -> None:
        """Return None, for the same reason."""

    def is_current(self, timeline: Timeline, metadata_partitions: Collection[str]) -> bool:  # noqa: ARG002
        """Return True."""
        return True

    def inflight_metadata(self) -> None:
        """Return None: the inflight file is empty."""

    def write(self, instant: str) -> pa.Table:
        """Write the rows to new file groups; return the write stats. Runs a Spark job."""
        job = self.job
        rows = with_keys(job.df, job.spec, instant)
        if job.opts.get_typed(options.COMBINE_BEFORE_INSERT):
            rows = dedupe(rows, job.merging, global_keys=job.global_keys)
        rows, together = sort_for_bulk_insert(rows, job.opts, partitioned=bool(job.spec.partition_fields))
        return run_bulk_insert(rows, job.context(instant), sorted_input=together)

    def key_changes(self, instant: str, stats: pa.Table, replaced: pa.Table | None) -> KeyChanges:  # noqa: ARG002
        """Return the known changes of keys: the files that contain them."""
        return KeyChanges(stats)

    def release(self) -> None:
        """Do nothing: no rows are cached."""
