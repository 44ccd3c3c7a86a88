"""Reads of slices with log files whose base files are scanned by Spark.

Spark scans all base files with column pruning and filter push-down, without the rows that the logs replace or delete. A
small job determines these rows first, and an anti join excludes them. Their new versions are merged on the executors
and added. Therefore only rows that logs change are processed in Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pyhudi.config.enums import ReadEngine
from pyhudi.format.file_names import file_name_of
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.merge.log_changed_rows import BASE_POSITION, replaced_positions
from pyhudi.read.execution.file_slice_reader import MergedReader
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.spark.execution.slice_tasks import KEYS, LOGS, SlicePieces, parallelism, run_on_slices
from pyhudi.spark.helper_columns import SCANNED_FILE, SCANNED_ROW
from pyhudi.spark.read.base_files.base_file_scan import ScanExtras, can_number_rows, read_natively
from pyhudi.spark.read.merge_on_read.deletion_vectors import (
    DeletionVectors,
    deletion_vectors_for,
    without_row_numbers,
)
from pyhudi.spark.read.merge_on_read.merge_by_partition import run_by_partition
from pyhudi.spark.read.spark_scan import SparkScan

_MAX_LOG_BYTES = 1024 * 1024 * 1024
"""Size of logs in bytes above which the excluded rows may be too many to broadcast."""


def base_and_log_rows(
    scan: SparkScan, context: SliceContext, *, positions: bool = False
) -> tuple[DataFrame, DataFrame] | None:
    """Return the rows of slices with log files in two parts.

    Args:
        scan: The scan.
        context: Context of the merges.
        positions: Add `SCANNED_ROW` as the last column: the position of the base row, also of that which a row of the
            logs replaces.

    Returns:
        The remaining base rows, with all columns of the table and unfiltered; and the rows of the logs, with the
        columns and conditions of the plan, except SQL. None if slices should be merged as a whole.
    """
    spark, plan, engine = scan.spark, scan.plan, scan.engine
    with_base = replace(plan, tasks=plan.tasks.filter(pc.is_valid(plan.tasks["base_path"])))
    form = (
        deletion_vectors_for(with_base.tasks)
        if engine is not ReadEngine.ARROW and _can_exclude_rows(with_base)
        else None
    )
    if form is None:
        return None
    required = engine is ReadEngine.SPARK
    rows = read_natively(scan.with_plan(with_base), required=required, extras=ScanExtras(form.files))
    if rows is None:
        return None
    cores = parallelism(spark)
    pieces = SlicePieces.from_plan(with_base, cores, part=KEYS)
    stay = form.exclude(rows, run_on_slices(spark, pieces, _FindDeletedRows(context, form), form.schema))
    reader = replace(MergedReader.from_plan(plan, context), with_positions=positions)
    changed = run_by_partition(spark, plan, reader.read_changed, reader.changed_schema, part=LOGS)
    if positions:
        return stay.drop(SCANNED_FILE), changed.withColumnRenamed(BASE_POSITION, SCANNED_ROW)
    return without_row_numbers(stay), changed


def _can_exclude_rows(plan: ScanPlan) -> bool:
    """Return True if Spark can number the rows of the base files, and the logs are not too large.

    Incremental queries are excluded: their conditions on commit times skip most base rows in any case, and partial
    updates may require versions outside of the range.
    """
    tasks = plan.tasks
    if not tasks.num_rows or plan.commit_times is not None:
        return False
    logs = pc.sum(pc.list_flatten(tasks["log_sizes"])).as_py() or 0
    return logs <= _MAX_LOG_BYTES and can_number_rows(tasks["base_path"], plan.schema.names)


@dataclass(frozen=True, slots=True)
class _FindDeletedRows:
    """Task that determines the excluded rows of a slice."""

    context: SliceContext
    form: DeletionVectors

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        rows = replaced_positions(self.context, file_slice)
        yield from self.form.encode_file(file_name_of(file_slice.base_path or ""), rows)
