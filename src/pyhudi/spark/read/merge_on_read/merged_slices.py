"""Slices with log files as a Spark DataFrame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from pyhudi.read.execute.merged_reader import MergedReader
from pyhudi.spark.read.merge_on_read.log_overlay import overlaid_rows
from pyhudi.spark.read.merge_on_read.merge_by_partition import run_by_partition

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.read.scan_plan import ScanPlan
    from pyhudi.table.pinned_table import PinnedTable


def merged_rows(
    spark: SparkSession, table: PinnedTable, plan: ScanPlan, settings: Options
) -> tuple[DataFrame | None, DataFrame]:
    """The rows of slices that all have log files, in two parts: base rows as Spark reads them, with all columns of the
    plan and without its conditions (None: there is no such part), and what tasks of ours merge.

    The second part meets the conditions that tasks can check. Those written in SQL are left to the caller; it has the
    columns of the plan, or all of them where there is SQL.
    """
    context = plan.merging
    assert context is not None
    in_sql = plan.query.sql_filters or (plan.filter is not None and plan.filter.sql is not None)
    if in_sql:  # which may name any column
        plan = replace(plan, filter=None, columns=tuple(plan.schema.names))
    found = overlaid_rows(spark, table, plan, context, settings)
    if found is not None:
        return found
    reader = MergedReader.of(plan, context)
    return None, run_by_partition(spark, plan, reader.read, plan.output_schema, whole=True)
