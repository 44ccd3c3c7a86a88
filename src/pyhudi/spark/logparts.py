"""Slices with log files, merged by tasks of ours, so that Spark leaves out those of other partitions.

Spark cannot look into such tasks: a condition on a partition column comes after them. So where there is much to read in
few partitions, each of these is a part of its own, in which the partition columns are constants. Where they contradict
what a query asks for, Spark's optimizer drops the part before anything of it is read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.keygen.paths import partition_fields
from pyhudi.spark.frames import union
from pyhudi.spark.slices import SlicePieces, SliceWork, bytes_to_read, parallelism, run_on_slices
from pyhudi.spark.types import spark_schema

if TYPE_CHECKING:
    from pyhudi.read.pinned import PinnedTable
    from pyhudi.read.plan import ScanPlan

FEW_PARTITIONS = 16
"""Up to so many partitions each is planned by itself: each costs some milliseconds, and compiling a query that Spark
has not seen yet some thirty."""

WORTH_A_PART = 64 * 1024 * 1024
"""Bytes to read for each partition on average, from which on it pays that each is planned by itself: a tenth of a
second for a part, which queries that ask for all of them pay, too, against a second to read it."""


def run_by_partition(
    spark: SparkSession, table: PinnedTable, plan: ScanPlan, work: SliceWork, schema: pa.Schema, *, whole: bool
) -> DataFrame:
    """What ``work`` gives for the slices of a plan: rows of ``schema``. ``whole``: base files are read, too."""
    cores = parallelism(spark)
    fields = [field.name for field in partition_fields(table.config)]
    values = plan.partition_values
    values = values.filter(pc.is_in(values["partition"], value_set=plan.tasks["partition"].combine_chunks()))
    few = 1 < values.num_rows <= FEW_PARTITIONS and any(name in schema.names for name in fields)
    if not few or bytes_to_read(plan, whole=whole).sum() < values.num_rows * WORTH_A_PART:
        return run_on_slices(spark, SlicePieces.of(plan, cores, whole=whole), work, schema)
    parts = []
    for row in values.to_pylist():
        own = replace(plan, tasks=plan.tasks.filter(pc.equal(plan.tasks["partition"], row["partition"])))
        rows = run_on_slices(spark, SlicePieces.of(own, -(-cores // values.num_rows), whole=whole), work, schema)
        known = [name for i, name in enumerate(fields) if row[f"exact_{i}"] and name in schema.names]
        parts.append(rows.withColumns({name: _constant(row[name], schema.field(name)) for name in known}))
    return union(parts)


def _constant(value: object, field: pa.Field) -> Column:
    """A value as a column. Optimised to the literal; but nullable, as the column is in all other ways."""
    return sf.when(sf.lit(True), sf.lit(value).cast(spark_schema(pa.schema([field])).fields[0].dataType.simpleString()))
