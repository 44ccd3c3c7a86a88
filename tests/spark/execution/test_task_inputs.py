"""Spark tasks that get one input each, with their code or by a shuffle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.spark.execution import task_inputs
from pyhudi.spark.execution.slice_tasks import cut_rows, run_on_rows

_SCHEMA = pa.schema([("number", pa.int64()), ("task", pa.int32())])


@pytest.fixture(params=[0, 1 << 20], ids=["shuffled", "pickled"], autouse=True)
def _max_pickled_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_inputs, "_MAX_PICKLED_BYTES", request.param)


def test_each_piece_has_a_task(spark: SparkSession) -> None:
    rows = pa.table({"number": np.arange(12)})
    pieces = cut_rows(rows, np.full(rows.num_rows, 16 << 20), 3)

    def work(row: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get().partitionId()
        yield pa.RecordBatch.from_pylist([{"number": row["number"], "task": task}], _SCHEMA)

    found = run_on_rows(spark, pieces, work, _SCHEMA).orderBy("number").collect()
    assert [row.number for row in found] == list(range(rows.num_rows))
    assert len({row.task for row in found}) == len(pieces) == 4


def test_results_are_in_the_order_of_the_inputs(spark: SparkSession) -> None:
    results = task_inputs.run_in_tasks(
        spark, ["c", "a", "b", "a"], lambda text: f"{text} in {TaskContext.get().partitionId()}".encode()
    )
    assert results == [b"c in 0", b"a in 1", b"b in 2", b"a in 3"]
    assert task_inputs.run_in_tasks(spark, [], bytes) == []
