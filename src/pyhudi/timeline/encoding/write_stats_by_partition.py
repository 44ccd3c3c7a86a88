"""Write stats grouped by partition, as in timeline files, in columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """Write stats by partition.

    Those of the i-th of ``partitions`` (string) are rows ``offsets[i]`` to ``offsets[i + 1]`` (int32) of ``stats``,
    whose ``partitionPath`` is null for stats of a workload profile.
    """

    partitions: pa.Array
    offsets: pa.Array
    stats: pa.Table


def group_by_partition(stats: pa.Table) -> PartitionStats:
    """Group write stats (`pyhudi.timeline.commit_metadata.WRITE_STAT_SCHEMA`) by partition, in order of first
    occurrence."""
    encoded = contiguous(stats["partitionPath"]).dictionary_encode()
    order = pc.sort_indices(encoded.indices)
    stats = stats.take(order).combine_chunks()
    of_plan = pc.if_else(pc.is_null(stats["path"]), pa.scalar(None, pa.string()), stats["partitionPath"])
    stats = stats.set_column(stats.column_names.index("partitionPath"), "partitionPath", of_plan)
    counts = np.bincount(encoded.indices.to_numpy(zero_copy_only=False), minlength=len(encoded.dictionary))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    return PartitionStats(encoded.dictionary, offsets, stats)
