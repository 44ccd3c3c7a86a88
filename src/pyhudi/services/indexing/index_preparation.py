"""Preparation of partitions of the metadata table that are built concurrently with writers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyhudi.errors import UnsupportedTableError
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles
from pyhudi.metadata.indexes.index_definitions import column_stats_definition
from pyhudi.metadata.indexes.indexed_columns import columns_to_index
from pyhudi.metadata.metadata_layout import COLUMN_STATS, PARTITION_STATS, file_group_ids
from pyhudi.metadata.writer.initial_statistics import InitialFileGroups
from pyhudi.metadata.writer.initialize_partitions import InitialBuild, initial_file_group_count, table_contents
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.timeline.active_timeline import ActiveTimeline


@dataclass(frozen=True, slots=True)
class PreparedIndex:
    """A partition to be built from the content of a table at one point in time.

    ``groups`` are the ids of its file groups; ``definition`` is its index definition, unless it is stored already.
    ``write`` writes the base files, which takes long, and returns their write stats. ``verify`` checks, given these and
    a later timeline of the table, whether the table still supports the index after later writes, and raises
    UnsupportedTableError if not.
    """

    partition: str
    groups: Sequence[str]
    definition: Mapping[str, Any] | None
    write: Callable[[], Sequence[Mapping[str, Any]]]
    verify: Callable[[Sequence[Mapping[str, Any]], ActiveTimeline], None] | None = None


Preparer = Callable[[LockedTable, IndexRequest, str], PreparedIndex]
"""Prepares an index with as many records as the table, for an instant, without reading data."""


def prepare_indexes(
    table: LockedTable, requests: Sequence[IndexRequest], instant: str, preparer: Preparer | None
) -> list[PreparedIndex]:
    """Prepare the requested indexes from the completed instants in the timeline of the locked table.

    Raises:
        UnsupportedTableError: The table does not support one of them.
    """
    storage, config = table.storage, table.config
    local_partitions = [request.partition for request in requests if not request.needs_spark]
    prepared = []
    if local_partitions:
        columns = columns_to_index(table.snapshot, table.opts)
        if not columns.names and {COLUMN_STATS, PARTITION_STATS} & set(local_partitions):
            raise UnsupportedTableError(
                f"{local_partitions[0]} cannot be built for this table, because its columns are not known yet"
            )
        first = InitialBuild(table, columns, table_contents(table.snapshot))
    for request in requests:
        partition = request.partition
        if request.needs_spark:
            assert preparer is not None
            prepared.append(preparer(table, request, instant))
            continue
        ids = file_group_ids(partition, initial_file_group_count(partition, table.opts))
        definition = None
        if partition == COLUMN_STATS and config.version >= 8:
            definition = column_stats_definition(columns.names, config.version)
        groups = InitialFileGroups(GroupFiles(storage, partition, instant, config.version), ids)
        prepared.append(PreparedIndex(partition, ids, definition, partial(first.write, groups)))
    return prepared
