"""Selection of rows by patterns of partition paths, as arguments of Apache Hudi's procedures have them."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pyarrow as pa
import pyarrow.compute as pc

ALL_PARTITIONS = "ALL_PARTITIONS"
"""Pattern of all partitions."""


def in_partitions(rows: pa.Table, pattern: str | None, column: str = "partition") -> pa.Table:
    """Return the rows of partitions whose path matches a pattern.

    Args:
        rows: Rows.
        pattern: Names of folders, in which ``*`` matches any part of one: ``2024/*``. None: as `ALL_PARTITIONS`.
        column: Column with partition paths.

    Returns:
        The rows.
    """
    if pattern in (None, ALL_PARTITIONS):
        return rows
    selected = [path for path in pc.unique(rows[column]).to_pylist() if _matches(path, pattern)]
    return rows.filter(pc.is_in(rows[column], pa.array(selected, pa.string())))


def _matches(path: str, pattern: str) -> bool:
    folders, patterns = path.split("/"), pattern.strip("/").split("/")
    return len(folders) == len(patterns) and all(map(fnmatchcase, folders, patterns))
