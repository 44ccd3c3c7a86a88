"""Protocol of the engines that execute compactions and clusterings, and what their jobs have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.metrics.progress import Progress
from pyhudi.table.config.merge_settings import with_delete_marker
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.settings.write_settings import write_context
from pyhudi.write.settings.write_target import WriteTarget

Job = TypeVar("Job", contravariant=True)


class ServiceRunner(Protocol[Job]):
    """Executes the jobs of a table service with an engine."""

    @property
    def stats_reader(self) -> FileStatsReader:
        """Reader of files, with which indexes are built."""
        ...

    def check(self, config: TableConfig, job: Job) -> None:
        """Refuse jobs that the engine does not support, before anything is changed."""
        ...

    def run(self, job: Job) -> pa.Table:
        """Execute a job. Return the write stats."""
        ...

    def index_delta(self, client: TableMetaClient, tx: Transaction, metadata: CommitMetadata) -> IndexDelta | None:
        """Write the changes of a job to the indexes that the engine maintains; ``metadata`` is the metadata of its
        commit. Files are written only while the fence of the transaction is open."""
        ...


@dataclass(frozen=True, slots=True)
class ThreadRunner:
    """Base of runners on threads of this process, which maintain no indexes with one record per row.

    Attributes:
        progress: Receives the number of finished tasks.
    """

    progress: Progress | None = None

    @property
    def stats_reader(self) -> FileStatsReader:
        """Reader of files on threads."""
        return LOCAL

    def index_delta(self, client: TableMetaClient, tx: Transaction, metadata: CommitMetadata) -> IndexDelta | None:
        """Return None, because no indexes are maintained."""
        del client, tx, metadata
        return None


def service_options(opts: Options) -> Options:
    """Return the options of a table service, given those of the preceding write, without the columns of its rows."""
    return Options.parse({k: v for k, v in opts.items() if k != options.PARTIAL_UPDATE_SCHEMA.key})


def service_context(
    table: TableSnapshot, operation: Operation, instant: str, *, schema: pa.Schema, opts: Options, attempt: int
) -> WriteContext:
    """Return the context of the tasks of a table service.

    Args:
        table: The table.
        operation: Operation by which its tasks write.
        instant: Instant of the plan.
        schema: The table's own columns.
        opts: Options of the service.
        attempt: Number of the attempt, which is part of file names (`attempt_task`).

    Raises:
        UnsupportedTableError: The merger of the table is not registered.
        ConfigError: Options of the files are invalid.
    """
    target = WriteTarget(table.storage, table.config, with_delete_marker(table.config.merging, opts), opts)
    return replace(write_context(target, operation, instant, schema), attempt=f"{attempt:x}")


def attempt_task(task: TaskId, attempt: int) -> TaskId:
    """Return the task of an attempt at a plan. All attempts have the instant of the plan, and their tasks may have the
    same numbers, so the names of their files differ by the attempt."""
    return replace(task, attempt=(attempt ^ task.attempt) & 0x7FFFFFFF)
