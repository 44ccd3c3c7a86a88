"""Selection of the file slices of a query, and of their rows, by the timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import QueryType
from pyhudi.errors import QueryError
from pyhudi.read.execute.commit_time_filter import CommitTimes
from pyhudi.read.incremental_query import select_incremental
from pyhudi.read.query import Query, glob_pattern
from pyhudi.read.time_travel import check_as_of
from pyhudi.table.view.file_system_view import SLICE_SCHEMA, FileSystemView

if TYPE_CHECKING:
    from pyhudi.read.table_files import TableFiles
    from pyhudi.table.pinned_table import PinnedTable

Prune = Callable[[list[str]], list[str]]
"""Leaves out partitions, given by path, that cannot have rows of a query."""


@dataclass(frozen=True, slots=True)
class Selection:
    """``slices`` (`SLICE_SCHEMA`) of the query; ``commit_times`` its condition on rows; ``partitions`` all partition
    paths that were looked at; ``schema_as_of`` the requested time whose table schema applies (None: the latest).
    ``latest``: the requested time up to which blocks of log files count (None: all that the slices have)."""

    slices: pa.Table
    partitions: list[str]
    commit_times: CommitTimes | None = None
    schema_as_of: str | None = None
    latest: str | None = None


def select_slices(
    table: PinnedTable, query: Query, files: TableFiles | None = None, prune: Prune | None = None
) -> Selection:
    """The slices of a snapshot, read-optimized, time-travel or incremental query.

    ``files`` gives the files (None: a listing of the storage). ``prune`` says of partition paths which of them can have
    rows of the query; those that cannot are not looked at, as far as that saves anything.

    Raises:
        QueryError: the query reaches behind what the cleaner kept, or over a write that is still pending.
    """
    if query.is_incremental:
        if not table.config.populate_meta_fields:
            raise QueryError(
                "incremental queries need the commit time of every row, which this table does not keep "
                "(hoodie.populate.meta.fields=false)"
            )
        found = select_incremental(table, query)
        selection = Selection(found.slices, found.partitions, found.commit_times, found.schema_as_of, found.latest)
    else:
        if query.as_of is not None:
            check_as_of(table.active, query.as_of)
        lister, partitions, wanted = None, None, None
        if files is not None:
            lister, partitions = files.list, files.partitions()
            wanted = partitions if partitions is None or prune is None else prune(partitions)
        view = FileSystemView.load(table, partitions=wanted, lister=lister)
        read_optimized = query.type is QueryType.READ_OPTIMIZED
        slices = as_slices(view.latest_base_files(query.as_of)) if read_optimized else view.latest_slices(query.as_of)
        known = view.partitions if partitions is None or files is None or files.metadata is None else partitions
        selection = Selection(slices, known, schema_as_of=query.as_of, latest=query.as_of)
    return _restricted(selection, query, table.storage.uri())


def as_slices(base_files: pa.Table) -> pa.Table:
    """Base files as slices without logs."""
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
    if query.path_glob:
        # a slice of logs alone is known by its file group
        group = pc.binary_join_element_wise(slices["partition"], slices["file_id"], "/")
        full = pc.binary_join_element_wise(root, pc.coalesce(slices["base_path"], group), "/")
        slices = slices.filter(pc.match_substring_regex(full, "(?s)" + glob_pattern("*" + query.path_glob)))
    return replace(selection, slices=slices, partitions=partitions)
