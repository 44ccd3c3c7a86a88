"""File group of each key in a partition of the metadata table, by Java's hash of the key; see docs/format/metadata.md,
1.5."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.java_hash import java_hashes


def file_group_index_of(keys: pa.Array | pa.ChunkedArray, groups: int) -> npt.NDArray[np.int32]:
    """Return the number, from 0, of each key's file group in an index with ``groups`` of them."""
    if groups <= 1:
        return np.zeros(len(keys), np.int32)
    numbers: npt.NDArray[np.int32] = (np.abs(java_hashes(keys).astype(np.int64)) % groups).astype(np.int32)
    return numbers


def secondary_file_group_index_of(keys: pa.Array, groups: int, table_version: int) -> npt.NDArray[np.int32]:
    """Return the number of the file group of each key of a secondary index.

    From table version 9 on, only the value with its ``$`` is hashed, so that a value is in one file group.
    """
    if table_version >= 9:
        keys = pc.struct_field(pc.extract_regex(keys, r"(?s)^(?P<secondary>(?:[^\\$]|\\.)*\$)"), 0)
    return file_group_index_of(keys, groups)
