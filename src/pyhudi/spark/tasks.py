"""Runs the write tasks of `pyhudi.write.task` as Spark stages and brings their stats back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.spark.transport import pack
from pyhudi.spark.workers import settle_worker, this_task
from pyhudi.write.columns import STATUS
from pyhudi.write.context import TaskId, WriteContext
from pyhudi.write.sought import Sought, sought_task
from pyhudi.write.status import decode_stats
from pyhudi.write.task import bulk_insert_task, upsert_task

_STATUS_SCHEMA = f"{STATUS} binary"
Batches = Iterable[pa.RecordBatch]


def run_bulk_insert(rows: DataFrame, context: WriteContext, *, sorted_input: bool) -> pa.Table:
    """Write rows where they are; returns the write stats of all files. Runs a Spark job."""

    def work(batches: Batches, task: TaskId) -> bytes:
        return bulk_insert_task(batches, context, task, sorted_input=sorted_input)

    return _run(rows, work)


def run_upsert(rows: DataFrame, context: WriteContext) -> pa.Table:
    """Write routed rows (`pyhudi.spark.routing.route`); returns the write stats of all files. Runs a Spark job."""

    def work(batches: Batches, task: TaskId) -> bytes:
        return upsert_task(batches, context, task)

    return _run(rows, work)


def run_sought(rows: DataFrame, context: WriteContext, sought: Sought) -> pa.Table:
    """Write rows that are at the tasks of their partitions (`pyhudi.spark.sought_plan.by_partition`); returns the write
    stats of all files. Runs a Spark job."""

    def work(batches: Batches, task: TaskId) -> bytes:
        return sought_task(batches, context, task, sought)

    return _run(rows, work)


def _run(rows: DataFrame, work: Callable[[Batches, TaskId], bytes]) -> pa.Table:
    packed, unpacking = pack(rows)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle_worker()
        status = work(unpacking.rows(batches), this_task())
        yield pa.RecordBatch.from_arrays([pa.array([status], pa.binary())], names=[STATUS])

    return decode_stats(bytes(row[0]) for row in packed.mapInArrow(task, _STATUS_SCHEMA).collect())
