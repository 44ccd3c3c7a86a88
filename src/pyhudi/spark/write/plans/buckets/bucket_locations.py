"""Locations of keys by consistent hashing, and checks of the settings of a bucket index."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import BucketIndexEngine, TableType
from pyhudi.index.bucket_file_ids import bucket_groups
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.bucket_number_check import check_buckets
from pyhudi.index.consistent_hashing import HashingMetadata, VisibleGroups, load_metadata, partitions_with_buckets
from pyhudi.spark.write.plans.buckets.consistent_bucket_routing import ConsistentBucketLocations, refuse_replacing
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.view.file_slicing import has_log_files
from pyhudi.timeline.timeline import Timeline
from pyhudi.write.write_checks import check_log_free
from pyhudi.write.write_operations import REPLACING


def bucket_locations(
    job: WriteJob, bucketing: BucketIndex, slices: pa.Table, timeline: Timeline | None
) -> ConsistentBucketLocations | None:
    """Check whether the table can be written with these settings of the index; return the locations of keys by
    consistent hashing (None if they follow from the key alone).

    Raises:
        UnsupportedTableError: The table has log files although it must not, or consistent hashing does not support the
            operation.
        ConfigError: The table was written with other settings of the bucket index.
    """
    if bucketing.engine is BucketIndexEngine.CONSISTENT_HASHING:
        if job.operation in REPLACING:
            refuse_replacing(job.operation.value)
        return ConsistentBucketLocations.from_slices(
            bucketing, {} if timeline is None else _known_buckets(job, slices, timeline), slices
        )
    if job.operation in REPLACING:
        return None
    if job.config.table_type is not TableType.MERGE_ON_READ:
        check_log_free(int(pc.sum(has_log_files(slices)).as_py() or 0))
    bucket_groups(slices)
    check_buckets(job.storage, bucketing, slices, populate_meta_fields=job.config.populate_meta_fields)
    return None


def _known_buckets(job: WriteJob, slices: pa.Table, timeline: Timeline) -> dict[str, HashingMetadata]:
    completed = timeline.completed().requested_times
    groups = VisibleGroups(timeline.pending().requested_times, slices["file_id"])
    return load_metadata(job.storage, partitions_with_buckets(job.storage), completed, marks=True, groups=groups)
