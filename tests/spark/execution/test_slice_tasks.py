"""Distribution of rows to tasks on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.spark.execution import slice_tasks

_SCHEMA = pa.schema([("number", pa.int64()), ("task", pa.int32())])


@pytest.mark.parametrize("max_pickled_bytes", [0, 1 << 20])
def test_each_piece_has_a_task(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, max_pickled_bytes: int) -> None:
    monkeypatch.setattr(slice_tasks, "_MAX_PICKLED_BYTES", max_pickled_bytes)
    rows = pa.table({"number": np.arange(12)})
    pieces = slice_tasks.cut_rows(rows, np.full(rows.num_rows, 16 << 20), 3)

    def work(row: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get().partitionId()
        yield pa.RecordBatch.from_pylist([{"number": row["number"], "task": task}], _SCHEMA)

    found = slice_tasks.run_on_rows(spark, pieces, work, _SCHEMA).orderBy("number").collect()
    assert [row.number for row in found] == list(range(rows.num_rows))
    assert len({row.task for row in found}) == len(pieces) == 4
