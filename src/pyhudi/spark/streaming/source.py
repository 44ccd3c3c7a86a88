"""The streaming source: the rows that the commits of a table have written, each commit once.

Spark's own file stream over the files of completed instants records what has been read, in the checkpoint
location. For each micro-batch, one task plans an incremental query of its commits, and the tasks after it read. The
result depends on the commits alone, so a repeated batch has the same rows.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import IncrementalFormat
from pyhudi.errors import ConfigError, HudiError, OptionWithoutEffectWarning, QueryError, warn
from pyhudi.read.cdc.cdc_plan import CHANGES_SCHEMA, plan_cdc
from pyhudi.read.cdc.cdc_reader import CdcReader
from pyhudi.read.execution.arrow_scan import scan_batches
from pyhudi.read.query.query import FIRST_BY_COMPLETION, IncrementalSettings, Query
from pyhudi.read.query.query_instants import range_instant
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.scan_planner import plan_scan
from pyhudi.read.schema.table_columns import query_columns, resolve_table_schema
from pyhudi.spark.execution.row_tasks import rows_of_tasks
from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.read.base_files.base_file_scan import STREAM_METADATA, has_stream_metadata
from pyhudi.spark.read.load_table import session_settings
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.streaming.offsets import (
    StartOffset,
    batch_query,
    check_not_archived,
    commits_per_batch,
    opposite_layout,
    timeline_files_of_batch,
)
from pyhudi.streaming.source_log import CHECKPOINT_PROPERTY, SourceLog, files_of_batch
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Action
from pyhudi.timeline.timeline_layout import Layout

T = TypeVar("T")

BATCH_ID = "streaming.sql.batchId"
"""Property of the tasks of a streaming query: the number of the micro-batch."""
_FILES = "path string, modificationTime timestamp_ltz, length bigint, content binary"
_ACTIONS = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
_COMPLETED = f"*.{{{','.join(_ACTIONS)}}}"
_FOREVER = "36500d"
_GLOB = "{}[]*?\\"


def load_stream(spark: SparkSession, path: str, read_options: Mapping[str, str]) -> DataFrame:
    """Return the streaming DataFrame of a table.

    Args:
        spark: The session.
        path: Base path of the table.
        read_options: Apache Hudi's options.

    Returns:
        A DataFrame with the current columns of the table, meta fields first; for a stream of changes (CDC) with
        CHANGES_SCHEMA.

    Raises:
        NotAHudiTableError: There is no table at the path.
        QueryError: The table has no columns yet, or an option is not supported by streams.
        InvalidOptionError: An option has an invalid value.
    """
    opts = Options.parse({**session_settings(spark, path), **read_options})
    client = TableMetaClient.open(path, opts)
    _check(opts, client)
    table = TableSnapshot.load(client)
    current = resolve_table_schema(table)
    if current is None:
        raise QueryError(
            f"the table at {client.storage.uri()!r} has no columns yet, which a stream requires; start it after "
            "the first write"
        )
    changes = _wants_changes(opts)
    from_path = opts.get_typed(options.EXTRACT_PARTITION_VALUES_FROM_PATH)
    schema = CHANGES_SCHEMA if changes else query_columns(table, current.schema, partitions_from_path=from_path)
    max_instants = opts.get_typed(options.STREAMING_MAX_INSTANTS)
    start = _start(table, opts, limited=max_instants is not None)
    layout = table.active.layout
    reader = (
        spark.readStream.format("binaryFile")
        .schema(_FILES)
        .option("pathGlobFilter", _COMPLETED)
        .option("maxFileAge", _FOREVER)  # modification times may be old if files were copied
    )
    if max_instants is not None:
        reader = reader.option("maxFilesPerTrigger", _limit(table, max_instants))
    tasks = parallelism(spark)
    planner = (_ChangePlanner if changes else _RowPlanner)(path, opts, start, schema, tasks, layout)
    pieces = (
        reader.load(_watched(client.storage, layout)).select("path").repartition(1).mapInArrow(planner, "piece binary")
    )
    return rows_of_tasks(pieces.repartition(tasks), _read, schema)


def _watched(storage: Storage, layout: Layout) -> str:
    """Return Spark's pattern of the paths of the timeline. They include the place to which an upgrade or a downgrade
    moves it; otherwise the stream would wait forever for commits at the old one. Spark lists a folder with all folders
    in it, so of the outer one only the files are named."""
    meta = storage.uri(META_FOLDER)
    other = opposite_layout(layout).folder
    if other == layout.folder:
        return meta
    if layout.folder == META_FOLDER:
        return f"{meta}{{,{other.removeprefix(META_FOLDER)}}}"
    files = (f"*.{action}" for action in _ACTIONS)
    return f"{meta}/{{{','.join([layout.folder.removeprefix(META_FOLDER + '/'), *files])}}}"


def _check(opts: Options, client: TableMetaClient) -> None:
    """Reject options that streams do not support."""
    kind = (opts.get(options.QUERY_TYPE.key) or "snapshot").lower()
    if kind == "read_optimized":
        raise QueryError(
            f"a stream reads what commits have written, including log files; leave {options.QUERY_TYPE.key}={kind} out"
        )
    if _wants_changes(opts) and not client.config.cdc_enabled:
        raise QueryError(
            "the table has no change data (hoodie.table.cdc.enabled=false); leave "
            f"{options.INCREMENTAL_FORMAT.key} out to stream the rows that commits have written"
        )
    folder = client.storage.uri()
    if has_stream_metadata(folder):
        raise ConfigError(
            f"a stream cannot read the table at {folder!r}: Spark lists no files in folders named {STREAM_METADATA}; "
            "move the table"
        )
    if any(c in folder for c in _GLOB):
        raise ConfigError(
            f"a stream cannot read the table at {folder!r}: Spark interprets the characters {_GLOB} in the path "
            "as a pattern"
        )


def _limit(table: TableSnapshot, max_instants: int) -> int:
    """Return the maximum number of commits of a batch; warn if the first batch must have more than requested."""
    limit = commits_per_batch(table, max_instants)
    if limit > max_instants:
        warn(
            f"{options.STREAMING_MAX_INSTANTS.key}={max_instants} does not apply to the {limit} commits that the table "
            "has now: the modification times of the files of its timeline are not in the order of the commits, as "
            "after a copy of the table without them (cp -r instead of cp -a)",
            OptionWithoutEffectWarning,
        )
    return limit


def _wants_changes(opts: Options) -> bool:
    return opts.get_typed(options.INCREMENTAL_FORMAT) is IncrementalFormat.CDC


def _start(table: TableSnapshot, opts: Options, *, limited: bool) -> StartOffset:
    option = options.STREAMING_START_OFFSET
    text = opts.get_typed(option).strip()
    if text.lower() != "latest":
        return StartOffset(after=range_instant(text, option.key, timezone=table.config.timezone), limited=limited)
    if limited:
        raise QueryError(
            f"{option.key}=latest cannot be combined with {options.STREAMING_MAX_INSTANTS.key}: after the first "
            "batch, the stream could not determine which commits precede it. Set the instant to start after "
            "instead"
        )
    by_completion = table.config.version >= FIRST_BY_COMPLETION
    done = table.active.timeline.writes().completed()
    times = [i.order_time if by_completion else i.requested for i in done]
    return StartOffset(first_batch_after=max(times, default=None))


@dataclass(frozen=True, slots=True)
class _Planner(ABC):
    """Plans the read of the commits in a micro-batch from their timeline files."""

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
        table = self._table()
        names = timeline_files_of_batch(paths, self.layout, table.active.layout)
        if not names:
            return
        query = self._batch_query(table, names, number)
        for piece in () if query is None else self.plan(table, query):
            yield pa.record_batch({"piece": pa.array([pickle.dumps(piece)], pa.binary())})

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
            check_not_archived(self._table(), files, self.start)

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


class _RowPlanner(_Planner):
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


class _ChangePlanner(_Planner):
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
    text = _property(BATCH_ID)
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


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the rows of pieces that the planner of the same job has created."""
    for batch in batches:
        for piece in batch.column(0).to_pylist():
            yield from pickle.loads(piece).batches()
