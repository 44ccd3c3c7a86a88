"""bulk_insert: one pass over the input, new file groups only."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config import options
from pyhudi.spark.execution.write_stages import run_bulk_insert
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges
from pyhudi.spark.keys.deduplication import dedupe
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.write.bulk_insert_sort import arrange
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.write.write_result import WriteResult


def bulk_insert(job: WriteJob) -> WriteResult:
    """Write all rows into new files. Rows are read once; a bad key among them rolls the write back."""
    with job.transaction() as tx:
        tx.to_inflight(None)
        stats = write_new_files(job, tx.instant)
        return job.commit(tx, job.metadata(stats), job.index_delta(tx, KeyChanges(stats)))


def write_new_files(job: WriteJob, instant: str) -> pa.Table:
    """Write the rows of a job into new file groups; returns the write stats."""
    rows = with_keys(job.df, job.spec, instant)
    if job.opts.get_typed(options.COMBINE_BEFORE_INSERT):
        rows = dedupe(rows, job.merging, global_keys=job.global_keys)
    rows, together = arrange(rows, job.opts, partitioned=bool(job.spec.partition_fields))
    return run_bulk_insert(rows, job.context(instant), sorted_input=together)
