"""Tagging by the record index: each row's file group, without its position there."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.spark.execution.driver_frames import small_frame
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.lookup.base_file_keys import OLD_PARTITION
from pyhudi.spark.lookup.record_index_lookup import FOUND_ID
from pyhudi.write.location_columns import BASE_PATH, DELETE, FILE_ID, ROW, SOMEWHERE


def unknown_groups(places: DataFrame, slices: pa.Table) -> set[tuple[str, str]]:
    """The file groups (partition, file id) that the index names and the slices have not. Runs a Spark job."""
    return {tuple(row) for row in places.select(OLD_PARTITION, FOUND_ID).distinct().collect()} - groups_of(slices)


def groups_of(slices: pa.Table) -> set[tuple[str, str]]:
    """Partition and id of the file groups of slices."""
    return set(zip(slices["partition"].to_pylist(), slices["file_id"].to_pylist(), strict=True))


def tagged(matched: DataFrame, slices: pa.Table) -> DataFrame:
    """Rows with the places of their keys as tagged rows, without positions; deletes of keys that are nowhere are left
    out."""
    names = [name for name in matched.columns if name not in (OLD_PARTITION, FOUND_ID)]
    known = pa.table(
        [slices["partition"], slices["file_id"], slices["base_path"]], names=[OLD_PARTITION, FOUND_ID, BASE_PATH]
    )
    kept = matched.where(~F.coalesce(F.col(DELETE), F.lit(False)) | F.col(FOUND_ID).isNotNull())
    placed = kept.join(F.broadcast(small_frame(matched.sparkSession, known)), [OLD_PARTITION, FOUND_ID], "left")
    return placed.select(
        *(quoted([name]) for name in names),
        F.col(FOUND_ID).alias(FILE_ID),
        F.col(BASE_PATH),
        F.when(F.col(FOUND_ID).isNotNull(), F.lit(SOMEWHERE).cast("bigint")).alias(ROW),
    )


def elsewhere() -> Column:
    """Column that is true if a row's key is in another partition than the row's."""
    return F.col(OLD_PARTITION).isNotNull() & (F.col(OLD_PARTITION) != F.col(PARTITION_PATH))
