"""Rows of an UPDATE, DELETE or MERGE on their way to their file groups.

They have the columns of the table with their new values, and additionally the location of the stored row: its key, its
partition path and, in tables with meta fields, its file group. Therefore no lookup is needed.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.errors import ConflictError
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.helper_columns import STORED_KEY, STORED_PATH
from pyhudi.spark.keys.key_errors import key_failure
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION, UNKNOWN_POSITION
from pyhudi.write.planning.workload_profile import COUNTS_SCHEMA

CHANGE_COLUMNS = frozenset((STORED_KEY, STORED_PATH, IS_DELETE, FILE_ID, ROW_POSITION))
"""Columns of a change that are not the table's. `FILE_ID` is there only if rows are located, `ROW_POSITION` if
their positions are known."""


def keyed_changes(job: WriteJob, instant: str) -> DataFrame:
    """Return the changes of a job with their record keys and partition paths: stored ones, or, for new records, those
    computed from their columns. ``instant`` is needed for generated keys.

    Evaluating the result fails on a row whose record key was assigned another value.
    """
    assert job.changes is not None
    if job.changes.keeps_keys:
        stored = {STORED_KEY: RECORD_KEY, STORED_PATH: PARTITION_PATH}
        return job.df.withColumnsRenamed(stored)
    rows = with_keys(job.df, job.spec, instant)
    stored, made = F.col(STORED_KEY), F.col(RECORD_KEY)
    key = F.coalesce(stored, made)
    if job.changes.assigned.record_key and not job.spec.auto_keys:
        message = ("the record key of the stored row '", stored, "' cannot be changed to '", made, "'")
        same = stored.isNull() | (stored == made) | F.col(IS_DELETE)
        key = F.when(same, key).otherwise(key_failure(*message))
    path = F.coalesce(F.col(STORED_PATH), F.col(PARTITION_PATH))
    if job.changes.assigned.partition_path:
        path = F.when(F.col(IS_DELETE), path).otherwise(F.col(PARTITION_PATH))
    unused = (STORED_KEY, STORED_PATH, *(() if job.changes.located else (FILE_ID, ROW_POSITION)))
    return rows.withColumns({RECORD_KEY: key, PARTITION_PATH: path}).drop(*unused)


def located_changes(rows: DataFrame) -> DataFrame:
    """Tag rows whose file groups are known, and new records, which have none. Their base files are not known:
    `with_base_paths`."""
    added = {BASE_PATH: F.lit(None).cast("string")}
    if ROW_POSITION not in rows.columns:
        added[ROW_POSITION] = F.when(F.col(FILE_ID).isNotNull(), F.lit(UNKNOWN_POSITION).cast("bigint"))
    return rows.withColumns(added)


def positions_are_current(read: pa.Table, slices: pa.Table) -> bool:
    """Return True if the positions of rows refer to the base files of the table.

    Args:
        read: The base files in which rows have their positions (`RowLocations.groups`).
        slices: The file groups of the table (SLICE_SCHEMA).
    """
    at = pc.index_in(group_keys(read), value_set=group_keys(slices))
    same = pc.equal(read["base_path"].combine_chunks(), slices["base_path"].combine_chunks().take(at))
    # A group without a base file has no rows with positions.
    return bool(pc.all(pc.or_(pc.is_null(read["base_path"]), pc.fill_null(same, False)), min_count=0).as_py())


def with_base_paths(counts: pa.Table, slices: pa.Table, read: pa.Table | None) -> pa.Table:
    """Fill in the base files of file groups.

    Args:
        counts: Rows by file group (COUNTS_SCHEMA).
        slices: The file groups of the table (SLICE_SCHEMA).
        read: The base files in which rows have their positions (`RowChanges.bases`).

    Raises:
        ConflictError: The table has no such file group any more, or another base file in it: it was rewritten since it
            was read.
    """
    at = pc.index_in(group_keys(counts), value_set=group_keys(slices))
    located = pc.is_valid(counts["file_id"])
    paths = slices["base_path"].combine_chunks().take(at)
    stale = pc.is_null(at)
    if read is not None:
        positions = pc.index_in(group_keys(counts), value_set=group_keys(read))
        other = pc.fill_null(pc.not_equal(paths, read["base_path"].combine_chunks().take(positions)), True)
        # rows that were looked up have their base file, which need not be among those that were read
        stale = pc.or_(stale, pc.and_(pc.is_null(counts["base_path"]), other))
    rewritten = counts.filter(pc.and_(located, stale))
    if rewritten.num_rows:
        first = rewritten.slice(0, 1).to_pylist()[0]
        raise ConflictError(
            f"another writer concurrently changed file group {first['file_id']!r} of partition {first['partition']!r}, "
            "which was read; nothing was written. Run the statement again"
        )
    number = counts.schema.get_field_index("base_path")
    filled = counts.set_column(number, counts.schema.field(number), pc.coalesce(counts["base_path"], paths))
    names = ["partition", "file_id", "base_path"]
    summed = filled.group_by(names, use_threads=False).aggregate([("rows", "sum")])
    return pa.Table.from_arrays([*(summed[name] for name in names), summed["rows_sum"]], schema=counts.schema)


def uncounted(groups: pa.Table) -> pa.Table:
    """Return file groups that were read (`RowLocations.groups`) as if none of their rows were to be changed
    (COUNTS_SCHEMA)."""
    columns = [*(groups[name] for name in ("partition", "file_id", "base_path")), pa.array([0] * groups.num_rows)]
    return pa.table(columns, schema=COUNTS_SCHEMA)
