"""Plans of the micro-batches of a streaming source, made and read in tasks.

One task plans an incremental query of the commits of a batch, and yields it in pieces. The tasks after it read these.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import TypeVar

import pyarrow as pa
from pyspark import TaskContext

from pyhudi.config import Options, options
from pyhudi.errors import HudiError, QueryError
from pyhudi.read.cdc.cdc_plan import plan_cdc
from pyhudi.read.cdc.cdc_reader import CdcReader
from pyhudi.read.execution.arrow_scan import scan_batches
from pyhudi.read.query.query import IncrementalSettings, Query
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.scan_planner import plan_scan
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.storage import Storage, open_storage
from pyhudi.streaming.offsets import StartOffset, batch_query, check_not_archived, timeline_files_of_batch
from pyhudi.streaming.source_log import CHECKPOINT_PROPERTY, SourceLog, files_of_batch
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot
from pyhudi.timeline.timeline_layout import Layout

T = TypeVar("T")

_BATCH_ID = "streaming.sql.batchId"
"""Property of the tasks of a streaming query: the number of the micro-batch."""


@dataclass(frozen=True, slots=True)
class MicroBatchPlanner(ABC):
    """Task that plans the read of the commits in a micro-batch from their timeline files.

    Attributes:
        path: Path of the table.
        opts: Options of the stream.
        start: Where the stream starts.
        schema: Columns of its rows.
        pieces: Maximum number of pieces of a plan.
        layout: Layout of the timeline when the stream was started.
    """

    path: str
    opts: Options
    start: StartOffset
    schema: pa.Schema
    pieces: int
    layout: Layout

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        paths = [path for batch in batches for path in batch.column(0).to_pylist()]
        number = _batch_number()
        if not paths:
            self._check_empty_batch(number)
            return
        _, pieces = with_snapshot(self._table, lambda table: self._pieces(table, paths, number))
        for piece in pieces:
            yield pa.record_batch({"piece": pa.array([pickle.dumps(piece)], pa.binary())})

    def _pieces(self, table: TableSnapshot, paths: list[str], number: int | None) -> Iterator[_Piece]:
        names = timeline_files_of_batch(paths, self.layout, table.active.layout)
        query = self._batch_query(table, names, number) if names else None
        return iter(()) if query is None else self.plan(table, query)

    def _table(self) -> TableSnapshot:
        return TableSnapshot.load(TableMetaClient.open(self.path, self.opts))

    def _check_empty_batch(self, number: int | None) -> None:
        """Check that a batch without files is one by the checkpoint, too: Spark leaves out files that no longer exist.

        Raises:
            CheckpointError: The commits of the batch have been archived.
        """
        if number is None or _property(CHECKPOINT_PROPERTY) is None:
            return
        timeline = open_storage(self.path, self.opts).uri(self.layout.folder)
        files = _from_checkpoint(self.opts, lambda checkpoint: files_of_batch(checkpoint, timeline, number))
        if files:
            check_not_archived(self._table(), files, self.start, number)

    @abstractmethod
    def plan(self, table: TableSnapshot, query: Query) -> Iterator[_Piece]:
        """Return the plan of an incremental query, in pieces.

        Raises:
            QueryError: Files of the commits no longer exist, or the columns of the table have changed.
        """

    def _split_tasks(self, tasks: pa.Table) -> Iterator[pa.Table]:
        """Split the tasks of a plan into pieces of equal length."""
        count = min(self.pieces, tasks.num_rows)
        cuts = [tasks.num_rows * n // max(1, count) for n in range(count + 1)]
        return (tasks.slice(a, b - a).combine_chunks() for a, b in pairwise(cuts))

    def _batch_query(self, table: TableSnapshot, names: list[str], number: int | None) -> Query | None:
        """Return the query for the commits of these timeline files; None if the stream skips all of them.

        Raises:
            CheckpointError: The stream has missed commits.
        """
        fallback = options.INCREMENTAL_FALLBACK_FULL_SCAN
        query = Query(
            incremental=IncrementalSettings(self.opts.is_set(fallback) and self.opts.get_typed(fallback)),
            partitions_from_path=self.opts.get_typed(options.EXTRACT_PARTITION_VALUES_FROM_PATH),
        )
        timeline = table.storage.uri(table.active.layout.folder)
        return batch_query(table, names, self.start, number, query=query, log=partial(_source_log, self.opts, timeline))


class RowPlanner(MicroBatchPlanner):
    """Planner of a stream of rows."""

    def plan(self, table: TableSnapshot, query: Query) -> Iterator[_Piece]:
        """Plan the rows as of the last commit of the query."""
        columns = set(found.schema.names) if (found := resolve_table_schema(table)) is not None else set()
        dropped = [name for name in self.schema.names if name not in columns]
        if dropped:
            raise QueryError(
                f"the columns {', '.join(dropped)} have been dropped from the table since the stream started; restart "
                "it"
            )
        plan = plan_scan(table, query, columns=self.schema.names, opts=self.opts)
        if plan.tasks.num_rows and not plan.output_schema.equals(self.schema):
            changed = [f.name for f in self.schema if plan.output_schema.field(f.name).type != f.type]
            raise QueryError(
                f"the types of columns of the table have changed since the stream started: {', '.join(changed)}. "
                "Restart it with the same checkpoint location"
            )
        return (_RowPiece(table.storage, replace(plan, tasks=part)) for part in self._split_tasks(plan.tasks))


class ChangePlanner(MicroBatchPlanner):
    """Planner of a stream of changes."""

    def plan(self, table: TableSnapshot, query: Query) -> Iterator[_Piece]:
        """Plan the changes of each commit."""
        plan = plan_cdc(table, replace(query, changes=True), self.opts)
        reader = CdcReader(plan.context)
        return (_ChangePiece(reader, part) for part in self._split_tasks(plan.tasks))


@dataclass(frozen=True, slots=True)
class _RowPiece:
    storage: Storage
    part: ScanPlan

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows of file slices."""
        return scan_batches(self.part, self.storage, threads=1)


@dataclass(frozen=True, slots=True)
class _ChangePiece:
    reader: CdcReader
    tasks: pa.Table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the changes of file groups by commits."""
        return chain.from_iterable(map(self.reader.read, self.tasks.to_pylist()))


_Piece = _RowPiece | _ChangePiece


def _batch_number() -> int | None:
    text = _property(_BATCH_ID)
    return int(text) if text else None


def _source_log(opts: Options, timeline: str, batch: int) -> SourceLog | None:
    """Return the instants of a timeline that the query has read before a batch; None if its checkpoint location is not
    known or cannot be read."""
    return _from_checkpoint(opts, lambda checkpoint: SourceLog.load(checkpoint, timeline, batch))


def _from_checkpoint(opts: Options, read: Callable[[Storage], T | None]) -> T | None:
    """Return what is read from the checkpoint location of the query; None if it is not known or cannot be read."""
    location = _property(CHECKPOINT_PROPERTY)
    try:
        return read(open_storage(location, opts)) if location else None
    except HudiError:  # such as a file system that only Spark reads
        return None


def _property(name: str) -> str | None:
    task = TaskContext.get()
    text: str | None = task.getLocalProperty(name) if task is not None else None
    return text


def read_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the rows of pieces that the planner of the same job has created."""
    for batch in batches:
        for piece in batch.column(0).to_pylist():
            yield from pickle.loads(piece).batches()
