"""Two attempts at each write task, as with ``spark.speculation``: the files of the attempt that counts are seen, the
other one's are gone.

Spark does not speculate in local mode, so both attempts run one after the other in the same task.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.spark.execution import write_stages
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_listing import list_files
from pyhudi.write.settings.write_context import TaskId
from tests.cases import seldom
from tests.spark.model import Steps, batch
from tests.spark.write.log_files import merge_on_read

Batches = Iterable[pa.RecordBatch]
Work = Callable[[Batches, TaskId], bytes]


class Cancelled(BaseException):
    """Spark has cancelled an attempt whose rows were not read to the end."""


def first_counts(work: Work, rows: list[pa.RecordBatch], first: TaskId, second: TaskId) -> bytes:
    status = work(iter(rows), first)
    work(iter(rows), second)
    return status


def second_counts(work: Work, rows: list[pa.RecordBatch], first: TaskId, second: TaskId) -> bytes:
    work(iter(rows), first)
    return work(iter(rows), second)


def first_is_cancelled(work: Work, rows: list[pa.RecordBatch], first: TaskId, second: TaskId) -> bytes:
    def cut() -> Iterator[pa.RecordBatch]:
        yield from rows
        raise Cancelled

    with suppress(Cancelled):
        work(cut(), first)
    return work(iter(rows), second)


def second_fails_while_first_counts(work: Work, rows: list[pa.RecordBatch], first: TaskId, second: TaskId) -> bytes:
    return first_is_cancelled(work, rows, second, first)


def data_files(path: str) -> set[str]:
    return set(list_files(open_storage(path), None, ("base", "log", "cdc"))[0]["path"].to_pylist())


def named_files(path: str) -> set[str]:
    active = TableMetaClient.open(path).active_timeline()
    writes = active.timeline.completed().writes()
    return {file for i in writes for file in active.commit_metadata(i).named_files().to_pylist()}


ATTEMPTS = (first_counts, second_counts, first_is_cancelled, second_fails_while_first_counts)
TABLES = (("MERGE_ON_READ", 9), ("COPY_ON_WRITE", 9), ("MERGE_ON_READ", 6))
USUAL = {(first_is_cancelled, TABLES[0]), (second_counts, TABLES[1])}
CASES = [
    (attempts, *table) if (attempts, table) in USUAL else seldom((attempts, *table))
    for attempts, table in itertools.product(ATTEMPTS, TABLES)
]


@pytest.mark.parametrize(("attempts", "kind", "version"), CASES)
def test_files_of_other_attempts(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    attempts: Callable[..., bytes],
    kind: str,
    version: int,
) -> None:
    statuses, path = write_stages._statuses, str(tmp_path / "table")

    def twice(work: Work) -> Work:
        def both(batches: Batches, task: TaskId) -> bytes:
            return attempts(work, [*batches], task, replace(task, attempt=task.attempt + 100_000))

        return both

    monkeypatch.setattr(
        write_stages, "_statuses", lambda rows, work, *, adaptive=True: statuses(rows, twice(work), adaptive=adaptive)
    )
    options = {
        "hoodie.datasource.write.table.type": kind,
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.table.cdc.enabled": "true",
    }
    step = Steps(spark, path, lambda operation, **extra: {**merge_on_read(operation, version, **extra), **options})
    step("bulk_insert", batch(0, 60, 10, "bulk"))
    step("upsert", [*batch(0, 10, 9, "old"), *batch(10, 30, 11, "new")])
    step("upsert", [*batch(55, 70, 12, "more"), ("x", "fresh", 1, "first")])
    step("insert", batch(100, 110, 1, "inserted"))
    step("delete", [*batch(0, 25, 0, ""), ("nobody", "p1", 0, "")])
    assert data_files(path) == named_files(path)
