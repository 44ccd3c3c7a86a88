"""The streaming source: the rows that the commits of a table have written, each commit once.

Spark's own file stream over the files of completed instants records what has been read, in the checkpoint
location. For each micro-batch, one task plans an incremental query of its commits, and the tasks after it read. The
result depends on the commits alone, so a repeated batch has the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import IncrementalFormat
from pyhudi.config.misspelled_options import refuse_other_formats
from pyhudi.errors import ConfigError, OptionWithoutEffectWarning, QueryError, warn
from pyhudi.read.cdc.cdc_plan import CHANGES_SCHEMA
from pyhudi.read.query.query import FIRST_BY_COMPLETION
from pyhudi.read.query.query_instants import range_instant
from pyhudi.read.schema.table_columns import query_columns, resolve_table_schema
from pyhudi.spark.execution.row_tasks import map_in_arrow, rows_of_tasks
from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.read.base_files.base_file_scan import STREAM_METADATA, has_stream_metadata
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.streaming.micro_batch_planner import ChangePlanner, RowPlanner, read_pieces
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.streaming.offsets import StartOffset, commits_per_batch, opposite_layout
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot
from pyhudi.timeline.instant import Action, current_instant
from pyhudi.timeline.timeline_layout import Layout

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
    refuse_other_formats(read_options)
    opts = Options.parse({**session_settings(spark, path), **read_options})
    client = TableMetaClient.open(path, opts)
    _check(client, opts)
    table, current = with_snapshot(partial(TableSnapshot.load, client), resolve_table_schema)
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
    planner = (ChangePlanner if changes else RowPlanner)(path, opts, start, schema, tasks, layout)
    paths = reader.load(_watched(client.storage, layout)).select("path")
    pieces = map_in_arrow(paths.repartition(1), planner, "piece binary")
    return rows_of_tasks(pieces.repartition(tasks), read_pieces, schema)


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


def _check(client: TableMetaClient, opts: Options) -> None:
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
        timezone = table.config.timezone
        after = range_instant(text, option.key, timezone=timezone)
        is_past = after is not None and after <= current_instant(timezone)
        return StartOffset(after=after, limited=limited, is_past=is_past)
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
