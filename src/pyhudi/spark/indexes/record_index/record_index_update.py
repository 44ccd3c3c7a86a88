"""Update of the record index with the key changes of a write, in the same transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import MetadataTableError, UnsupportedTableError
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles, GroupSlice
from pyhudi.metadata.file_groups.log_file_groups import group_slices
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.indexes.record_index_definition import has_partitioned_record_index
from pyhudi.metadata.metadata_layout import RECORD_INDEX, load_metadata_timeline
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.records.record_index_file_groups import RecordIndexFileGroups, new_group_ids
from pyhudi.spark.execution.local_relations import union
from pyhudi.spark.indexes.key_ranges import task_count
from pyhudi.spark.indexes.record_index.record_index_keys import KeyRouting, file_keys, removed_from, removed_keys
from pyhudi.spark.indexes.record_index.record_index_writer import (
    KeyLocations,
    RecordIndexWrite,
    count_duplicates,
    write_keys,
)
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.instant import millis_of_instant
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.write_operations import replaced_files

_log = logging.getLogger(__name__)


class NewKeys(Protocol):
    """The new keys of a write."""

    def new_keys(self, files: pa.Table, groups: RecordIndexFileGroups) -> DataFrame | None:
        """Return the keys in the form of `file_keys`, given the files that have them and the file groups of the index.
        Keys of one group are in one partition of the frame. None: they have to be read from the files."""


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """Changes of keys by a write.

    Attributes:
        stats: Its write stats.
        slices: The file groups before the write (SLICE_SCHEMA), of which ``replaced`` (REPLACED_SCHEMA) are replaced.
        deleted: Returns the rows whose keys are certainly deleted in their partitions; None without any.
        looked_up: New keys were looked up in the record index. ``inconsistencies``: contradictions found there.
        bucketed: No keys were looked up, and log files may have new ones.
        planned: Returns the new keys without reading files, if these are as planned.
    """

    stats: pa.Table
    slices: pa.Table = field(default_factory=SLICE_SCHEMA.empty_table)
    replaced: pa.Table | None = None
    deleted: Callable[[], DataFrame | None] = lambda: None
    looked_up: bool = False
    bucketed: bool = False
    inconsistencies: Sequence[str] = ()
    planned: NewKeys | None = None


def index_delta(spark: SparkSession, tx: Transaction, opts: Options, changes: KeyChanges) -> IndexDelta | None:
    """Write the changes of keys by a write to the record index. Runs a Spark job.

    An index has one location per key. If a write adds a key to a second file group (of the partition, if the index is
    partitioned), lookups would not find all of its rows, so the index is disabled.

    Args:
        spark: The session.
        tx: Transaction of the write; tasks write only while its fence is open (`GroupFiles`).
        opts: Options of the write.
        changes: Changes of the keys.

    Returns:
        The update; None if the table has no record index, or it cannot be updated and is to be disabled.
    """
    if RECORD_INDEX not in tx.config.metadata_partitions or not tx.config.populate_meta_fields:
        return None
    update = _RecordIndexUpdate.from_transaction(spark, tx, opts, changes)
    return None if update is None else update.run()


@dataclass(frozen=True, slots=True)
class _RecordIndexUpdate:
    """Update of a record index.

    Attributes:
        spark: The session.
        tx: Transaction of the write.
        opts: Options of the write.
        changes: Changes of the keys.
        current: The current metadata table.
        groups: File groups of the index.
    """

    spark: SparkSession
    tx: Transaction
    opts: Options
    changes: KeyChanges
    current: MetadataTable
    groups: RecordIndexFileGroups

    @classmethod
    def from_transaction(
        cls, spark: SparkSession, tx: Transaction, opts: Options, changes: KeyChanges
    ) -> _RecordIndexUpdate | None:
        """Return the update; None if the index cannot be kept up to date."""
        storage, config = tx.storage, tx.config
        if changes.inconsistencies:
            _log_disabled(storage, changes.inconsistencies[0])
            return None
        try:
            current = MetadataTable.open_now(storage, config)
            groups = RecordIndexFileGroups.from_ids(
                current.groups(RECORD_INDEX)["file_id"].to_pylist(),
                partitioned=has_partitioned_record_index(storage, config),
            )
        except MetadataTableError as reason:
            _log_disabled(storage, reason)
            return None
        return cls(spark, tx, opts, changes, current, groups)

    def run(self) -> IndexDelta | None:
        """Write the update; None if the index cannot be kept up to date."""
        tx, changes = self.tx, self.changes
        deleted = changes.deleted()
        files = _written(changes, every=deleted is not None, millis=millis_of_instant(tx.instant, tx.config.timezone))
        replaced = replaced_files(changes.slices, changes.replaced)
        if not files.num_rows and deleted is None and not replaced.num_rows:
            return IndexDelta(frozenset({RECORD_INDEX}))
        target = self._target(pc.unique(files["partition"]).to_pylist())
        locations = KeyLocations(files, pc.unique(changes.slices["partition"]).cast(pa.string()))
        tasks = task_count(len(target.groups), self.spark)
        keys = None
        if changes.planned is not None and deleted is None and not replaced.num_rows:
            keys = changes.planned.new_keys(files, target.groups)
        planned = keys is not None
        if keys is None:
            keys = self._read_keys(locations, deleted, replaced, KeyRouting(target.groups, tasks))
        try:
            written = write_keys(keys, locations, target, None if planned else tasks)
        except UnsupportedTableError as reason:
            _log_disabled(tx.storage, reason)
            return None
        if written.duplicates:
            where = "" if target.groups.partitioned else ", of the same or of several partitions"
            _log_disabled(tx.storage, f"{written.duplicates} keys are in more than one file group now{where}")
            return None
        find_conflict = partial(_find_conflict, keys, locations, target, tasks) if files.num_rows else None
        return IndexDelta(frozenset({RECORD_INDEX}), written.stats, find_key_conflict=find_conflict)

    def _target(self, partitions: list[str]) -> RecordIndexWrite:
        """Return the file groups to write, including new ones of new partitions."""
        storage, config, instant = self.tx.storage, self.tx.config, self.tx.instant
        groups = create_missing_file_groups(
            storage, config, self.opts, instant=instant, groups=self.groups, partitions=partitions
        )
        return RecordIndexWrite(
            storage,
            instant,
            config.version,
            groups,
            file_groups_of(storage, config, groups),
            self.current,
            looks_up_added=not self.changes.looked_up,
            fence=self.tx.fence,
        )

    def _read_keys(
        self, locations: KeyLocations, deleted: DataFrame | None, replaced: pa.Table, routing: KeyRouting
    ) -> DataFrame:
        """Return the keys of written files, deleted ones, and those of replaced file groups."""
        storage, files, partitions = self.tx.storage, locations.files, locations.partitions
        read = partial(file_keys, invalid_text=self.opts.get_typed(options.READ_INVALID_TEXT))
        parts = []
        if files.num_rows:
            parts.append(read(self.spark, storage, files, routing, since=self.tx.instant))
        if deleted is not None:
            parts.append(removed_keys(deleted, partitions, routing))
        if replaced.num_rows:
            numbers = removed_from(pc.index_in(replaced["partition"], value_set=partitions))
            parts.append(read(self.spark, storage, replaced.append_column("number", numbers), routing))
        return union(parts)


def _log_disabled(storage: Storage, reason: object) -> None:
    _log.warning("the record index of %s is taken out of use: %s", storage.root, reason)


def _find_conflict(keys: DataFrame, locations: KeyLocations, target: RecordIndexWrite, tasks: int) -> str | None:
    """Return the conflict with writes that were committed since the keys were written: some have another location by
    now, or a new partition has other numbers of file groups. Runs a Spark job."""
    config = TableConfig.load(target.storage)
    if RECORD_INDEX not in config.metadata_partitions:
        return None
    try:
        now = MetadataTable.open_now(target.storage, config)
        ids = now.groups(RECORD_INDEX)["file_id"].to_pylist()
    except MetadataTableError:  # the commit does without it
        return None
    if target.groups.contradicts(RecordIndexFileGroups.from_ids(ids, partitioned=target.groups.partitioned)):
        return "other numbers of file groups of the record index were opened for its partitions"
    count = count_duplicates(keys, locations, replace(target, current=now, looks_up_added=True), tasks)
    return f"{count} of its new keys were added" if count else None


def _written(changes: KeyChanges, *, every: bool, millis: int) -> pa.Table:
    """Return the files that may have new keys: number, partition, file_id, path, millis, and ``tail``: the number of
    last rows with new keys (null: any rows). ``every``: also files with keys that are deleted elsewhere in the
    batch."""
    stats = changes.stats
    is_log = pc.is_valid(stats["logVersion"])
    new = pc.fill_null(pc.greater(stats["numInserts"], 0), False)
    rows = pc.fill_null(pc.greater(stats["numWrites"], 0), False)
    # A base file still has keys that log files have deleted, where other indexes find them.
    from_logs = pc.and_(pc.and_(is_log, rows), pa.scalar(changes.bucketed or not changes.looked_up))
    is_selected = pc.or_(pc.and_(pc.invert(is_log), new), from_logs)
    written = stats.filter(rows if changes.bucketed and every else is_selected)
    files = numbered_locations(written["partitionPath"], written["fileId"], written["path"], millis)
    # new records are the last ones of a base file
    appended = pc.and_(pc.is_null(written["logVersion"]), pa.scalar(not (changes.bucketed and every)))
    return files.append_column("tail", pc.if_else(appended, written["numInserts"], None))


def numbered_locations(
    partitions: pa.ChunkedArray, file_ids: pa.ChunkedArray, paths: pa.ChunkedArray, millis: int | pa.Array
) -> pa.Table:
    """Return files as locations of keys, numbered from 0 on: partition, file_id, path, millis, number."""
    count = len(paths)
    times = pa.repeat(pa.scalar(millis, pa.int64()), count) if isinstance(millis, int) else millis
    numbers = pa.array(range(count), pa.int32())
    names = ["partition", "file_id", "path", "millis", "number"]
    return pa.table([partitions, file_ids, paths, times, numbers], names=names).combine_chunks()


def create_missing_file_groups(
    storage: Storage,
    config: TableConfig,
    opts: Options,
    *,
    instant: str,
    groups: RecordIndexFileGroups,
    partitions: list[str],
) -> RecordIndexFileGroups:
    """Create file groups for partitions that the index does not have yet. Return all file groups."""
    missing = groups.missing(partitions)
    if not missing:
        return groups
    min_groups = opts.get_typed(options.METADATA_PARTITIONED_RECORD_INDEX_MIN_GROUPS)
    made = new_group_ids(dict.fromkeys(missing, min_groups))
    files = GroupFiles(storage, RECORD_INDEX, instant, config.version)
    for file_id in made:
        files.open_group(file_id)
    return RecordIndexFileGroups.from_ids((*groups.ids, *made), partitioned=True)


def file_groups_of(storage: Storage, config: TableConfig, groups: RecordIndexFileGroups) -> list[GroupSlice]:
    """Return the names of the next log files of the file groups."""
    if config.version >= 8:
        return [GroupSlice(file_id) for file_id in groups.ids]
    slices = group_slices(
        storage, load_metadata_timeline(storage, config.version).timeline, RECORD_INDEX, config.version
    )
    ids = set(groups.ids)
    return [one for one in slices if one.file_id in ids]
