"""Execution of the write tasks of `pyhudi.write.tasks` as Spark stages, and collection of their write stats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, StructType

from pyhudi.spark.execution.cached_frames import planned
from pyhudi.spark.execution.python_workers import this_task
from pyhudi.spark.execution.row_serialization import pack_rows
from pyhudi.spark.execution.row_tasks import map_in_arrow
from pyhudi.write.location_columns import STATUS
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.tasks.in_task_tagging import TOO_MANY_ROWS, InTaskTagging, in_task_tagging_task
from pyhudi.write.tasks.write_tasks import bulk_insert_task, upsert_task
from pyhudi.write.write_status import decode_stats

WriteTask = Callable[[Iterable[pa.RecordBatch], TaskId], bytes]
"""Writes the rows of a task, and returns its status (`pyhudi.write.write_status`)."""
_STATUS_SCHEMA = StructType([StructField(STATUS, BinaryType())])


def run_bulk_insert(rows: DataFrame, context: WriteContext, *, sorted_input: bool) -> pa.Table:
    """Write rows on the tasks that they are on; return the write stats of all files. Runs a Spark job."""

    def work(batches: Iterable[pa.RecordBatch], task: TaskId) -> bytes:
        return bulk_insert_task(batches, context, task, sorted_input=sorted_input)

    return run_write_tasks(rows, work)


def run_upsert(rows: DataFrame, context: WriteContext, *, adaptive: bool = True) -> pa.Table:
    """Write routed rows (`pyhudi.spark.write.plans.file_groups.row_routing.route`); return the write stats of all
    files. Runs a Spark job. ``adaptive``: the plan of the rows may improve while it is executed."""

    def work(batches: Iterable[pa.RecordBatch], task: TaskId) -> bytes:
        return upsert_task(batches, context, task)

    return run_write_tasks(rows, work, adaptive=adaptive)


def run_in_task_tagging(rows: DataFrame, context: WriteContext, lookup: InTaskTagging) -> pa.Table | None:
    """Write rows that are on the tasks of their partitions (`pyhudi.spark.write.plans.in_task_tagging`); return the
    write stats of all files, or None if there are more than ``lookup.max_rows``. Runs a Spark job."""

    def work(batches: Iterable[pa.RecordBatch], task: TaskId) -> bytes:
        return in_task_tagging_task(batches, context, task, lookup)

    # rows that have been counted are cached
    statuses = _statuses(rows, work, adaptive=lookup.max_rows is not None)
    # several tasks would each write a version of the same files, of which one would stay
    assert lookup.max_rows is None or len(statuses) < 2, "uncounted rows were in several tasks"
    return None if TOO_MANY_ROWS in statuses else decode_stats(statuses)


def run_write_tasks(rows: DataFrame, work: WriteTask, *, adaptive: bool = True) -> pa.Table:
    """Run ``work`` in each task on its rows; return the write stats of all tasks. Runs a Spark job. ``adaptive``: as of
    `run_upsert`."""
    return decode_stats(_statuses(rows, work, adaptive=adaptive))


def _statuses(rows: DataFrame, work: WriteTask, *, adaptive: bool) -> list[bytes]:
    packed, unpacking = pack_rows(rows)

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        status = work(unpacking.rows(batches), this_task())
        yield pa.RecordBatch.from_arrays([pa.array([status], pa.binary())], names=[STATUS])

    written = map_in_arrow(packed, task, _STATUS_SCHEMA)
    with planned(written, adaptive=adaptive) as statuses:
        return [bytes(row[0]) for row in statuses.collect()]
