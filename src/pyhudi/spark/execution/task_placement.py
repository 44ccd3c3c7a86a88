"""Assignment of file groups to Spark tasks.

Spark's ``repartition(n, column)`` sends a row to the task ``pmod(murmur3(value), n)``. The hash of an integer
is cheap to compute, so for each task this module finds an integer that Spark sends to that task. File groups
can then be distributed by size instead of by hash.
"""

from __future__ import annotations

import heapq
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_SEED = np.uint32(42)
MIN_TASK_BYTES = 24 * 1024 * 1024
"""Groups smaller than this share a task: starting a task costs more than writing a small file."""


def murmur3_int(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return Spark's ``hash(int)`` of each value: Murmur3 x86 32-bit of four bytes, seed 42."""
    with np.errstate(over="ignore"):
        k = values.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = _rotate(k, 15) * np.uint32(0x1B873593)
        h = _rotate(_SEED ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        h ^= h >> np.uint32(16)
    return h.view(np.int32)


@lru_cache(maxsize=64)
def placement_keys(tasks: int) -> tuple[int, ...]:
    """Return for each of ``tasks`` tasks an integer that Spark's hash partitioning sends to it."""
    keys = np.full(tasks, -1, dtype=np.int64)
    start, step = 0, max(1024, tasks * 8)
    while (keys < 0).any():
        candidates = np.arange(start, start + step, dtype=np.int32)
        targets = np.mod(murmur3_int(candidates).astype(np.int64), tasks)
        hashes, first = np.unique(targets, return_index=True)
        open_ = keys[hashes] < 0
        keys[hashes[open_]] = candidates[first[open_]]
        start += step
    return tuple(keys.tolist())


def assign_tasks(
    sizes: npt.NDArray[np.int64], max_tasks: int, *, min_tasks: int = 1
) -> tuple[npt.NDArray[np.int32], int]:
    """Distribute groups over tasks by size in bytes; return the placement key of each group and the number of tasks.

    The largest groups come first, on the tasks that Spark starts first; small groups share tasks.
    """
    if not len(sizes):
        return np.zeros(0, dtype=np.int32), min_tasks
    large = sizes >= MIN_TASK_BYTES
    count = int(large.sum()) + -(-int(sizes[~large].sum()) // MIN_TASK_BYTES)
    tasks = max(1, min_tasks, min(max_tasks, count))
    # the order is stable, so that planning twice gives the same plan
    largest_first = np.argsort(-sizes, kind="stable")
    task_of = np.empty(len(sizes), dtype=np.int64)
    loads = [(0, task) for task in range(tasks)]
    for group in largest_first.tolist():
        load, task = loads[0]
        task_of[group] = task
        heapq.heapreplace(loads, (load + int(sizes[group]) + 1, task))
    return np.array(placement_keys(tasks), dtype=np.int32)[task_of], tasks


def _rotate(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
