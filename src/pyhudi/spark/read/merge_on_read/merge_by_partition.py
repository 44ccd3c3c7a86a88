"""Merging of slices with log files in tasks of pyhudi, in a form by which Spark can prune partitions.

Spark cannot look into such tasks: a condition on a partition column comes after them. So where there is much to read in
few partitions, each of these is a part of its own, in which the partition columns are constants. Where they contradict
what a query asks for, Spark's optimizer drops the part before anything of it is read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.execution.driver_frames import constant, union
from pyhudi.spark.execution.slice_tasks import SlicePieces, SliceWork, bytes_to_read, parallelism, run_on_slices

if TYPE_CHECKING:
    from pyhudi.read.scan_plan import ScanPlan

FEW_PARTITIONS = 16
"""Number of partitions up to which each is planned by itself: each costs some milliseconds, and compiling a query that
Spark has not seen yet some thirty."""

WORTH_A_PART = 64 * 1024 * 1024
"""Bytes to read for each partition on average, from which on it pays that each is planned by itself: a tenth of a
second for a part, which queries that ask for all of them pay, too, against a second to read it."""


def run_by_partition(
    spark: SparkSession, plan: ScanPlan, work: SliceWork, schema: pa.Schema, *, whole: bool
) -> DataFrame:
    """Run ``work`` on the slices of a plan and return rows of ``schema``. ``whole``: base files are read, too."""
    cores = parallelism(spark)
    partitions: list[str] = pc.unique(plan.tasks["partition"]).to_pylist()
    few = 1 < len(partitions) <= FEW_PARTITIONS and any(name in schema.names for name in plan.values_from_path)
    if not few or bytes_to_read(plan, whole=whole).sum() < len(partitions) * WORTH_A_PART:
        return run_on_slices(spark, SlicePieces.of(plan, cores, whole=whole), work, schema)
    parts = []
    values = plan.path_values()
    for partition in partitions:
        own = replace(plan, tasks=plan.tasks.filter(pc.equal(plan.tasks["partition"], partition)))
        rows = run_on_slices(spark, SlicePieces.of(own, -(-cores // len(partitions)), whole=whole), work, schema)
        known = {name: value for name, value in values[partition].items() if name in schema.names}
        parts.append(rows.withColumns({name: constant(value, schema.field(name)) for name, value in known.items()}))
    return union(parts)
