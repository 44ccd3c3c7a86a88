"""File groups as values: which rows of a table belong to which."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def group_keys(table: pa.Table) -> pa.Array:
    """Return one text for each row's partition and file id; equal groups have equal texts."""
    return pc.binary_join_element_wise(table["partition"], table["file_id"], "\x00").combine_chunks()


def in_groups(table: pa.Table, groups: pa.Table) -> pa.Array:
    """Return a mask of the rows of a table that are of one of the groups; both have the columns partition and
    file_id."""
    return pc.is_in(group_keys(table), value_set=group_keys(groups))
