"""File groups that a write changes, and file groups that two writes have in common."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata

GROUP_SCHEMA = REPLACED_SCHEMA
"""File groups: ``partition`` (relative path) and ``file_id``."""


def touched_groups(metadata: CommitMetadata) -> pa.Table:
    """Return the file groups that a write wrote to or replaced, as GROUP_SCHEMA."""
    written = metadata.stats.filter(pc.is_valid(metadata.stats["path"]))
    groups = pa.Table.from_arrays([written["partitionPath"], written["fileId"]], schema=GROUP_SCHEMA)
    if metadata.replaced is not None:
        groups = pa.concat_tables([groups, metadata.replaced.filter(pc.is_valid(metadata.replaced["file_id"]))])
    return groups.group_by(GROUP_SCHEMA.names).aggregate([]).select(GROUP_SCHEMA.names)


def rewritten_groups(metadata: CommitMetadata) -> pa.Table:
    """Return the file groups that a write rewrote or replaced, without those that only got log files."""
    stats = metadata.stats
    return touched_groups(replace(metadata, stats=stats.filter(pc.is_null(stats["logVersion"]))))


def groups_by_bucket(groups: pa.Table) -> pa.Table:
    """Return file groups of the bucket index by their bucket numbers: a bucket may have only one file group, but two
    writers may create one concurrently. (Random ids may start with eight digits, but hardly twice in one partition.)"""
    numbered = groups.filter(pc.match_substring_regex(groups["file_id"], r"^\d{8}-"))
    heads = pc.utf8_slice_codeunits(numbered["file_id"], 0, 8)
    return pa.Table.from_arrays([numbered["partition"], heads], schema=GROUP_SCHEMA)


def common_group(left: pa.Table, right: pa.Table) -> str | None:
    """Return the name of a file group that is in both tables (GROUP_SCHEMA), for messages; None if there is none."""
    common = left.join(right, keys=GROUP_SCHEMA.names, join_type="left semi")
    if not common.num_rows:
        return None
    partition, file_id = (common[name][0].as_py() for name in GROUP_SCHEMA.names)
    more = f" and {common.num_rows - 1} more" if common.num_rows > 1 else ""
    return f"file group {file_id!r} of partition {partition!r}{more}"


def common_instant(planned: pa.Table, groups: pa.Table) -> str:
    """Return the instant of a plan for one of the file groups. ``planned`` has the instants of plans, and has one of
    the ``groups``."""
    instant: str = planned.join(groups, keys=GROUP_SCHEMA.names, join_type="left semi")["instant"][0].as_py()
    return instant
