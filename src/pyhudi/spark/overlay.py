"""Slices with log files, their base files read by Spark.

Spark scans all base files, with its own column pruning and filter push-down, and leaves out the rows that the logs
replace or delete: an anti join with them, which a small job finds in the logs first (`hidden`). The rows that come
instead are merged on the executors and added. So only what the logs touch goes through Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.values import ReadEngine
from pyhudi.merge.filegroup import FileSlice, SliceContext
from pyhudi.merge.overlay import hidden_rows
from pyhudi.read.merged import MergedReader
from pyhudi.spark.hidden import HiddenRows, hidden_rows_form
from pyhudi.spark.logparts import run_by_partition
from pyhudi.spark.native import read_natively
from pyhudi.spark.slices import SlicePieces, parallelism, run_on_slices

if TYPE_CHECKING:
    from pyhudi.read.pinned import PinnedTable
    from pyhudi.read.plan import ScanPlan

_MOST_LOG_BYTES = 1024 * 1024 * 1024
"""Above so many bytes of logs the hidden rows could be too many to be broadcast."""


def overlaid_rows(
    spark: SparkSession, table: PinnedTable, plan: ScanPlan, context: SliceContext, settings: Options
) -> tuple[DataFrame, DataFrame] | None:
    """The base rows that stay, with all columns of the plan and without its conditions; and the rows that come from the
    logs, with the plan's columns and conditions (SQL aside). None where slices had better be merged as a whole."""
    engine = settings.get_typed(options.READ_ENGINE)
    with_base = replace(plan, tasks=plan.tasks.filter(pc.is_valid(plan.tasks["base_path"])))
    form = hidden_rows_form(with_base.tasks) if engine is not ReadEngine.ARROW and _fits(with_base) else None
    if form is None:
        return None
    required = engine is ReadEngine.SPARK
    rows = read_natively(spark, table, with_base, settings, required=required, numbers=form.files)
    if rows is None:
        return None
    cores = parallelism(spark)
    pieces = SlicePieces.of(with_base, cores, whole=False)
    stay = form.left_out(rows, run_on_slices(spark, pieces, _FindHidden(context, form), form.schema))
    reader = MergedReader.of(plan, context)
    changed = run_by_partition(spark, table, plan, reader.read_changed, plan.output_schema, whole=False)
    return stay, changed


def _fits(plan: ScanPlan) -> bool:
    """Whether there are base files, all of which say which row is which to Spark, and logs that are not too large.

    Conditions on commit times (incremental queries) skip most of the base files' rows in any case, and may have to look
    behind their range for what partial updates leave out.
    """
    tasks = plan.tasks
    if not tasks.num_rows or plan.commit_times is not None:
        return False
    logs = pc.sum(pc.list_flatten(tasks["log_sizes"])).as_py() or 0
    return logs <= _MOST_LOG_BYTES and bool(pc.all(pc.ends_with(tasks["base_path"], ".parquet")).as_py())


@dataclass(frozen=True, slots=True)
class _FindHidden:
    """Finds a slice's hidden rows."""

    context: SliceContext
    form: HiddenRows

    def __call__(self, file_slice: FileSlice) -> Iterator[pa.RecordBatch]:
        rows = hidden_rows(self.context, file_slice)
        yield from self.form.of_file((file_slice.base_path or "").rpartition("/")[2], rows)
