"""Slices with log files as a Spark DataFrame: executors merge them with the file-group reader."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from pyhudi.read.merged import MergedReader
from pyhudi.spark.slices import SlicePieces, parallelism, run_on_slices

if TYPE_CHECKING:
    from pyhudi.read.plan import ScanPlan


def merged_rows(spark: SparkSession, plan: ScanPlan) -> DataFrame:
    """The merged rows of slices that all have log files, with the columns that the plan's conditions need, too.

    Conditions that tasks can check are checked by them; those written in SQL are left to the caller.
    """
    context = plan.merging
    assert context is not None
    in_sql = plan.query.sql_filters or (plan.filter is not None and plan.filter.sql is not None)
    if in_sql:  # which may name any column
        plan = replace(plan, filter=None, columns=tuple(plan.schema.names))
    reader = MergedReader.of(plan, context)
    pieces = SlicePieces.of(plan, parallelism(spark))
    return run_on_slices(spark, pieces, reader.read, plan.output_schema)
