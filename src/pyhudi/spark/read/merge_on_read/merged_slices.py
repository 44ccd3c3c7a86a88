"""Slices with log files as a Spark DataFrame."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from pyhudi.read.execute.merged_reader import MergedReader
from pyhudi.spark.execution.slice_tasks import SlicePieces, parallelism, run_on_slices
from pyhudi.spark.read.merge_on_read.log_overlay import overlaid_rows
from pyhudi.spark.read.merge_on_read.merge_by_partition import run_by_partition

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.read.scan_plan import ScanPlan
    from pyhudi.table.pinned_table import PinnedTable


MOST_KEYS = 1000
"""Record keys up to which slices are looked through for them."""


def is_key_lookup(plan: ScanPlan) -> bool:
    """Return True if a plan asks for records by their keys, few of them, of slices some of which have log files.

    Tasks of ours look them up: they know bloom filters of base files and find keys in logs, and one job does it all,
    where otherwise one would have to find the rows that logs replace first.
    """
    rows = plan.key_rows
    return plan.merging is not None and rows is not None and rows.keys is not None and len(rows.keys) <= MOST_KEYS


def merged_rows(
    spark: SparkSession, table: PinnedTable, plan: ScanPlan, settings: Options
) -> tuple[DataFrame | None, DataFrame]:
    """The rows of slices that have log files (of a key lookup: of any slices), in two parts: base rows as Spark reads
    them, with all columns of the plan and without its conditions (None: there is no such part), and what tasks of ours
    merge.

    The second part meets the conditions that tasks can check. Those written in SQL are left to the caller; it has the
    columns of the plan, or all of them where there is SQL.
    """
    context = plan.merging
    assert context is not None
    in_sql = plan.query.sql_filters or (plan.filter is not None and plan.filter.sql is not None)
    if in_sql:  # which may name any column; what follows from it leaves out rows before they go to Spark
        implied = None if plan.filter is None else plan.filter.for_rows(plan.schema)
        plan = replace(plan, filter=implied, columns=tuple(plan.schema.names))
    if is_key_lookup(plan):
        reader = MergedReader.of(plan, context)
        # most slices have none of the keys, and say so by little of their base files
        pieces = SlicePieces.of(plan, parallelism(spark), whole=False)
        return None, run_on_slices(spark, pieces, reader.read, plan.output_schema)
    found = overlaid_rows(spark, table, plan, context, settings)
    if found is not None:
        return found
    reader = MergedReader.of(plan, context)
    return None, run_by_partition(spark, plan, reader.read, plan.output_schema, whole=True)
