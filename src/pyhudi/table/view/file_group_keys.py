"""Identity of file groups, and keys to match rows of tables by file group."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


class FileGroupId(NamedTuple):
    """Identity of a file group in its table."""

    partition: str
    file_id: str


def group_keys(table: pa.Table) -> pa.Array:
    """Return one text per row that identifies its partition and file id."""
    return pc.binary_join_element_wise(table["partition"], table["file_id"], "\x00").combine_chunks()


def in_groups(table: pa.Table, groups: pa.Table) -> pa.Array:
    """Return a mask of the rows of a table that belong to one of the groups; both have the columns partition and
    file_id."""
    return pc.is_in(group_keys(table), value_set=group_keys(groups))
