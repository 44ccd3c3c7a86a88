"""Execution of a scan plan in this process: tasks to Arrow batches on threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pyarrow as pa

from pyhudi.merge.file_slice import file_slices
from pyhudi.read.execution.base_file_tasks import TaskReader
from pyhudi.read.execution.file_slice_reader import MergedReader
from pyhudi.read.execution.parallel_reads import Work, batches_in_parallel
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.storage import Storage

_MIN_BUDGET = 32 * 1024 * 1024


def scan_table(plan: ScanPlan, storage: Storage) -> pa.Table:
    """Read all rows of a plan, with files in the order of the tasks."""
    count = _default_threads()
    works = slice_readers(plan, storage, threads=count)
    if plan.tasks.num_rows <= 1:
        return pa.Table.from_batches([batch for work in works for batch in work()], schema=plan.output_schema)
    with ThreadPoolExecutor(count) as pool:
        parts = pool.map(lambda work: list(work()), works)
        return pa.Table.from_batches([batch for part in parts for batch in part], schema=plan.output_schema)


def scan_batches(plan: ScanPlan, storage: Storage, *, threads: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a plan in undefined order, with a bounded number of batches in memory."""
    count = threads or _default_threads()
    works = slice_readers(plan, storage, threads=count)
    yield from batches_in_parallel(works, min(count, plan.tasks.num_rows))


def slice_readers(plan: ScanPlan, storage: Storage, *, threads: int = 1) -> Iterator[Work]:
    """Return read functions for the slices of a plan, in its order. ``threads`` of them share the memory for merging.

    Raises:
        QueryError: The plan has a SQL filter that requires Spark.
    """
    if plan.filter is not None and plan.schema.names:  # Refused even if there is nothing to read.
        plan = replace(plan, filter=plan.filter.without_sql(plan.schema))
    reader = TaskReader.from_plan(plan, storage)
    slices = file_slices(plan.tasks, plan.partition_columns.by_partition())
    if plan.merging is None:
        return (partial(reader.read_base_file, one) for one in slices)
    context = plan.merging.context
    memory = replace(context.memory, budget=max(context.memory.budget // threads, _MIN_BUDGET))
    merged = MergedReader.from_plan(plan, replace(context, memory=memory))
    return (partial(merged.read if one.log_paths else reader.read_base_file, one) for one in slices)


def _default_threads() -> int:
    return min(8, (os.cpu_count() or 1) + 2)
