"""The writer of the data source: Spark calls it in the driver's workers and in tasks, each time a copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (  # type: ignore[import-not-found,unused-ignore]
    DataSourceArrowWriter,
    WriterCommitMessage,
)

from pyhudi.spark.execution.python_workers import prepare_worker, this_task
from pyspark_hudi.append_job import BegunAppend


@dataclass(frozen=True)
class WrittenFiles(WriterCommitMessage):  # type: ignore[misc,unused-ignore]
    """Write stats of the files of a task, encoded."""

    stats: bytes


class HudiAppendWriter(DataSourceArrowWriter):  # type: ignore[misc,unused-ignore]
    """Writes new base files, and makes them visible by one timeline file."""

    def __init__(self, append: BegunAppend) -> None:
        self._append = append

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of a task."""
        prepare_worker()
        return WrittenFiles(self._append.write(iterator, this_task()))

    def commit(self, messages: list[WrittenFiles | None]) -> None:
        """Publish what all tasks have written."""
        self._append.commit(message.stats for message in messages if message is not None)

    def abort(self, messages: list[WrittenFiles | None]) -> None:  # noqa: ARG002
        """Roll the write back."""
        self._append.abort()
