"""File groups of the bucket index, whose ids start with the bucket number in eight characters."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import UnsupportedTableError

BUCKET_GROUPS_SCHEMA = pa.schema(
    [("partition", pa.string()), ("bucket", pa.int32()), ("file_id", pa.string()), ("base_path", pa.string())]
)
"""File group of each existing bucket, and its base file; null if there are only log files."""

_DIGITS = 8
SHARED_FILE_ID_SUFFIX = "-0000-0000-0000-000000000000-0"
"""Suffix of the ids of file groups that non-blocking writers create, which all of them have to give the same id."""


def new_file_id_suffix() -> str:
    """Return the suffix of the ids of file groups that one write creates.

    Buckets have different numbers, and a file group is identified by partition and id, so all of them can share it.
    """
    return str(uuid.uuid4())[_DIGITS:] + "-0"


def bucket_numbers(file_ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the buckets (int32) of file groups; null if an id does not start with a number."""
    heads = pc.utf8_slice_codeunits(file_ids, 0, _DIGITS)
    valid = pc.match_substring_regex(file_ids, r"^\d{8}-")
    return pc.if_else(valid, heads, pa.scalar(None, pa.string())).cast(pa.int32())


def bucket_groups(slices: pa.Table) -> pa.Table:
    """Return the file groups (BUCKET_GROUPS_SCHEMA) of slices (SLICE_SCHEMA) of a table with the bucket index.

    Raises:
        UnsupportedTableError: A file group has no bucket, or a bucket several file groups.
    """
    numbers = bucket_numbers(slices["file_id"])
    if numbers.null_count:
        stranger = slices.filter(pc.is_null(numbers)).slice(0, 1).to_pylist()[0]
        raise UnsupportedTableError(
            f"file group {stranger['file_id']!r} of partition {stranger['partition']!r} was not written with the "
            "bucket index: its id does not start with a bucket number. Use the index with which the table was "
            "created"
        )
    columns = [slices["partition"], numbers, slices["file_id"], slices["base_path"]]
    groups = pa.Table.from_arrays(columns, schema=BUCKET_GROUPS_SCHEMA)
    counts = groups.group_by(["partition", "bucket"]).aggregate([([], "count_all")])
    several = counts.filter(pc.greater(counts["count_all"], 1))
    if several.num_rows:
        first = several.slice(0, 1).to_pylist()[0]
        raise UnsupportedTableError(
            f"bucket {first['bucket']} of partition {first['partition']!r} has {first['count_all']} file groups "
            "instead of one: two writers created it concurrently, or it was written by bulk_insert twice. "
            "Rewrite the partition with insert_overwrite"
        )
    return groups.combine_chunks()
