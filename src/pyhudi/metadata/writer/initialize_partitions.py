"""Initialization of metadata table partitions: the first delta commit with the current content of the table, found by
listing it.

A partition that is being built is not declared, so that nobody reads it. After a crash its folder is deleted by the
next build. See docs/format/metadata.md, section 6.1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.errors import AlreadyExistsError, HudiError
from pyhudi.format.file_names import BASE, CDC, LOG, file_names_of
from pyhudi.metadata.file_groups.delta_commit_writer import (
    GroupFiles,
    MetadataCommit,
    begin_delta_commit,
    complete_delta_commit,
)
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.metadata_layout import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    create_metadata_folders,
    file_group_ids,
)
from pyhudi.metadata.records.record_factory import FILE_COLUMNS, file_records, partition_stats_records
from pyhudi.metadata.writer.file_records import FileRecords
from pyhudi.metadata.writer.file_statistics import BOUNDS
from pyhudi.metadata.writer.initial_statistics import PARTITION, InitialFileGroups
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.metadata.writer.rollback.instant_deletion import delete_instant
from pyhudi.storage import join_path
from pyhudi.storage.table_paths import METADATA_FOLDER, PARTITION_METADATA
from pyhudi.table.config.properties_text import format_properties
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_listing import list_files
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.instant import Action
from pyhudi.timeline.operation_types import BULK_INSERT_PREPPED
from pyhudi.timeline.timeline import Timeline

INIT_PREFIX = "0" * 14
"""Prefix of the first instants of the metadata table of a new table."""
_FIRST_SUFFIX = 10
"""First suffix of initial instants in tables of version 6."""


@dataclass(frozen=True, slots=True)
class TableContents:
    """Contents of a table: all files of writes that are not pending, those visible to a query (``live``), and the
    partition paths. Files have FILE_SCHEMA and the column ``name``."""

    files: pa.Table
    live: pa.Table
    partitions: Sequence[str]


def table_contents(table: TableSnapshot) -> TableContents:
    """List the files of a table, change data files included."""
    view = FileSystemView.load(table, lister=partial(list_files, kinds=(BASE, LOG, CDC)))
    pending = pa.array(table.active.timeline.pending().requested_times, pa.string())
    counts = pc.invert(pc.is_in(view.files["instant"], value_set=pending))
    if table.config.version < 8:
        # Names of log files do not identify their writers; their blocks do.
        counts = pc.or_(counts, pc.is_in(view.files["kind"], value_set=pa.array([LOG, CDC])))
    files = view.files.filter(counts)
    files = files.append_column("name", file_names_of(files["path"]))
    slices = view.latest_slices()
    visible = pa.chunked_array([*slices["base_path"].chunks, *(c.flatten() for c in slices["log_paths"].chunks)])
    live = files.filter(
        pc.is_in(files["path"], value_set=visible.drop_null().combine_chunks())
        if len(visible)
        else pc.not_equal(files["kind"], CDC)
    )
    return TableContents(files.combine_chunks(), live.combine_chunks(), view.partitions)


def build_partitions(table: LockedTable, partitions: Sequence[str], columns: pa.Schema) -> None:
    """Rebuild partitions of the metadata table, including ``files`` unless it exists. They are not declared here.

    Pending instants of the table are omitted. ``partitions`` are in build order, ``columns`` are those with statistics.
    """
    create_metadata_folders(table.storage, table.config)
    contents = table_contents(table.snapshot)
    first = InitialBuild(table, columns, contents)
    for partition in partitions:
        build_partition(table, partition, initial_file_group_count(partition, table.opts), first.write)


def build_partition(
    table: LockedTable,
    partition: str,
    groups: int | Sequence[str],
    write: Callable[[InitialFileGroups], list[WriteStat]],
) -> None:
    """Build one partition, whose base files ``write`` writes; it is removed if that fails. ``groups`` are the ids of
    its file groups, or their number."""
    storage, config, version = table.storage, table.config, table.config.version
    active = table.load_metadata_timeline()
    instant = initial_instant(active.timeline, table.active.timeline, version)
    files = GroupFiles(storage, partition, instant, version)
    ids = prepare_folder(files, groups)
    delta_commit = begin_delta_commit(active, instant)
    try:
        stats = write(InitialFileGroups(files, ids))
    except Exception:
        with contextlib.suppress(HudiError):  # The first error is the one to report.
            delete_instant(active.reload(), config, instant)
            storage.delete_tree(join_path(METADATA_FOLDER, partition))
        raise
    commit = MetadataCommit(stats, BULK_INSERT_PREPPED)
    # It would lack the writes that another process has committed meanwhile.
    table.reserved.lock.ensure_held()
    complete_delta_commit(active, delta_commit, commit, version, table.completed_at(version))


def prepare_folder(files: GroupFiles, groups: int | Sequence[str]) -> list[str]:
    """Create the folder of a partition with the initial log file of each file group. Return the ids of the groups.
    ``groups`` are these, or their number."""
    storage, folder = files.storage, join_path(METADATA_FOLDER, files.partition)
    storage.delete_tree(folder)
    now = datetime.now(UTC)
    content = format_properties({"commitTime": files.instant, "partitionDepth": "1"}, ("partition metadata",), now)
    with contextlib.suppress(AlreadyExistsError):
        storage.create(join_path(folder, PARTITION_METADATA), content)
    ids = file_group_ids(files.partition, groups) if isinstance(groups, int) else list(groups)
    for file_id in ids:
        files.open_group(file_id)
    return ids


def initial_instant(metadata_timeline: Timeline, data_timeline: Timeline, version: int) -> str:
    """Return the instant of the next initial delta commit: the first one that is not used yet."""
    if version >= 8:
        used = [int(i.requested) for i in metadata_timeline if i.requested.startswith(INIT_PREFIX)]
        return f"{max(used, default=-1) + 1:017d}"
    # Rollbacks write log files, too, which the partition includes from the start.
    done = data_timeline.completed().filter(lambda i: i.is_write or i.action == Action.ROLLBACK).last
    prefix = INIT_PREFIX if done is None else done.requested
    suffix = _FIRST_SUFFIX
    while f"{prefix}{suffix:03d}" in metadata_timeline:
        suffix += 1
    return f"{prefix}{suffix:03d}"


def initial_file_group_count(partition: str, opts: Options) -> int:
    """Return the number of file groups of a new partition."""
    counted = {
        COLUMN_STATS: options.METADATA_COLUMN_STATS_FILE_GROUPS,
        PARTITION_STATS: options.METADATA_PARTITION_STATS_FILE_GROUPS,
        BLOOM_FILTERS: options.METADATA_BLOOM_FILE_GROUPS,
    }
    option = options.METADATA_EXPRESSION_FILE_GROUPS if is_expression(partition) else counted.get(partition)
    return 1 if option is None else opts.get_typed(option)


class InitialBuild:
    """Writes the first base files of partitions of a table with these ``contents``. Data needed for several partitions
    are computed once."""

    def __init__(self, table: LockedTable, columns: pa.Schema, contents: TableContents) -> None:
        self._stats_reader, self._contents, self._version = table.stats_reader, contents, table.config.version
        newest = pc.max(self._base_files()["instant"]).as_py() or INIT_PREFIX
        self._records = FileRecords.from_table(table.storage, table.config, columns, newest)
        self._bounds: pa.Table | None = None

    def write(self, groups: InitialFileGroups) -> list[WriteStat]:
        """Write the base files of one partition. Return their write stats."""
        writers: Mapping[str, Callable[[InitialFileGroups], list[WriteStat]]] = {
            FILES: self._files,
            COLUMN_STATS: self._column_stats,
            PARTITION_STATS: self._partition_stats,
            BLOOM_FILTERS: self._blooms,
        }
        return writers[groups.files.partition](groups)

    def _files(self, groups: InitialFileGroups) -> list[WriteStat]:
        contents = self._contents
        files = contents.files.select(FILE_COLUMNS.names)
        return groups.write(file_records(files, contents.partitions, self._version, is_initial=True))

    def _column_stats(self, groups: InitialFileGroups) -> list[WriteStat]:
        stats, self._bounds = self._stats_reader.statistics(self._records, self._contents.live, groups)
        return stats

    def _partition_stats(self, groups: InitialFileGroups) -> list[WriteStat]:
        if self._bounds is None:
            _, self._bounds = self._stats_reader.statistics(self._records, self._contents.live, None)
        partitions, bounds = (self._bounds[name].combine_chunks() for name in (PARTITION, BOUNDS))
        exact = pc.unique(self._contents.live["partition"]).to_pylist()
        return groups.write(partition_stats_records(partitions, bounds, self._version, tight=exact, dropped=()))

    def _blooms(self, groups: InitialFileGroups) -> list[WriteStat]:
        return self._stats_reader.blooms(self._records, self._base_files(), groups)

    def _base_files(self) -> pa.Table:
        return self._contents.live.filter(pc.equal(self._contents.live["kind"], BASE))
