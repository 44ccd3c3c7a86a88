"""The record index on Spark: built from a table, looked up by writes, and kept up to date by them.

It is a partition of the metadata table that knows the file group of every key. Writes look keys up there instead of in
the table's files; the tasks that merge base files find the rows by key (`pyhudi.write.keyed`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import MetadataTableError, UnsupportedTableError
from pyhudi.format.columns import RECORD_KEY
from pyhudi.index.locations import group_count
from pyhudi.metadata.declare import declare_partitions
from pyhudi.metadata.definitions import load_definitions
from pyhudi.metadata.deltas import GroupSlice, begin, publish
from pyhudi.metadata.groups import group_slices
from pyhudi.metadata.home import FILES, metadata_timeline
from pyhudi.metadata.indexdelta import IndexDelta
from pyhudi.metadata.initialize import initial_instant, prepare_folder
from pyhudi.metadata.table import MetadataTable
from pyhudi.spark.recordkeys import PARTITION, Target, file_keys, gone_keys, task_count, write_keys
from pyhudi.table.fsview import FileSystemView
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.table.opened import OpenedTable
from pyhudi.timeline.active import ActiveTimeline
from pyhudi.timeline.generator import InstantGenerator
from pyhudi.timeline.instants import millis_of_instant
from pyhudi.timeline.layout import Layout
from pyhudi.transaction.locks import lock_provider
from pyhudi.transaction.rollback import newest
from pyhudi.transaction.transaction import current_config
from pyhudi.write.basereader import read_footer

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig

_PARTITIONED = "isPartitioned"
_THREADS = 16
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """A table's record index; ``partitioned``: keys are told apart by their partitions."""

    table: MetadataTable
    partitioned: bool

    @classmethod
    def open(cls, client: TableMetaClient, *, partitioned: bool) -> RecordIndex | None:
        """The record index, if there is one of that kind that can be trusted, and files that hold keys."""
        config = client.config
        if PARTITION not in config.metadata_partitions or not config.populate_meta_fields:
            return None
        if is_partitioned(client.storage, config) != partitioned:
            return None
        try:
            table = MetadataTable.open(client.storage, config, client.active_timeline())
            table.groups(PARTITION)
        except MetadataTableError as reason:
            _log.warning("the record index is not used, keys are looked for in the files: %s", reason)
            return None
        return cls(table, partitioned)


def is_partitioned(storage: Storage, config: TableConfig) -> bool:
    """Whether the table's record index knows keys by partition."""
    definition = load_definitions(storage, config).get(PARTITION, {})
    return str((definition.get("indexOptions") or {}).get(_PARTITIONED, "false")).lower() == "true"


def index_delta(
    spark: SparkSession,
    storage: Storage,
    config: TableConfig,
    instant: str,
    stats: pa.Table,
    deleted: DataFrame | None,
    replaced: pa.Table,
) -> IndexDelta | None:
    """Write what a write at ``instant`` has done to the keys; None when the table has no record index that is kept up
    to date here. Runs a Spark job.

    ``stats`` are the write stats, ``deleted`` has the record keys that are certainly deleted, ``replaced`` (partition,
    path) the base files whose rows go out of view.
    """
    if PARTITION not in config.metadata_partitions or is_partitioned(storage, config):
        return None
    version = config.version
    groups = group_slices(storage, metadata_timeline(storage, version).timeline, PARTITION, version)
    tasks = task_count(len(groups), spark)
    base = pc.and_(pc.is_null(stats["logVersion"]), pc.greater(stats["numInserts"], 0))
    written = stats.filter(pc.fill_null(base, False))
    files = _files(
        written["partitionPath"], written["fileId"], written["path"], millis_of_instant(instant, config.timezone)
    )
    parts = []
    if files.num_rows:
        parts.append(file_keys(spark, storage, files, len(groups), tasks, since=instant))
    if deleted is not None:
        parts.append(gone_keys(deleted, len(groups), tasks))
    if replaced.num_rows:
        old = _files(replaced["partition"], replaced["partition"], replaced["path"], 0)
        keys = file_keys(spark, storage, old, len(groups), tasks).select(RECORD_KEY)
        parts.append(gone_keys(keys, len(groups), tasks))
    found = []
    if parts:
        keys = parts[0]
        for part in parts[1:]:
            keys = keys.unionByName(part)
        found = write_keys(keys, files, Target(storage, instant, version, groups), tasks)
    return IndexDelta(frozenset({PARTITION}), found)


def build_record_index(
    spark: SparkSession,
    storage: Storage,
    config: TableConfig,
    opts: Options,
    data: ActiveTimeline,
    completion: Callable[[], str],
) -> TableConfig:
    """Build the record index of what the table holds by its timeline, and declare it. Runs a Spark job.

    The caller holds the table's lock.

    Raises:
        UnsupportedTableError: the files hold no keys, or only log files do.
    """
    if not config.populate_meta_fields:
        raise UnsupportedTableError(
            "a record index needs base files with record keys (hoodie.populate.meta.fields=true)"
        )
    slices = FileSystemView.load(OpenedTable(storage, config, data), data.timeline).latest_slices()
    if slices["base_path"].null_count:
        raise UnsupportedTableError("a record index needs base files; compact the table first")
    paths = slices["base_path"].to_pylist()
    with ThreadPoolExecutor(_THREADS) as pool:
        count = sum(footer.num_rows for footer in pool.map(lambda path: read_footer(storage, path), paths))
    least, most = (
        opts.get_typed(o) for o in (options.METADATA_RECORD_INDEX_MIN_GROUPS, options.METADATA_RECORD_INDEX_MAX_GROUPS)
    )
    number = group_count(count, least, most)
    version = config.version
    active = metadata_timeline(storage, version)
    instant = initial_instant(active.timeline, data.timeline, version)
    groups = [GroupSlice(file_id) for file_id in prepare_folder(storage, PARTITION, number, instant, version)]
    entry = begin(active, instant)
    instants = pc.unique(slices["base_instant"]).to_pylist()
    millis = {i: millis_of_instant(i, config.timezone) for i in instants}
    since = pa.array([millis[i] for i in slices["base_instant"].to_pylist()], pa.int64())
    files = _files(slices["partition"], slices["file_id"], slices["base_path"], since)
    tasks = task_count(number, spark)
    keys = file_keys(spark, storage, files, number, tasks)
    stats = write_keys(keys, files, Target(storage, instant, version, groups, first=True), tasks) if paths else []
    publish(active, entry, stats, version, completion() if version >= 8 else None, operation="BULK_INSERT_PREPPED")
    definitions = {PARTITION: _definition()} if version >= 9 else {}
    return declare_partitions(storage, config, [PARTITION], definitions)


def ensure_record_index(spark: SparkSession, storage: Storage, opts: Options) -> bool:
    """Build the record index if the options want one and the table has none; tells whether it was built. A table that
    cannot have one is warned of: its last write is committed."""
    client = TableMetaClient.open(storage, opts)
    if not wants_record_index(opts, client.config):
        return False
    lock = lock_provider(storage, opts)
    generator = InstantGenerator(storage, opts, client.config.timezone, lock=lock)
    with generator.reserve() as slot:
        config = current_config(storage, client.config)
        data = ActiveTimeline.load(storage, Layout.of(config.properties))
        if not wants_record_index(opts, config):
            return False
        try:
            build_record_index(spark, storage, config, opts, data, lambda: slot.take(newest(data)))
        except UnsupportedTableError as reason:
            _log.warning("the record index of %s was not built: %s", storage.root, reason)
            return False
    return True


def wants_record_index(opts: Options, config: TableConfig) -> bool:
    """Whether the options ask for a record index that the table could have and has not."""
    wanted = opts.get_typed(options.METADATA_ENABLE) and opts.get_typed(options.METADATA_GLOBAL_RECORD_INDEX_ENABLE)
    return wanted and FILES in config.metadata_partitions and PARTITION not in config.metadata_partitions


def _files(
    partitions: pa.ChunkedArray, file_ids: pa.ChunkedArray, paths: pa.ChunkedArray, millis: int | pa.Array
) -> pa.Table:
    count = len(paths)
    times = pa.repeat(pa.scalar(millis, pa.int64()), count) if isinstance(millis, int) else millis
    numbers = pa.array(range(count), pa.int32())
    names = ["partition", "file_id", "path", "millis", "number"]
    return pa.table([partitions, file_ids, paths, times, numbers], names=names).combine_chunks()


def _definition() -> dict[str, Any]:
    return {
        "indexName": PARTITION,
        "indexType": PARTITION,
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {_PARTITIONED: "false"},
        "version": "V1",
    }
