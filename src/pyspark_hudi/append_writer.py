"""Writer of the data source, copies of which Spark calls in the driver's workers and in tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage  # type: ignore[import-not-found,unused-ignore]

from pyhudi.spark.execution.python_workers import prepare_worker, this_task
from pyspark_hudi.append_job import BegunAppend


@dataclass(frozen=True)
class AppendCommitMessage(WriterCommitMessage):  # type: ignore[misc,unused-ignore]
    """Encoded write stats of the files of a task."""

    stats: bytes


class HudiAppendWriter(DataSourceArrowWriter):  # type: ignore[misc,unused-ignore]
    """Writes new base files, and publishes them by one timeline file."""

    def __init__(self, append: BegunAppend) -> None:
        self._append = append

    def write(self, iterator: Iterator[pa.RecordBatch]) -> AppendCommitMessage:
        """Write the rows of a task."""
        prepare_worker()
        return AppendCommitMessage(self._append.write(iterator, this_task()))

    def commit(self, messages: list[AppendCommitMessage | None]) -> None:
        """Publish the files of all tasks."""
        self._append.commit(message.stats for message in messages if message is not None)

    def abort(self, messages: list[AppendCommitMessage | None]) -> None:  # noqa: ARG002
        """Roll back the write."""
        self._append.abort()
