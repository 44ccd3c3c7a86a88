"""Consistent hashing on Spark: Python tasks compute the file groups of rows, because Spark has no such hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from pyhudi.arrow.arrays import contiguous
from pyhudi.config.options import INITIAL_BUCKETS
from pyhudi.errors import UnsupportedTableError
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.consistent_hashing import (
    FIRST_INSTANT,
    FOLDER,
    HashingMetadata,
    consistent_hashes,
    partitions_with_buckets,
)
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.row_serialization import pack_rows
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.storage import Storage, join_path
from pyhudi.table.view.file_group_keys import group_keys, in_groups
from pyhudi.write.location_columns import BASE_PATH, FILE_ID


@lru_cache(maxsize=1_000)
def _first_buckets(partition: str, buckets: int) -> HashingMetadata:
    """Return the initial buckets of a partition, which a task needs for each of its batches."""
    return HashingMetadata.first(partition, buckets)


def _other_cause(partition: str, stored_buckets: Mapping[str, HashingMetadata]) -> str:
    stored = stored_buckets.get(partition)
    if stored is None:
        return f"another {INITIAL_BUCKETS.key}"
    if stored.instant == FIRST_INSTANT:
        return "its buckets are being resized"
    files = join_path(FOLDER, partition, f"{stored.instant}.*")
    return (
        f"its buckets are being resized again, or a restore by Apache Hudi has undone the resize {stored.instant} and "
        f"left its buckets: delete {files} only then"
    )


@dataclass(frozen=True, slots=True)
class ConsistentBucketLocations:
    """Locations of keys, sent to tasks: the buckets of partitions that have stored some, and the base files of buckets.
    Partitions without stored buckets have the default ones, also if they have files, as in a copy of these alone."""

    bucketing: BucketIndex
    stored_buckets: Mapping[str, HashingMetadata]
    base_paths: pa.StringArray
    """The base file of each bucket (null: none), partition by partition."""
    first_rows: Mapping[str, int]
    """The row of the first bucket of each partition in `base_paths`."""

    @classmethod
    def from_slices(
        cls, bucketing: BucketIndex, stored_buckets: Mapping[str, HashingMetadata], slices: pa.Table
    ) -> ConsistentBucketLocations:
        """Return the locations of a table with these file slices (SLICE_SCHEMA).

        Raises:
            UnsupportedTableError: A file group belongs to no bucket.
        """
        without = set(pc.unique(slices["partition"]).to_pylist()).difference(stored_buckets)
        buckets = {**{name: _first_buckets(name, bucketing.buckets) for name in without}, **stored_buckets}
        counts = np.array([len(metadata.prefixes) for metadata in buckets.values()], np.int64)
        ids = pa.array(chain.from_iterable(metadata.file_ids() for metadata in buckets.values()), pa.string())
        partitions = pa.array(buckets, pa.string()).take(pa.array(np.repeat(np.arange(len(counts)), counts)))
        groups = pa.table({"partition": partitions, "file_id": ids})
        unknown_groups = slices.filter(pc.invert(in_groups(slices, groups)))
        if unknown_groups.num_rows:
            partition, file_id = unknown_groups["partition"][0].as_py(), unknown_groups["file_id"][0].as_py()
            raise UnsupportedTableError(
                f"file group {file_id!r} of partition {partition!r} belongs to no bucket of consistent hashing: "
                f"the table was written with another index, or {_other_cause(partition, stored_buckets)}"
            )
        paths = contiguous(slices["base_path"]).take(pc.index_in(group_keys(groups), value_set=group_keys(slices)))
        first_rows = dict(zip(buckets, (np.cumsum(counts) - counts).tolist(), strict=True))
        return cls(bucketing, stored_buckets, paths, first_rows)

    def buckets(self, partition: str) -> HashingMetadata:
        """Return the buckets of a partition."""
        return self.stored_buckets.get(partition) or _first_buckets(partition, self.bucketing.buckets)

    def locate(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with their file groups and the base files of these."""
        fields, legacy_key_split = self.bucketing.fields, self.bucketing.legacy_key_split
        hashes = consistent_hashes(batch.column(RECORD_KEY), fields, legacy_key_split=legacy_key_split)
        encoded = batch.column(PARTITION_PATH).dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        ids: list[str] = []
        paths = [self.base_paths.slice(0, 0)]
        number = hashes.copy()
        for code, partition in enumerate(encoded.dictionary.to_pylist()):
            metadata = self.buckets(partition)
            in_partition = codes == code
            number[in_partition] = metadata.buckets_of(hashes[in_partition]) + len(ids)
            file_ids = metadata.file_ids()
            ids += file_ids
            start = self.first_rows.get(partition)
            count = len(file_ids)
            paths.append(pa.nulls(count, pa.string()) if start is None else self.base_paths.slice(start, count))
        at = pa.array(number)
        columns = [*batch.columns, pa.array(ids, pa.string()).take(at), pa.concat_arrays(paths).take(at)]
        return pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, FILE_ID, BASE_PATH])


def refuse_replacing(what: str) -> NoReturn:
    """Reject a write that replaces whole file groups.

    Raises:
        UnsupportedTableError: Always; ``what`` names the write.
    """
    raise UnsupportedTableError(
        f"{what} is not supported with consistent hashing: the new file groups of a partition would have the ids "
        "of the replaced ones, and be invisible like them; use delete and upsert"
    )


def check_not_consistent(storage: Storage, what: str) -> None:
    """Reject replacing file groups of a table that has consistent hashing, regardless of the index in the options.

    Raises:
        UnsupportedTableError: The table has consistent hashing; ``what`` names the write.
    """
    if partitions_with_buckets(storage):
        refuse_replacing(what)


def check_in_view(stats: pa.Table, replaced: pa.Table) -> None:
    """Check that the written files are visible: the buckets of a partition that another writer has replaced keep
    the ids of their file groups. ``stats`` are write stats, ``replaced`` has partition and file_id.

    Raises:
        UnsupportedTableError: A file belongs to a replaced file group.
    """
    written = stats.select(["partitionPath", "fileId"]).rename_columns(["partition", "file_id"])
    in_replaced = written.filter(in_groups(written, replaced))
    if in_replaced.num_rows:
        partition, file_id = in_replaced["partition"][0].as_py(), in_replaced["file_id"][0].as_py()
        raise UnsupportedTableError(
            f"file group {file_id!r} of partition {partition!r} was replaced, as by delete_partition, but still "
            "is the file group of a bucket of consistent hashing, or of non-blocking writers: files written to it "
            "would be invisible. Write the rows to another partition, or write the table again; instead of "
            "non-blocking writers use OPTIMISTIC_CONCURRENCY_CONTROL"
        )


def with_bucket_locations(rows: DataFrame, locations: ConsistentBucketLocations) -> DataFrame:
    """Return rows with keys with the file group of each and its base file. Lazy."""
    added = [StructField(name, StringType()) for name in (FILE_ID, BASE_PATH)]
    out = StructType([*rows.schema.fields, *added])
    packed, unpacking = pack_rows(rows)

    def locate(batches: Iterable[pa.RecordBatch]) -> Batches:
        return map(locations.locate, unpacking.rows(batches))

    return map_in_arrow(packed, locate, out)


def created_buckets(locations: ConsistentBucketLocations, stats: pa.Table) -> dict[str, HashingMetadata]:
    """Return the first buckets of the partitions that a write with these stats has created."""
    partitions = pc.unique(stats["partitionPath"]).to_pylist()
    return {
        partition: locations.buckets(partition) for partition in partitions if partition not in locations.stored_buckets
    }
