"""Buckets of consistent hashing that do not fit the file groups of a table."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from pyhudi.errors import UnsupportedTableError
from pyhudi.index.bucket_counts import BucketCounts
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.consistent_hashing import HashingMetadata
from pyhudi.spark.write.plans.buckets.consistent_bucket_routing import ConsistentBucketLocations

FIRST = HashingMetadata.first("p", 2)
RESIZED = replace(HashingMetadata.first("p", 4), instant="20260101000000001")


@pytest.mark.parametrize(
    ("stored", "cause"),
    [
        (None, "another hoodie.bucket.index.num.buckets$"),
        (FIRST, "its buckets are being resized$"),
        (
            RESIZED,
            r"being resized again, or .* delete \.hoodie/\.bucket_index/\w+/p/20260101000000001\.\* only then$",
        ),
    ],
)
def test_file_groups_without_a_bucket(stored: HashingMetadata | None, cause: str) -> None:
    """The last one as after a restore by Apache Hudi, which leaves the files of resizes that it undoes."""
    index = BucketIndex(("id",), BucketCounts(2))
    slices = pa.table({"partition": ["p"], "file_id": ["none-0"], "base_path": ["p/none-0_0-0-0_1.parquet"]})
    with pytest.raises(UnsupportedTableError, match=cause):
        ConsistentBucketLocations.from_slices(index, {"p": stored} if stored else {}, slices)
