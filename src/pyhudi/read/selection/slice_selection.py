"""Selection of the file slices of a query, and of their rows, by the timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import QueryType
from pyhudi.errors import QueryError
from pyhudi.read.query.path_glob import glob_pattern
from pyhudi.read.query.query import Query
from pyhudi.read.selection.incremental_query import select_incremental
from pyhudi.read.selection.retention_limits import check_as_of
from pyhudi.read.selection.selected_slices import InstantBounds, PartitionPruning, Selection
from pyhudi.read.selection.table_files import TableFiles
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.table.view.file_system_view import FileSystemView

Prune = Callable[[list[str]], PartitionPruning]
"""Prunes partitions, given by path, that cannot have rows of a query."""


def select_slices(table: TableSnapshot, query: Query, files: TableFiles | None, prune: Prune | None) -> Selection:
    """Return the slices of a snapshot, read-optimized, time-travel or incremental query.

    ``files`` lists the files (None: from the storage). ``prune`` returns the partition paths that may have rows of the
    query; others are not listed if this saves time.

    Raises:
        QueryError: The query needs files that the cleaner has removed, or covers a pending write.
    """
    if query.is_incremental:
        if not table.config.populate_meta_fields:
            raise QueryError(
                "incremental queries require the commit time of every row, which this table does not store "
                "(hoodie.populate.meta.fields=false)"
            )
        selection = select_incremental(table, query)
    else:
        if query.as_of is not None:
            check_as_of(table.active, query.as_of)
        lister, partitions, selected, pruning = None, None, None, None
        if files is not None:
            lister, partitions = files.list, files.partitions()
            pruning = None if partitions is None or prune is None else prune(partitions)
            selected = partitions if pruning is None else pruning.paths
        if query.partitions is not None:
            selected = sorted(set(query.partitions).intersection(query.partitions if selected is None else selected))
        view = FileSystemView.load(table, partitions=selected, lister=lister)
        read_optimized = query.type is QueryType.READ_OPTIMIZED
        slices = as_slices(view.latest_base_files(query.as_of)) if read_optimized else view.latest_slices(query.as_of)
        if partitions is None or files is None or files.metadata is None:
            partitions = view.partitions
        selection = Selection(slices, partitions, InstantBounds(log_blocks=query.as_of, schema=query.as_of), pruning)
    return _restricted(selection, query, table.storage.uri())


def as_slices(base_files: pa.Table) -> pa.Table:
    """Return base files as slices without logs."""
    none = pa.array([[]] * base_files.num_rows, pa.list_(pa.string()))
    sizes = pa.array([[]] * base_files.num_rows, pa.list_(pa.int64()))
    names = ("partition", "file_id", "instant", "path", "size")
    return pa.Table.from_arrays([*(base_files[n] for n in names), none, sizes], schema=SLICE_SCHEMA)


def _restricted(selection: Selection, query: Query, root: str) -> Selection:
    slices, partitions = selection.slices, selection.partitions
    if query.subpath:
        inside = pc.starts_with(pc.binary_join_element_wise(slices["partition"], "", "/"), query.subpath + "/")
        slices = slices.filter(inside)
        partitions = [p for p in partitions if f"{p}/".startswith(query.subpath + "/")]
    if query.partitions is not None:
        # a listing of some partitions that fails is repeated for the whole table
        slices = slices.filter(pc.is_in(slices["partition"], value_set=pa.array(query.partitions, pa.string())))
        partitions = [p for p in partitions if p in query.partitions]
    if query.incremental.path_glob:
        # A slice of logs only is identified by its file group.
        group = pc.binary_join_element_wise(slices["partition"], slices["file_id"], "/")
        full = pc.binary_join_element_wise(root, pc.coalesce(slices["base_path"], group), "/")
        slices = slices.filter(pc.match_substring_regex(full, "(?s)" + glob_pattern("*" + query.incremental.path_glob)))
    return replace(selection, slices=slices, partitions=partitions)
