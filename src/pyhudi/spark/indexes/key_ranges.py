"""Ranges of the keys of an index, so that a task writes a large file group range by range.

A task that builds a file group needs its keys in order, but not all of them at a time: Spark sorts by the number of
the range, which is a cheap sort by an integer, and the task sorts the keys of one range after the other. The ranges are
those of a sample. A sample that does not represent the keys costs memory, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.arrow.group_runs import by_group
from pyhudi.spark.helper_columns import INDEX_GROUP
from pyhudi.spark.session_settings import shuffle_partitions
from pyhudi.write.location_columns import PLACEMENT_KEY

_KEYS_PER_RANGE = 500_000
"""Aimed at: some 100 MB in the task that writes them."""
_MAX_RANGES = 32
"""Each key is compared with the bounds of all ranges."""
_SAMPLED_PER_RANGE = 64
_SAMPLED_FILES = 16
_SEED = 1


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Ranges of keys in the order of their UTF-8 bytes.

    Attributes:
        bounds: The first keys of all ranges but the first one, ascending.
    """

    bounds: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.bounds) + 1

    @classmethod
    def from_sample(cls, keys: DataFrame, rows: int, ranges: int) -> KeyRanges:
        """Return ranges with about the same number of keys each. Runs a Spark job.

        Args:
            keys: The column of the keys of some files.
            rows: Estimated number of its rows.
            ranges: Maximum number of ranges.
        """
        wanted = _SAMPLED_PER_RANGE * ranges
        sample = keys.sample(fraction=min(1.0, wanted / max(1, rows)), seed=_SEED).limit(4 * wanted).collect()
        ordered = sorted(row[0] for row in sample)  # By code points, which is the order of UTF-8.
        bounds = dict.fromkeys(ordered[len(ordered) * n // ranges] for n in range(1, ranges) if ordered)
        return cls(tuple(bounds))

    def group_ranges(self, groups: npt.NDArray[Any], keys: pa.Array) -> pa.Array:
        """Return the number of the file group of each key, and of its range in the group, as one number
        (`ranges_by_group`)."""
        numbers = groups.astype(np.int32) * np.int32(len(self))
        for bound in self.bounds:
            numbers += pc.greater_equal(keys, bound).to_numpy(zero_copy_only=False)
        return pa.array(numbers)


ONE_RANGE = KeyRanges()
"""All keys."""


def range_count(rows: int, groups: int) -> int:
    """Return the number of ranges for a number of keys (``rows``) in a number of file groups."""
    return max(1, min(_MAX_RANGES, -(-rows // max(1, groups) // _KEYS_PER_RANGE)))


def sampled_files(files: int) -> range:
    """Return the positions of the files whose keys are sampled, evenly spaced."""
    return range(0, files, max(1, -(-files // _SAMPLED_FILES)))


def task_count(groups: int, spark: SparkSession) -> int:
    """Return the number of tasks that write an index of ``groups`` file groups."""
    return max(1, min(groups, shuffle_partitions(spark)))


def sorted_by_index_group(rows: DataFrame, tasks: int) -> DataFrame:
    """Return rows in the tasks that their `PLACEMENT_KEY` selects, sorted by file group and range (`INDEX_GROUP`)."""
    return rows.repartition(tasks, PLACEMENT_KEY).sortWithinPartitions(INDEX_GROUP)


def ranges_by_group(batches: Iterable[pa.RecordBatch], ranges: int) -> Iterator[tuple[int, Iterator[pa.Table]]]:
    """Yield the number of each file group with the rows of its ranges, in their order. Memory: one range.

    Args:
        batches: Rows sorted by `INDEX_GROUP`, which has numbers of groups and ranges (`KeyRanges.group_ranges`).
        ranges: Number of ranges of each group.
    """
    for number, parts in groupby(by_group(batches, INDEX_GROUP), lambda part: part[0] // ranges):
        yield number, (rows for _, rows in parts)
