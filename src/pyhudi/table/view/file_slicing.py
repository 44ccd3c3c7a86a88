"""Grouping of files into file slices, column by column and independent of timelines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pyhudi.arrow.arrays import contiguous, list_sums
from pyhudi.format.file_names import BASE, LOG, file_names_of, parse_names
from pyhudi.table.view.file_listing import FILE_SCHEMA

SLICE_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_instant", pa.string()),
        ("base_path", pa.string()),
        ("base_size", pa.int64()),
        ("log_paths", pa.list_(pa.string())),
        ("log_sizes", pa.list_(pa.int64())),
    ]
)
"""One row per file slice, sorted by partition, file id and base instant. ``base_path`` and ``base_size`` are null for a
slice of logs only; logs are in merge order."""


def has_log_files(slices: pa.Table) -> pa.ChunkedArray:
    """Return a mask of the slices (with the column ``log_paths`` of `SLICE_SCHEMA`) that have log files."""
    return pc.fill_null(pc.greater(pc.list_value_length(slices["log_paths"]), 0), False)


def slice_sizes(slices: pa.Table) -> NDArray[np.int64]:
    """Return the bytes of the base file and the log files of each slice (`SLICE_SCHEMA`)."""
    sizes: NDArray[np.int64] = pc.add(pc.fill_null(slices["base_size"], 0), list_sums(slices["log_sizes"])).to_numpy()
    return sizes


def has_logs_named_by_slice(slices: pa.Table) -> bool:
    """Return True if a slice (`SLICE_SCHEMA`) has log files with its base instant in their names, as those that version
    6 writes: such a file may have blocks of several writes."""
    paths = contiguous(slices["log_paths"])
    instants = parse_names(file_names_of(paths.flatten()))["instant"]
    base_instants = contiguous(slices["base_instant"]).take(pc.list_parent_indices(paths))
    return bool(pc.any(pc.equal(contiguous(instants), base_instants)).as_py())


def fold_slices(files: pa.Table) -> pa.Table:
    """Group files (`FILE_SCHEMA` plus ``key``; kind ``pending`` opens a slice without a file) into `SLICE_SCHEMA`.

    In the order of their keys within a group, every base file starts a slice to which the following logs belong. Logs
    before the first base file of a group form a slice of logs only.
    """
    is_log = _to_numpy(pc.equal(files["kind"], LOG))
    if pc.all(pc.equal(files["kind"], BASE)).as_py() and is_sorted_by_unique_group(files):
        return _base_slices(files)
    group = group_codes(files)
    # The last key is the primary one; a base file precedes logs with the same key.
    order = np.lexsort((text_ranks(files["token"]), is_log, text_ranks(files["key"]), group))
    is_log, group = is_log[order], group[order]
    files = files.take(pa.array(order))
    new_group = np.append(True, np.diff(group) != 0)
    # A retried write can leave two base files of one instant: the one with the later token is used.
    start = new_group | ~is_log
    twin = np.append((~is_log[:-1]) & (~is_log[1:]) & ~new_group[1:], False)
    if twin.any():
        instant = text_ranks(files["instant"])
        twin[:-1] &= instant[:-1] == instant[1:]
        if twin.any():
            return fold_slices(files.filter(pa.array(~twin)))
    heads = pa.array(np.flatnonzero(start))
    head = files.take(heads)
    has_base = pc.equal(head["kind"], BASE)
    none = pa.scalar(None, pa.string())
    slice_of = (np.cumsum(start) - 1)[is_log]
    logs = files.filter(pa.array(is_log))
    # Completion times determine the slice of a log; the instants in the names determine the merge order.
    version = _to_numpy(pc.fill_null(logs["log_version"], 0))
    logs = logs.take(pa.array(np.lexsort((text_ranks(logs["token"]), version, text_ranks(logs["instant"]), slice_of))))
    counts = np.bincount(slice_of, minlength=head.num_rows)
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    lists = [pa.ListArray.from_arrays(offsets, contiguous(logs[name])) for name in ("path", "size")]
    columns = [
        head["partition"],
        head["file_id"],
        head["instant"],
        pc.if_else(has_base, head["path"], none),
        pc.if_else(has_base, head["size"], pa.scalar(None, pa.int64())),
        *lists,
    ]
    return sorted_by_group(pa.Table.from_arrays(columns, schema=SLICE_SCHEMA), "base_instant")


def _base_slices(files: pa.Table) -> pa.Table:
    """Return base files that are each the only file of their file group, in order, as slices."""
    offsets = pa.array(np.zeros(files.num_rows + 1, np.int32))
    none = [pa.ListArray.from_arrays(offsets, pa.array([], kind)) for kind in (pa.string(), pa.int64())]
    columns = [files[name] for name in ("partition", "file_id", "instant", "path", "size")]
    return pa.Table.from_arrays([*columns, *none], schema=SLICE_SCHEMA)


def pending_events(pending: pa.Table, as_of: str | None) -> pa.Table:
    """Return the slices that compactions have opened (partition, file_id, instant) up to a time, as rows for
    `fold_slices`."""
    if as_of is not None:
        pending = pending.filter(pc.less_equal(pending["instant"], as_of))
    columns = {
        "kind": pa.array(["pending"] * pending.num_rows, pa.string()),
        "partition": pending["partition"],
        "file_id": pending["file_id"],
        "instant": pending["instant"],
        "key": pending["instant"],
    }
    schema = FILE_SCHEMA.append(pa.field("key", pa.string()))
    arrays = [columns.get(f.name, pa.nulls(pending.num_rows, f.type)) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


# --- Arrow helpers ---------------------------------------------------------------------------------------------------


def instant_mask(instants: pa.ChunkedArray, keep: Callable[[str], bool]) -> pa.Array:
    """Return a mask from a predicate that is evaluated once per distinct instant."""
    kept = [instant for instant in pc.unique(instants).to_pylist() if keep(instant)]
    return pc.is_in(instants, value_set=pa.array(kept, pa.string()))


def map_instants(instants: pa.ChunkedArray, convert: Callable[[str], str]) -> pa.Array:
    """Return the results of a function that is called once per distinct instant."""
    encoded = contiguous(instants).dictionary_encode()
    mapped = pa.array([convert(i) for i in encoded.dictionary.to_pylist()], pa.string())
    return mapped.take(encoded.indices)


def _to_numpy(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    array: NDArray[Any] = contiguous(column).to_numpy(zero_copy_only=False)
    return array


def group_codes(table: pa.Table) -> NDArray[Any]:
    """Return a number per row that identifies its file group."""
    partitions, ids = (contiguous(table[name]).dictionary_encode() for name in ("partition", "file_id"))
    codes: NDArray[Any] = _to_numpy(partitions.indices).astype(np.int64) * len(ids.dictionary) + _to_numpy(ids.indices)
    return codes


def text_ranks(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return numbers with the same order as the texts; nulls are first."""
    encoded = contiguous(pc.fill_null(column, "")).dictionary_encode()
    order = np.empty(len(encoded.dictionary), dtype=np.int64)
    order[_to_numpy(pc.sort_indices(encoded.dictionary))] = np.arange(len(encoded.dictionary))
    return order[_to_numpy(encoded.indices)] if len(encoded) else np.zeros(0, dtype=np.int64)


def filtered(table: pa.Table, mask: pa.ChunkedArray | pa.Array) -> pa.Table:
    """Return the rows of a mask; the table itself if these are all."""
    return table if pc.all(mask).as_py() is True else table.filter(mask)


def is_sorted_by_unique_group(table: pa.Table) -> bool:
    """Return True if rows are ordered by partition and file id, and file groups are unique."""
    if table.num_rows < 2:
        return True
    before, after = table.slice(0, table.num_rows - 1), table.slice(1)
    same = pc.equal(before["partition"], after["partition"])
    ascending = pc.if_else(
        same, pc.less(before["file_id"], after["file_id"]), pc.less(before["partition"], after["partition"])
    )
    return bool(pc.all(ascending).as_py())


def sorted_by_group(table: pa.Table, last: str) -> pa.Table:
    """Return the rows ordered by partition, file id and another column."""
    if table.num_rows < 2 or _is_sorted(table, last):
        return table
    return table.sort_by([("partition", "ascending"), ("file_id", "ascending"), (last, "ascending")])


def _is_sorted(table: pa.Table, last: str) -> bool:
    """Return True if rows are already ordered by partition, file id and another column."""
    before, after = table.slice(0, table.num_rows - 1), table.slice(1)
    ordered = pc.less_equal(before[last], after[last])
    for name in ("file_id", "partition"):
        earlier = pc.less(before[name], after[name])
        ordered = pc.or_(earlier, pc.and_(pc.equal(before[name], after[name]), ordered))
    return bool(pc.all(ordered).as_py())
