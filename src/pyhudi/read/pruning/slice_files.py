"""Files and file groups of slices, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.binary_gather import gather
from pyhudi.format.file_names import file_names_of

_MAX_BYTES = (1 << 31) - 1


def slice_files(slices: pa.Table) -> tuple[pa.Table, np.ndarray[Any, np.dtype[np.int64]]]:
    """Return the names of all files of slices with their partitions, and the row of each one's slice."""
    base = np.flatnonzero(pc.is_valid(slices["base_path"]).to_numpy(zero_copy_only=False))
    lists = slices["log_paths"].combine_chunks()
    logs = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    owner = np.concatenate([base, logs])
    paths = pa.concat_arrays(
        [slices["base_path"].combine_chunks().drop_null(), pc.list_flatten(lists).cast(pa.string())]
    )
    partitions = slices["partition"].combine_chunks().take(pa.array(owner))
    return pa.table({"partition": partitions, "name": _without_folders(paths, partitions)}), owner


def _without_folders(paths: pa.StringArray, folders: pa.StringArray) -> pa.StringArray:
    """Return the names in paths, given the folders with which they start."""
    if not len(paths) or paths.nbytes >= _MAX_BYTES:
        return file_names_of(paths)
    offsets = np.frombuffer(paths.buffers()[1], np.int32, len(paths) + 1, 4 * paths.offset).astype(np.int64)
    sizes = pc.binary_length(folders).to_numpy().astype(np.int64)
    starts = offsets[:-1] + sizes + (sizes > 0)
    data = np.frombuffer(paths.buffers()[2] or b"", np.uint8)
    return gather(data, starts, offsets[1:] - starts).cast(pa.string())
