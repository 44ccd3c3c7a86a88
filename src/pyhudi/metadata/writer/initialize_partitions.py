"""The first delta commit of each partition of the metadata table: what the table holds by now, found by listing it.

A partition that is being built is not declared, so that nobody reads it: a builder that dies leaves a folder that the
next one wipes. Docs/format/metadata.md, section 6.1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.errors import AlreadyExistsError, HudiError
from pyhudi.format.file_names import BASE, LOG, split_paths
from pyhudi.metadata.disable_metadata import METADATA_FOLDER
from pyhudi.metadata.file_groups.delta_files import GroupFiles, Stat, begin, publish
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.metadata_layout import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    FILES,
    PARTITION_STATS,
    create_metadata_table,
    file_group_ids,
)
from pyhudi.metadata.records.record_factory import FILE_COLUMNS, file_records, partition_stats_records
from pyhudi.metadata.writer.file_statistics import BOUNDS
from pyhudi.metadata.writer.file_stats_reader import PARTITION, FileRecords, FileStatsReader, InitialFileGroups
from pyhudi.metadata.writer.metadata_rollback import delete_instant
from pyhudi.storage import join_path
from pyhudi.table.config.properties_text import format_properties
from pyhudi.table.partition_metadata import FILE_NAME as PARTITION_METADATA
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.instant import Action

if TYPE_CHECKING:
    from pyhudi.metadata.writer.metadata_write_context import MetadataWriteContext
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.timeline import Timeline

INIT_PREFIX = "0" * 14
"""Prefix of the first instants of the metadata table of a new table."""
_FIRST_SUFFIX = 10
"""First suffix of initial instants in tables of version 6."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a table: all files of writes that are not pending, those that a query sees (``live``), and the
    partition paths. Files have FILE_SCHEMA and the column ``name``."""

    files: pa.Table
    live: pa.Table
    partitions: Sequence[str]


def table_contents(storage: Storage, config: TableConfig, data: ActiveTimeline) -> Contents:
    """List a table as its timeline has it."""
    view = FileSystemView.load(PinnedTable(storage, config, data), data.timeline)
    pending = pa.array([i.requested for i in data.timeline.pending()], pa.string())
    counts = pc.invert(pc.is_in(view.files["instant"], value_set=pending))
    if config.version < 8:
        # names of log files do not tell who wrote them; that is told by their blocks
        counts = pc.or_(counts, pc.equal(view.files["kind"], LOG))
    files = view.files.filter(counts)
    files = files.append_column("name", split_paths(files["path"])[1])
    slices = view.latest_slices()
    seen = pa.chunked_array([*slices["base_path"].chunks, *(c.flatten() for c in slices["log_paths"].chunks)])
    live = files.filter(pc.is_in(files["path"], value_set=seen.drop_null().combine_chunks())) if len(seen) else files
    return Contents(files.combine_chunks(), live.combine_chunks(), view.partitions)


def build_partitions(
    metadata_context: MetadataWriteContext, config: TableConfig, partitions: Sequence[str], columns: pa.Schema
) -> None:
    """Build partitions of the metadata table anew, ``files`` among them or there already; they are not declared here.

    What is pending on the table's timeline is left out. ``partitions`` are in the order in which they are built,
    ``columns`` those that statistics are kept of.
    """
    create_metadata_table(metadata_context.storage, config)
    contents = table_contents(metadata_context.storage, config, metadata_context.data)
    first = InitialBuild(metadata_context.stats_reader, metadata_context.storage, config, columns, contents)
    for partition in partitions:
        build_partition(metadata_context, config, partition, group_count(partition, metadata_context.opts), first.write)


def build_partition(
    metadata_context: MetadataWriteContext,
    config: TableConfig,
    partition: str,
    groups: int | Sequence[str],
    write: Callable[[InitialFileGroups], list[Stat]],
) -> None:
    """Build one partition, whose base files ``write`` writes; nothing is left of it if that fails. ``groups`` are the
    ids of its file groups, or how many there are to be."""
    version, storage = config.version, metadata_context.storage
    active = metadata_context.own_timeline(config)
    instant = initial_instant(active.timeline, metadata_context.data.timeline, version)
    files = GroupFiles(storage, partition, instant, version)
    ids = prepare_folder(files, groups)
    entry = begin(active, instant)
    try:
        stats = write(InitialFileGroups(files, ids))
    except Exception:
        with contextlib.suppress(HudiError):  # what went wrong first is what the caller has to know
            delete_instant(storage, active.reload(), instant, config)
            storage.delete_tree(join_path(METADATA_FOLDER, partition))
        raise
    publish(active, entry, stats, version, metadata_context.completed_at(version), operation="BULK_INSERT_PREPPED")


def prepare_folder(files: GroupFiles, groups: int | Sequence[str]) -> list[str]:
    """Make the folder of a partition with a mark for each file group; returns the ids of the groups. ``groups`` are
    they, or how many there are to be."""
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


def initial_instant(metadata: Timeline, data: Timeline, version: int) -> str:
    """The instant of the next initial delta commit: the first one that is not used yet."""
    if version >= 8:
        used = [int(i.requested) for i in metadata if i.requested.startswith(INIT_PREFIX)]
        return f"{max(used, default=-1) + 1:017d}"
    # rollbacks write log files, too, which the partition knows from the start
    done = data.completed().filter(lambda i: i.is_write or i.action == Action.ROLLBACK).last
    prefix = INIT_PREFIX if done is None else done.requested
    suffix = _FIRST_SUFFIX
    while f"{prefix}{suffix:03d}" in metadata:
        suffix += 1
    return f"{prefix}{suffix:03d}"


def group_count(partition: str, opts: Options) -> int:
    """File groups that a new partition gets."""
    counted = {
        COLUMN_STATS: options.METADATA_COLUMN_STATS_FILE_GROUPS,
        PARTITION_STATS: options.METADATA_PARTITION_STATS_FILE_GROUPS,
        BLOOM_FILTERS: options.METADATA_BLOOM_FILE_GROUPS,
    }
    option = options.METADATA_EXPRESSION_FILE_GROUPS if is_expression(partition) else counted.get(partition)
    return 1 if option is None else opts.get_typed(option)


class InitialBuild:
    """Writes the first base files of partitions, of a table with these ``contents``; what several of them need is found
    once."""

    def __init__(
        self,
        stats_reader: FileStatsReader,
        storage: Storage,
        config: TableConfig,
        columns: pa.Schema,
        contents: Contents,
    ) -> None:
        self._stats_reader, self._contents, self._version = stats_reader, contents, config.version
        newest = pc.max(self._base_files()["instant"]).as_py() or INIT_PREFIX
        self._records = FileRecords(storage, config.version, columns, logs_stand_alone(config), newest)
        self._bounds: pa.Table | None = None

    def write(self, groups: InitialFileGroups) -> list[Stat]:
        """Write the base files of one partition; returns their write stats."""
        known: Mapping[str, Callable[[InitialFileGroups], list[Stat]]] = {
            FILES: self._files,
            COLUMN_STATS: self._column_stats,
            PARTITION_STATS: self._partition_stats,
            BLOOM_FILTERS: self._blooms,
        }
        return known[groups.files.partition](groups)

    def _files(self, groups: InitialFileGroups) -> list[Stat]:
        found = self._contents
        files = found.files.select(FILE_COLUMNS.names)
        return groups.write(file_records(files, found.partitions, self._version, first=True))

    def _column_stats(self, groups: InitialFileGroups) -> list[Stat]:
        stats, self._bounds = self._stats_reader.statistics(self._records, self._contents.live, groups)
        return stats

    def _partition_stats(self, groups: InitialFileGroups) -> list[Stat]:
        if self._bounds is None:
            _, self._bounds = self._stats_reader.statistics(self._records, self._contents.live, None)
        partitions, bounds = (self._bounds[name].combine_chunks() for name in (PARTITION, BOUNDS))
        exact = pc.unique(self._contents.live["partition"]).to_pylist()
        return groups.write(partition_stats_records(partitions, bounds, self._version, tight=exact, dropped=()))

    def _blooms(self, groups: InitialFileGroups) -> list[Stat]:
        return self._stats_reader.blooms(self._records, self._base_files(), groups)

    def _base_files(self) -> pa.Table:
        return self._contents.live.filter(pc.equal(self._contents.live["kind"], BASE))


def logs_stand_alone(config: TableConfig) -> bool:
    """Return True if the values of a log file's records are those of the merged rows, or the base file's rows stand as
    they are. Where a row takes some values from each, the bounds of one file alone say nothing of the row."""
    merging = config.merging
    return merging.mode.value != "CUSTOM" and config.partial_update_mode is None
