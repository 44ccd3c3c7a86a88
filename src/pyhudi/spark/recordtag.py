"""Tagging by the record index: each row's file group, without its position there."""

from __future__ import annotations

import logging

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.columns import PARTITION_PATH
from pyhudi.spark.frames import small_frame
from pyhudi.spark.keytext import quoted
from pyhudi.spark.lookup import OLD_PARTITION
from pyhudi.spark.recordplaces import FOUND_ID
from pyhudi.write.columns import BASE_PATH, DELETE, FILE_ID, ROW, SOMEWHERE

_log = logging.getLogger(__name__)


def all_known(places: DataFrame, slices: pa.Table) -> bool:
    """Whether the index names file groups that the table has only. Runs a Spark job."""
    groups = set(zip(slices["partition"].to_pylist(), slices["file_id"].to_pylist(), strict=True))
    strangers = [row for row in places.select(OLD_PARTITION, FOUND_ID).distinct().collect() if tuple(row) not in groups]
    if strangers:
        _log.warning(
            "the record index names file group %r of partition %r; there is none, so keys are looked for in the files",
            strangers[0][1],
            strangers[0][0],
        )
    return not strangers


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
    """Whether a row's key is in another partition than the row says."""
    return F.col(OLD_PARTITION).isNotNull() & (F.col(OLD_PARTITION) != F.col(PARTITION_PATH))
