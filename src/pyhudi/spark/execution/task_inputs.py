"""Spark tasks that get one input each."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.execution.local_relations import spread_frame
from pyhudi.spark.execution.row_tasks import Batches, rows_of_tasks
from pyhudi.spark.spark_errors import task_errors

_MAX_PICKLED_BYTES = 4 * 1024 * 1024
"""Maximum bytes of inputs that each task gets with its code. Of more, each task gets its own input by a shuffle."""
_RESULTS = pa.schema([("number", pa.int64()), ("result", pa.binary())])

_Input = TypeVar("_Input")
InputWork = Callable[[bytes], Iterator[pa.RecordBatch]]


def rows_of_inputs(spark: SparkSession, inputs: Sequence[bytes], work: InputWork, schema: pa.Schema) -> DataFrame:
    """Run ``work`` on each input, in a Spark task of its own; return the rows of ``schema`` (types of tables) that it
    yields. Lazy. ``work`` is pickled with everything that it references."""
    count = len(inputs)
    if sum(map(len, inputs)) > _MAX_PICKLED_BYTES:
        spread = spread_frame(spark, pa.table({"input": pa.array(inputs, pa.binary())}), count)
        return rows_of_tasks(spread, _InputTask(work), schema)
    # a range is partitioned at its source, so each number gets its own task without a shuffle
    numbers = spark.range(0, count, 1, max(1, count))
    return rows_of_tasks(numbers, _InputTask(work, tuple(inputs)), schema)


def run_in_tasks(spark: SparkSession, inputs: Iterable[_Input], run: Callable[[_Input], bytes]) -> list[bytes]:
    """Run a function on each input, in a Spark task of its own. Runs a Spark job, unless there are no inputs.

    Args:
        spark: The session.
        inputs: The inputs, those with the most work first. They are pickled one by one.
        run: The function. It is pickled with everything that it references.

    Returns:
        The results, in the order of the inputs.
    """
    pickled_inputs = tuple(map(pickle.dumps, enumerate(inputs)))
    if not pickled_inputs:
        return []

    def work(pickled: bytes) -> Iterator[pa.RecordBatch]:
        number, one = pickle.loads(pickled)
        yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([run(one)], pa.binary())], schema=_RESULTS)

    results = rows_of_inputs(spark, pickled_inputs, work, _RESULTS)
    with task_errors():
        rows = results.collect()
    return [bytes(row.result) for row in sorted(rows, key=lambda row: row.number)]


@dataclass(frozen=True, slots=True)
class _InputTask:
    """Runs `work` on each input in a batch, or on those of ``inputs`` whose numbers are in it."""

    work: InputWork
    inputs: tuple[bytes, ...] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            for value in batch.column(0).to_pylist():
                yield from self.work(value if self.inputs is None else self.inputs[value])
