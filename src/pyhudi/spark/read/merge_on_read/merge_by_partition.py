"""Merging of slices with log files in tasks, in a form that lets Spark prune partitions.

Spark cannot push conditions on partition columns into such tasks. If there are few and large partitions, each is
therefore a part of a union in which the partition columns are constants. Spark's optimizer drops parts that contradict
the condition of a query before anything is read.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.read.scan_plan import ScanPlan
from pyhudi.spark.execution.local_relations import constant, union
from pyhudi.spark.execution.slice_tasks import WHOLE, SlicePieces, SliceWork, bytes_to_read, parallelism, run_on_slices

FEW_PARTITIONS = 16
"""Maximum number of partitions that are planned separately. Each takes some milliseconds, and some thirty to compile in
a query that Spark has not seen before."""

WORTH_A_PART = 64 * 1024 * 1024
"""Average number of bytes per partition from which on partitions are planned separately. Planning one takes a tenth of
a second, also for queries of all partitions; reading one takes a second."""


def run_by_partition(
    spark: SparkSession, plan: ScanPlan, work: SliceWork, schema: pa.Schema, *, part: float = WHOLE
) -> DataFrame:
    """Run ``work`` on the slices of a plan. Lazy.

    Args:
        spark: The session.
        plan: The plan.
        work: Work on one slice.
        schema: Columns of its rows.
        part: Part of the base files that is read.

    Returns:
        The rows.
    """
    cores = parallelism(spark)
    partitions: list[str] = pc.unique(plan.tasks["partition"]).to_pylist()
    few = 1 < len(partitions) <= FEW_PARTITIONS and any(name in schema.names for name in plan.partition_columns.values)
    if not few or bytes_to_read(plan.tasks, part=part).sum() < len(partitions) * WORTH_A_PART:
        return run_on_slices(spark, SlicePieces.from_plan(plan, cores, part=part), work, schema)
    parts = []
    values = plan.partition_columns.by_partition()
    for partition in partitions:
        of_partition = replace(plan, tasks=plan.tasks.filter(pc.equal(plan.tasks["partition"], partition)))
        pieces = SlicePieces.from_plan(of_partition, -(-cores // len(partitions)), part=part)
        rows = run_on_slices(spark, pieces, work, schema)
        partition_values = {name: value for name, value in values[partition].items() if name in schema.names}
        parts.append(
            rows.withColumns({name: constant(value, schema.field(name)) for name, value in partition_values.items()})
        )
    return union(parts)
