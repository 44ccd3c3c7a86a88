"""Reads of slices with log files: key lookups, overlays of logs on base files, or merging as a whole."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from pyhudi.read.execution.file_slice_reader import MergedReader
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.spark.execution.slice_tasks import LOGS, SlicePieces, parallelism, run_on_slices
from pyhudi.spark.read.merge_on_read.base_scan_with_deletes import base_and_log_rows
from pyhudi.spark.read.merge_on_read.merge_by_partition import run_by_partition
from pyhudi.spark.read.spark_scan import SparkScan

MAX_KEYS = 1000
"""Record keys up to which slices are looked through for them."""


def is_key_lookup(plan: ScanPlan) -> bool:
    """Return True if a plan looks up few records by key in slices some of which have log files.

    Such lookups run in tasks, which use the bloom filters of base files and look up keys in logs in one job. Otherwise
    another job would first have to determine the rows that logs replace.
    """
    rows = plan.key_rows
    return rows is not None and rows.keys is not None and len(rows.keys) <= MAX_KEYS


def merged_rows(scan: SparkScan, *, positions: bool = False) -> tuple[DataFrame | None, DataFrame]:
    """Return the rows of slices with log files (with a key lookup: of all slices) in two parts.

    Args:
        scan: The scan.
        positions: If there are two parts, add `SCANNED_ROW` to both as the last column.

    Returns:
        The base rows that Spark reads, with all columns of the table and unfiltered; None: there is no such part. And
        the rows that tasks merge, filtered by all conditions except SQL, with the columns of the plan, or all columns
        if there is SQL.
    """
    spark, plan = scan.spark, scan.plan
    assert plan.merging is not None
    context = plan.merging.context
    in_sql = plan.query.incremental.sql_filters or (plan.filter is not None and plan.filter.sql is not None)
    if in_sql:  # It may refer to any column. Conditions implied by it filter rows before they are sent to Spark.
        implied = None if plan.filter is None else plan.filter.for_rows(plan.schema)
        plan = replace(plan, filter=implied, columns=tuple(plan.schema.names))
    if is_key_lookup(plan):
        reader = MergedReader.from_plan(plan, context)
        # Most slices have none of the keys, which few bytes of their base files show.
        pieces = SlicePieces.from_plan(plan, parallelism(spark), part=LOGS)
        return None, run_on_slices(spark, pieces, reader.read, plan.output_schema)
    overlaid = base_and_log_rows(scan.with_plan(plan), context, positions=positions)
    if overlaid is not None:
        return overlaid
    reader = MergedReader.from_plan(plan, context)
    return None, run_by_partition(spark, plan, reader.read, plan.output_schema)
