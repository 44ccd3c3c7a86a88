"""The record index of a table that has none: built of what the table holds, and declared."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import HudiError, UnsupportedTableError
from pyhudi.index.locations import group_count
from pyhudi.index.recordgroups import RecordGroups, new_group_ids
from pyhudi.merge.filegroup import FileSlice
from pyhudi.metadata.declare import declare_partitions
from pyhudi.metadata.deltas import GroupSlice
from pyhudi.metadata.home import FILES, file_group_ids
from pyhudi.metadata.initialize import build_partition
from pyhudi.metadata.upkeep import Upkeep
from pyhudi.read.merged import slice_context
from pyhudi.read.pinned import PinnedTable
from pyhudi.read.table_schema import table_schema
from pyhudi.services.indexing import locked
from pyhudi.spark.recorddelta import numbered
from pyhudi.spark.recordindex import PARTITIONED
from pyhudi.spark.recordkeys import file_keys, slice_keys, task_count
from pyhudi.spark.recordverify import doubled
from pyhudi.spark.recordwrite import PARTITION, Places, Target, write_keys
from pyhudi.table.fsview import FileSystemView
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.table.opened import OpenedTable
from pyhudi.timeline.active import ActiveTimeline
from pyhudi.timeline.instants import millis_of_instant
from pyhudi.write.existing import row_counts
from pyhudi.write.guards import check_record_index

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig

_SAMPLE = 256
"""So many footers tell how many rows a table has, while others wait for its lock."""

_log = logging.getLogger(__name__)


def build_record_index(
    spark: SparkSession,
    storage: Storage,
    config: TableConfig,
    opts: Options,
    data: ActiveTimeline,
    completion: Callable[[], str],
) -> TableConfig:
    """Build the record index of what the table holds by its timeline, and declare it. Runs a Spark job.

    The caller holds the lock. Keys are told apart by their partitions unless the options ask for a global index.

    Raises:
        UnsupportedTableError: the files hold no keys, or some keys are in more than one file group, of which an index
            knows one only; or tables of that version have no index that knows keys by partition.
    """
    partitioned = not opts.get_typed(options.METADATA_GLOBAL_RECORD_INDEX_ENABLE)
    check_record_index(config, opts)
    first = FirstKeys.of(spark, storage, config, opts, data, partitioned=partitioned)
    upkeep = Upkeep(storage, opts, data, completion)
    build_partition(upkeep, config, PARTITION, first.groups.ids, lambda groups: first.write(groups.files.instant))
    definitions = None if config.version < 9 else {PARTITION: record_index_definition(partitioned=partitioned)}
    return declare_partitions(storage, config, [PARTITION], definitions)


@dataclass(frozen=True, slots=True)
class FirstKeys:
    """The keys of a table at one moment, and the file groups of a record index of them."""

    spark: SparkSession
    table: PinnedTable
    opts: Options
    slices: pa.Table
    groups: RecordGroups

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        storage: Storage,
        config: TableConfig,
        opts: Options,
        data: ActiveTimeline,
        *,
        partitioned: bool,
    ) -> FirstKeys:
        """Look at the table; reads no keys.

        Raises:
            UnsupportedTableError: the files hold no keys, or there is no file group.
        """
        if not config.populate_meta_fields:
            raise UnsupportedTableError(
                "a record index needs base files with record keys (hoodie.populate.meta.fields=true)"
            )
        slices = FileSystemView.load(OpenedTable(storage, config, data), data.timeline).latest_slices()
        ids = _group_ids(storage, opts, slices, partitioned=partitioned)
        groups = RecordGroups.of(ids, partitioned=partitioned)
        if not len(groups):
            raise UnsupportedTableError(
                "a partitioned record index has file groups for each partition, and there is none"
            )
        return cls(spark, PinnedTable(storage, config, data), opts, slices, groups)

    def write(self, instant: str) -> list[dict[str, Any]]:
        """Write the base files of the index at an instant of the metadata table; returns their write stats. Runs a
        Spark job.

        Raises:
            UnsupportedTableError: keys are in several file groups.
        """
        slices, groups, config = self.slices, self.groups, self.table.config
        millis = {i: millis_of_instant(i, config.timezone) for i in pc.unique(slices["base_instant"]).to_pylist()}
        since = pa.array([millis[i] for i in slices["base_instant"].to_pylist()], pa.int64())
        files = numbered(slices["partition"], slices["file_id"], slices["base_path"], since)
        if not files.num_rows:
            return []
        tasks = task_count(len(groups), self.spark)
        keys = _keys(self.spark, self.table, self.opts, slices, files, groups, tasks)
        target = Target(
            self.table.storage, instant, config.version, groups, [GroupSlice(file_id) for file_id in groups.ids]
        )
        written = write_keys(keys, Places(files, pa.array([], pa.string())), target, tasks)
        _refuse_clashes(written.clashes, groups)
        return written.stats


def refuse_doubled(first: FirstKeys, stats: Sequence[Mapping[str, Any]], data: ActiveTimeline) -> None:
    """Refuse the index if writes since its base files were written have put keys into second file groups.

    Raises:
        UnsupportedTableError: they have.
    """
    _refuse_clashes(doubled(first, [s for s in stats if s["partitionPath"] == PARTITION], data), first.groups)


def _refuse_clashes(count: int, groups: RecordGroups) -> None:
    if not count:
        return
    where = "several file groups of a partition" if groups.partitioned else "several file groups"
    cure = "" if groups.partitioned else ", or, if they are unique in their partitions, have a partitioned record index"
    raise UnsupportedTableError(
        f"{count} keys are in {where}, and a record index knows one place of each; delete the duplicates{cure}"
    )


def _group_ids(storage: Storage, opts: Options, slices: pa.Table, *, partitioned: bool) -> list[str]:
    """The file groups that the index gets, by the rows of the base files."""
    found = slices.filter(pc.is_valid(slices["base_path"])).select(["partition", "base_path", "base_size"])
    rows = _estimated_rows(storage, found)
    if not partitioned:
        least, most = (
            opts.get_typed(o)
            for o in (options.METADATA_RECORD_INDEX_MIN_GROUPS, options.METADATA_RECORD_INDEX_MAX_GROUPS)
        )
        return file_group_ids(PARTITION, group_count(sum(rows), least, most))
    least, most = (
        opts.get_typed(o)
        for o in (
            options.METADATA_PARTITIONED_RECORD_INDEX_MIN_GROUPS,
            options.METADATA_PARTITIONED_RECORD_INDEX_MAX_GROUPS,
        )
    )
    counts = dict.fromkeys(pc.unique(slices["partition"]).to_pylist(), 0)
    for partition, count in zip(found["partition"].to_pylist(), rows, strict=True):
        counts[partition] += count
    return new_group_ids({path: group_count(count, least, most) for path, count in counts.items()})


def _estimated_rows(storage: Storage, files: pa.Table) -> list[int]:
    """About how many rows base files have: exactly that of some, of the others by their sizes."""
    step = max(1, -(-files.num_rows // _SAMPLE))
    some = files.take(list(range(0, files.num_rows, step)))
    rows = row_counts(storage, some["base_path"])
    if step == 1:
        return rows
    by_byte = sum(rows) / max(1, pc.sum(some["base_size"]).as_py() or 0)
    return [round(size * by_byte) for size in files["base_size"].to_pylist()]


def _keys(
    spark: SparkSession,
    table: PinnedTable,
    opts: Options,
    slices: pa.Table,
    files: pa.Table,
    groups: RecordGroups,
    tasks: int,
) -> DataFrame:
    """The keys that the table's rows have now; ``files`` are the slices as numbered places."""
    logged = pc.fill_null(pc.greater(pc.list_value_length(slices["log_paths"]), 0), False)
    parts = []
    alone = files.filter(pc.invert(logged))
    if alone.num_rows:
        parts.append(file_keys(spark, table.storage, alone, groups, tasks))
    if alone.num_rows < files.num_rows:
        found = table_schema(table)
        if found is None:
            raise UnsupportedTableError("the table has log files, but no columns are known of it")
        context = slice_context(table, found.schema, opts=opts)
        rows = slices.append_column("number", files["number"]).filter(logged).to_pylist()
        parts.append(slice_keys(spark, context, [(FileSlice.of(row), row["number"]) for row in rows], groups, tasks))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def ensure_record_index(spark: SparkSession, storage: Storage, opts: Options) -> bool:
    """Build the record index if the options want one and the table has none; tells whether it was built. A warning says
    so if it cannot be: the last write is committed."""
    client = TableMetaClient.open(storage, opts)
    if not wants_record_index(opts, client.config):
        return False
    try:
        with locked(client, opts) as table:
            if not wants_record_index(opts, table.config):
                return False
            build_record_index(spark, storage, table.config, opts, table.data, table.completion)
    except HudiError as reason:
        _log.warning("the record index of %s was not built: %s", storage.root, reason)
        return False
    return True


def wants_record_index(opts: Options, config: TableConfig) -> bool:
    """Whether the options ask for a record index that the table could have and has not."""
    kinds = (options.METADATA_GLOBAL_RECORD_INDEX_ENABLE, options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE)
    wanted = opts.get_typed(options.METADATA_ENABLE) and any(opts.get_typed(kind) for kind in kinds)
    known = (*config.metadata_partitions, *config.metadata_partitions_inflight)
    return wanted and FILES in config.metadata_partitions and PARTITION not in known


def record_index_definition(*, partitioned: bool) -> dict[str, Any]:
    """The definition of a record index, which tables have from version 9 on."""
    return {
        "indexName": PARTITION,
        "indexType": PARTITION,
        "indexFunction": "",
        "sourceFields": [],
        "indexOptions": {PARTITIONED: str(partitioned).lower()},
        "version": "V1",
    }
