"""The streaming source: the rows that the commits of a table have written, each commit once.

Spark's own file stream over the files of completed instants is the log of what has been read: the checkpoint location
keeps it. Of each micro-batch one task plans what its commits have written, as an incremental query of them, and the
tasks after it read. What a micro-batch gives depends on its commits alone, so a batch that is run again gives the same.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import IncrementalFormat
from pyhudi.errors import ConfigError, QueryError
from pyhudi.read.changes.change_plan import CHANGES_SCHEMA, plan_changes
from pyhudi.read.changes.change_reader import ChangeReader
from pyhudi.read.execute.local_reader import scan_batches
from pyhudi.read.query import FIRST_BY_COMPLETION, Query
from pyhudi.read.query_instants import range_instant
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.scan_planner import plan_scan
from pyhudi.read.schema.table_columns import table_schema
from pyhudi.schema.table_types import as_nullable
from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.spark_types import spark_schema
from pyhudi.spark.streaming.offsets import StartOffset, batch_query
from pyhudi.storage.storage_protocol import Storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.timeline.instant import Action

BATCH_ID = "streaming.sql.batchId"
"""Property of the tasks of a streaming query: the number of the micro-batch."""
_FILES = "path string, modificationTime timestamp, length bigint, content binary"
_COMPLETED = f"*.{{{Action.COMMIT},{Action.DELTA_COMMIT},{Action.REPLACE_COMMIT}}}"
_FOREVER = "36500d"
_GLOB = "{}[]*?\\"


def load_stream(spark: SparkSession, path: str, given: Mapping[str, str]) -> DataFrame:
    """The streaming DataFrame of a table.

    Args:
        spark: The session.
        path: The table's base path.
        given: Apache Hudi's options.

    Returns:
        A DataFrame with the columns that the table has now, meta fields first; of a stream of changes (CDC) with
        CHANGES_SCHEMA.

    Raises:
        NotAHudiTableError: there is no table.
        QueryError: it has no columns yet, or options ask for what a stream cannot give.
        InvalidOptionError: an option has a value that is not allowed.
    """
    settings = Options.parse({**session_settings(spark, path), **given})
    client = TableMetaClient.open(path, settings)
    _check(settings, client)
    table = PinnedTable.of(client)
    found = table_schema(table)
    if found is None:
        raise QueryError(
            f"the table at {client.storage.uri()!r} has no columns yet, which a stream has to know: begin it after the "
            "first write"
        )
    changes = _wants_changes(settings)
    schema = CHANGES_SCHEMA if changes else as_nullable(found.schema)
    most = settings.get_typed(options.STREAMING_MAX_INSTANTS)
    start = _start(table, settings, limited=most is not None)
    folder = client.storage.uri(table.active.layout.folder)
    reader = (
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .option("pathGlobFilter", _COMPLETED)
        .option("maxFileAge", _FOREVER)  # old files may be copies
    )
    if most is not None:
        reader = reader.option("maxFilesPerTrigger", most)
    tasks = parallelism(spark)
    planner = (_ChangePlanner if changes else _RowPlanner)(path, settings, start, schema, tasks)
    pieces = reader.load(folder).select("path").repartition(1).mapInArrow(planner, "piece binary")
    return pieces.repartition(tasks).mapInArrow(_read, spark_schema(schema))


def _check(settings: Options, client: TableMetaClient) -> None:
    """Refuse what a stream cannot give."""
    kind = (settings.get(options.QUERY_TYPE.key) or "snapshot").lower()
    if kind == "read_optimized":
        raise QueryError(
            f"a stream gives what commits have written, also to log files: leave out {options.QUERY_TYPE.key}={kind}"
        )
    if _wants_changes(settings) and not client.config.cdc_enabled:
        raise QueryError(
            "the table logs no changes (hoodie.table.cdc.enabled=false), so there is no stream of them: leave out "
            f"{options.INCREMENTAL_FORMAT.key} for the rows that commits have written"
        )
    folder = client.storage.uri()
    if any(c in folder for c in _GLOB):
        raise ConfigError(
            f"a stream cannot read the table at {folder!r}: Spark takes one of {_GLOB} in the path for a pattern"
        )


def _wants_changes(settings: Options) -> bool:
    return settings.get_typed(options.INCREMENTAL_FORMAT) is IncrementalFormat.CDC


def _start(table: PinnedTable, settings: Options, *, limited: bool) -> StartOffset:
    option = options.STREAMING_START_OFFSET
    text = settings.get_typed(option).strip()
    if text.lower() != "latest":
        return StartOffset(after=range_instant(text, option.key, timezone=table.config.timezone))
    if limited:
        raise QueryError(
            f"{option.key}=latest and {options.STREAMING_MAX_INSTANTS.key} do not go together: the stream could not "
            "tell, after the first batch, which commits were there before it. Give the instant to begin after instead"
        )
    by_completion = table.config.version >= FIRST_BY_COMPLETION
    done = table.active.timeline.writes().completed()
    times = [i.order_time if by_completion else i.requested for i in done]
    return StartOffset(first_batch_after=max(times, default=None))


@dataclass(frozen=True, slots=True)
class _Planner(ABC):
    """Turns the timeline files of a micro-batch into pieces of a plan."""

    path: str
    settings: Options
    start: StartOffset
    schema: pa.Schema
    pieces: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [path.rpartition("/")[2] for batch in batches for path in batch.column(0).to_pylist()]
        if not names:
            return
        table = PinnedTable.of(TableMetaClient.open(self.path, self.settings))
        asked = self._asked(table, names, _batch_number())
        for piece in () if asked is None else self.plan(table, asked):
            yield pa.record_batch({"piece": pa.array([pickle.dumps(piece)], pa.binary())})

    @abstractmethod
    def plan(self, table: PinnedTable, query: Query) -> Iterator[_Piece]:
        """Return what the commits of a query have written, in pieces.

        Raises:
            QueryError: files of the commits are gone, or the table has other columns now.
        """

    def _parts(self, tasks: pa.Table) -> Iterator[pa.Table]:
        """The tasks of a plan, as many for each piece."""
        count = min(self.pieces, tasks.num_rows)
        cuts = [tasks.num_rows * n // max(1, count) for n in range(count + 1)]
        return (tasks.slice(a, b - a).combine_chunks() for a, b in pairwise(cuts))

    def _asked(self, table: PinnedTable, names: list[str], number: int | None) -> Query | None:
        """The query of the commits of these timeline files; None: nothing that the stream wants.

        Raises:
            CheckpointError: the stream has missed commits.
        """
        fallback = options.INCREMENTAL_FALLBACK_FULL_SCAN
        query = Query(
            fallback=self.settings.is_set(fallback) and self.settings.get_typed(fallback),
            partitions_from_path=self.settings.get_typed(options.EXTRACT_PARTITION_VALUES_FROM_PATH),
        )
        return batch_query(table, names, self.start, number, query)


class _RowPlanner(_Planner):
    """Of a stream of the rows that commits have written."""

    def plan(self, table: PinnedTable, query: Query) -> Iterator[_Piece]:
        """The rows as of the last commit of the query."""
        columns = set(as_nullable(found.schema).names) if (found := table_schema(table)) is not None else set()
        gone = [name for name in self.schema.names if name not in columns]
        if gone:
            raise QueryError(f"the table has lost the columns {', '.join(gone)} since the stream began: start it again")
        plan = plan_scan(table, query, columns=self.schema.names, opts=self.settings)
        if plan.tasks.num_rows and not plan.output_schema.equals(self.schema):
            changed = [f.name for f in self.schema if plan.output_schema.field(f.name).type != f.type]
            raise QueryError(
                f"columns of the table have got other types since the stream began: {', '.join(changed)}. Start it "
                "again with the same checkpoint location"
            )
        return (_RowPiece(table.storage, replace(plan, tasks=part)) for part in self._parts(plan.tasks))


class _ChangePlanner(_Planner):
    """Of a stream of changes."""

    def plan(self, table: PinnedTable, query: Query) -> Iterator[_Piece]:
        """The changes of each commit."""
        plan = plan_changes(table, replace(query, changes=True), self.settings)
        reader = ChangeReader.of(plan)
        return (_ChangePiece(reader, part) for part in self._parts(plan.tasks))


@dataclass(frozen=True, slots=True)
class _RowPiece:
    storage: Storage
    part: ScanPlan

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of file slices."""
        return scan_batches(self.part, self.storage, threads=1)


@dataclass(frozen=True, slots=True)
class _ChangePiece:
    reader: ChangeReader
    tasks: pa.Table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The changes of file groups in commits."""
        return chain.from_iterable(map(self.reader.read, self.tasks.to_pylist()))


_Piece = _RowPiece | _ChangePiece


def _batch_number() -> int | None:
    task = TaskContext.get()
    text = task.getLocalProperty(BATCH_ID) if task is not None else None
    return int(text) if text else None


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of pieces, which the planner of the same job has made."""
    for batch in batches:
        for piece in batch.column(0).to_pylist():
            yield from pickle.loads(piece).batches()
