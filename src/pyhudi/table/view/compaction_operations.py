"""Operations of compactions: one per file slice, as rows of an Arrow table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous, list_sums
from pyhudi.format.file_names import file_names_of, file_paths
from pyhudi.storage import join_path
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_slicing import SLICE_SCHEMA, has_log_files
from pyhudi.timeline.plans.compaction_plan import OPERATION_SCHEMA

_MIB = 1024 * 1024


def operations_of(slices: pa.Table, excluded: pa.Table, max_file_size: int) -> pa.Table:
    """Return the operations that compact all slices with log files, except those of the ``excluded`` file groups.

    ``slices`` has :data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`, ``excluded`` the columns partition and
    file_id. The base file of a slice without one is assumed to get ``max_file_size`` bytes, as in Apache Hudi.
    """
    slices = slices.filter(has_log_files(slices))
    if excluded.num_rows and slices.num_rows:
        slices = slices.filter(pc.invert(in_groups(slices, excluded)))
    if not slices.num_rows:
        return OPERATION_SCHEMA.empty_table()
    base_size = pc.fill_null(slices["base_size"], 0)
    log_bytes = list_sums(slices["log_sizes"])
    written = pc.if_else(pc.greater(base_size, 0), base_size, max_file_size)
    columns = [
        slices["partition"],
        slices["file_id"],
        slices["base_instant"],
        pc.if_else(pc.is_valid(slices["base_path"]), _names(slices["base_path"]), pa.scalar(None, pa.string())),
        list_names(slices["log_paths"]),
        log_bytes,
        pc.divide(pc.add(base_size, log_bytes), _MIB),
        pc.divide(written, _MIB),
    ]
    return pa.Table.from_arrays(columns, schema=OPERATION_SCHEMA)


def operation_paths(row: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Return the paths of an operation's base file and log files, relative to the root of the table."""
    folder, base = row["partition"], row["base_file"]
    logs = tuple(join_path(folder, name) for name in row["log_files"])
    return (None if base is None else join_path(folder, base)), logs


def slices_of(operations: pa.Table, sizes: pa.Table) -> pa.Table:
    """Return the slices (:data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`) of operations; ``sizes`` are the sizes of
    existing files by their paths, 0 for those that do not exist."""
    folders = operations["partition"]
    base_paths = file_paths(folders, operations["base_file"])
    logs = contiguous(operations["log_files"])
    log_paths = file_paths(contiguous(folders).take(pc.list_parent_indices(logs)), logs.flatten())
    offsets = _offsets(logs)
    columns = [
        folders,
        operations["file_id"],
        operations["base_instant"],
        base_paths,
        pc.if_else(pc.is_valid(base_paths), _sizes(base_paths, sizes), pa.scalar(None, pa.int64())),
        pa.ListArray.from_arrays(offsets, log_paths),
        pa.ListArray.from_arrays(offsets, _sizes(log_paths, sizes)),
    ]
    return pa.Table.from_arrays(columns, schema=SLICE_SCHEMA)


def _sizes(paths: pa.Array | pa.ChunkedArray, sizes: pa.Table) -> pa.Array:
    at = contiguous(pc.index_in(paths, value_set=contiguous(sizes["path"])))
    return pc.fill_null(contiguous(sizes["size"]).take(at), 0)


def _names(paths: pa.ChunkedArray) -> pa.Array:
    return file_names_of(pc.fill_null(paths, ""))


def list_names(lists: pa.ChunkedArray) -> pa.Array:
    """Return the names of files in lists of paths."""
    flat = lists.combine_chunks()
    return pa.ListArray.from_arrays(_offsets(flat), file_names_of(flat.flatten()))


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Return the offsets of lists in their flattened values."""
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
