"""Tagging by the record index: the file group of each row, without a row position."""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.local_relations import looked_up
from pyhudi.spark.helper_columns import OLD_FILE_ID, OLD_PARTITION
from pyhudi.spark.keys.deduplication import is_marked_delete
from pyhudi.spark.lookup.record_index.record_index_lookup import BatchLocations
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION, UNKNOWN_POSITION
from pyhudi.write.planning.workload_profile import COUNTS_SCHEMA

_log = logging.getLogger(__name__)
_LOCATION = [OLD_PARTITION, OLD_FILE_ID]


def unknown_groups(locations: BatchLocations, slices: pa.Table, client: TableMetaClient) -> tuple[str, ...] | None:
    """Check that all file groups of the index exist.

    Args:
        locations: Locations of keys by the index.
        slices: File slices of the table (SLICE_SCHEMA).
        client: The table.

    Returns:
        None if all exist. Otherwise the errors of the index; none if another writer has created the file groups since,
        which is checked again before the commit.
    """
    named = locations.located_rows.select([OLD_PARTITION, OLD_FILE_ID]).rename_columns(["partition", "file_id"])
    unknown = named.filter(pc.invert(in_groups(named, slices)))
    if not unknown.num_rows:
        return None
    view = FileSystemView.load(client, partitions=pc.unique(unknown["partition"]).to_pylist())
    lost = unknown.filter(pc.invert(in_groups(unknown, view.latest_slices())))
    if not lost.num_rows:
        return ()
    _log.warning(
        "the record index names file group %r of partition %r, which does not exist; keys are looked up in files",
        *(lost["file_id"][0].as_py(), lost["partition"][0].as_py()),
    )
    return ("it names file groups that do not exist",)


def counts_by_file_group(locations: BatchLocations, slices: pa.Table) -> pa.Table:
    """Return the number of tagged rows by file group (COUNTS_SCHEMA). Keys of the batch are not repeated, and all
    records are in the partitions of their rows."""
    counts = locations.counts
    # Deletes of keys that do not exist are skipped.
    counts = counts.filter(pc.invert(pc.and_(counts[IS_DELETE], pc.is_null(counts[OLD_FILE_ID]))))
    summed = counts.group_by([PARTITION_PATH, OLD_FILE_ID]).aggregate([("rows", "sum")])
    base_files = slices.select(["partition", "file_id", "base_path"])
    asked = summed.select([PARTITION_PATH, OLD_FILE_ID, "rows_sum"]).rename_columns(["partition", "file_id", "rows"])
    joined = asked.join(base_files, ["partition", "file_id"], join_type="left outer")
    return joined.select(COUNTS_SCHEMA.names).cast(COUNTS_SCHEMA)


def moved_file_groups(locations: BatchLocations, matched: DataFrame) -> pa.Table:
    """Return the file groups (partition, file_id) of records whose rows are in other partitions. Runs a Spark job if
    rows of one key have been merged, because the counts have the partition of any of them."""
    if locations.max_rows_of_key > 1:
        moving = matched.where(is_in_other_partition()).select(*_LOCATION).distinct()
        rows = [] if locations.groups.partitioned else moving.collect()
        columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(2)]
        return pa.Table.from_arrays(columns, names=["partition", "file_id"])
    named = locations.located_rows
    moved = named.filter(pc.not_equal(named[OLD_PARTITION], named[PARTITION_PATH]))
    return moved.group_by(_LOCATION).aggregate([]).rename_columns(["partition", "file_id"])


def with_file_groups(matched: DataFrame, slices: pa.Table) -> DataFrame:
    """Return rows that are joined with locations as tagged rows, without positions and without deletes of keys that do
    not exist."""
    names = [name for name in matched.columns if name not in (OLD_PARTITION, OLD_FILE_ID)]
    base_files = pa.table(
        [slices["partition"], slices["file_id"], slices["base_path"]], names=[OLD_PARTITION, OLD_FILE_ID, BASE_PATH]
    )
    to_write = matched.where(~is_marked_delete() | F.col(OLD_FILE_ID).isNotNull())
    joined, columns = looked_up(to_write, base_files, [OLD_PARTITION, OLD_FILE_ID])
    return joined.select(
        *(quoted([name]) for name in names),
        F.col(OLD_FILE_ID).alias(FILE_ID),
        columns[BASE_PATH].alias(BASE_PATH),
        F.when(F.col(OLD_FILE_ID).isNotNull(), F.lit(UNKNOWN_POSITION).cast("bigint")).alias(ROW_POSITION),
    )


def is_in_other_partition() -> Column:
    """Return a column that is true if the record of a row is in another partition."""
    return F.col(OLD_PARTITION).isNotNull() & (F.col(OLD_PARTITION) != F.col(PARTITION_PATH))
