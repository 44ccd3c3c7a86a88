"""Rows with duplicate record keys in a partition, and the rows to keep of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from pyhudi.config import Options, options
from pyhudi.config.enums import PartitionValues
from pyhudi.errors import QueryError
from pyhudi.read.scan_planner import plan_scan
from pyhudi.schema.meta_fields import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, RECORD_KEY
from pyhudi.services.repair.duplicate_keys import DUPLICATES_SCHEMA, DedupeType, Deduplication, check_deduplicable
from pyhudi.spark.read.dataframe_reader import dataframe
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.spark.spark_errors import task_errors
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.write.location_columns import FILE_ID

COPY_ORDER = "_pyhudi_copy_order"
"""Column with the order of the rows to keep."""
_RANK, _HEAD = "_pyhudi_copy_rank", "_pyhudi_head"
_MAX_SHOWN = 5
"""Number of partitions that a message names."""


def find_duplicates(
    spark: SparkSession, table: TableSnapshot, opts: Options, partition: str, kind: DedupeType
) -> Deduplication:
    """Find the record keys that occur more than once in a partition. Runs a Spark job.

    Raises:
        UnsupportedTableError: The table has no record keys, or its file groups cannot be replaced individually.
        QueryError: The partition has no files, or the dedupe type leaves several rows of a key.
    """
    check_deduplicable(table)
    rows = _rows(spark, table, opts, partition).select(RECORD_KEY, COMMIT_TIME, FILE_ID)
    with task_errors():
        groups = _groups_with_duplicates(rows).collect()  # one row for each of them
    tied = max((row["tied"] for row in groups if row["tied"] is not None), default=None)
    if tied is not None and kind is DedupeType.INSERT:
        raise QueryError(
            f"one commit has written the record key {tied!r} more than once, so none of its rows is the latest; "
            f"choose the dedupe type {DedupeType.UPSERT.value}, which keeps one of them"
        )
    columns = [[partition] * len(groups), [row[FILE_ID] for row in groups], [row["keys"] for row in groups]]
    return Deduplication(
        partition,
        pa.table(columns, schema=DUPLICATES_SCHEMA),
        sum(row["heads"] for row in groups),
        sum(row["surplus"] for row in groups),
    )


def _groups_with_duplicates(rows: DataFrame) -> DataFrame:
    """Return the file groups that have rows of repeated keys, in order.

    The columns are `FILE_ID`, the number of these keys (``keys``), the keys and the surplus rows that are counted here,
    because it is the first file group of their key (``heads``, ``surplus``), and a key with several rows of its newest
    commit (``tied``).
    """
    locations = (
        rows.repartition(RECORD_KEY).groupBy(RECORD_KEY, COMMIT_TIME, FILE_ID).agg(sf.count(sf.lit(1)).alias("n"))
    )
    by_key = locations.groupBy(RECORD_KEY).agg(
        sf.sum("n").alias("n"), sf.sort_array(sf.collect_list(sf.struct(COMMIT_TIME, FILE_ID, "n"))).alias("locations")
    )
    newest = sf.filter("locations", lambda one: one[COMMIT_TIME] == sf.element_at(sf.col("locations"), -1)[COMMIT_TIME])
    last = sf.aggregate(newest, sf.lit(0).cast("bigint"), lambda so_far, one: so_far + one["n"])
    files = sf.array_distinct(sf.col(f"locations.{FILE_ID}"))
    double = by_key.where("n > 1").select(
        RECORD_KEY, "n", last.alias("last"), sf.array_min(files).alias(_HEAD), sf.explode(files).alias(FILE_ID)
    )
    # a key is counted in the first of its file groups
    head = sf.col(FILE_ID) == sf.col(_HEAD)
    return (
        double.groupBy(FILE_ID)
        .agg(
            sf.count(sf.lit(1)).alias("keys"),
            sf.sum(head.cast("bigint")).alias("heads"),
            sf.sum(sf.when(head, sf.col("n") - 1).otherwise(0)).alias("surplus"),
            sf.max(sf.when(sf.col("last") > 1, sf.col(RECORD_KEY))).alias("tied"),
        )
        .orderBy(FILE_ID)
    )


def deduplicated_rows(spark: SparkSession, table: TableSnapshot, opts: Options, duplicates: Deduplication) -> DataFrame:
    """Return the rows to keep in the file groups with duplicates: meta columns, the columns of the table, `FILE_ID`,
    and their order. Lazy."""
    rows = _rows(spark, table, opts, duplicates.partition, duplicates.groups).withColumn(
        COPY_ORDER, sf.monotonically_increasing_id()
    )
    newest = [sf.col(name).desc_nulls_last() for name in (COMMIT_TIME, COMMIT_SEQNO, FILE_NAME, COPY_ORDER)]
    ranked = rows.withColumn(_RANK, sf.row_number().over(Window.partitionBy(RECORD_KEY).orderBy(*newest)))
    return ranked.where(sf.col(_RANK) == 1).drop(_RANK)


def _rows(
    spark: SparkSession, table: TableSnapshot, opts: Options, partition: str, groups: pa.Table | None = None
) -> DataFrame:
    """Return the snapshot of a partition, or of some of its file groups, with meta columns and `FILE_ID`.

    Raises:
        QueryError: The partition has no files.
    """
    # partition columns are read from the files: in paths they are texts
    opts = Options.parse({**opts, options.READ_PARTITION_VALUES.key: PartitionValues.FILE.value})
    plan = plan_scan(table, opts=opts)
    tasks = plan.tasks.filter(pc.equal(plan.tasks["partition"], partition))
    if not len(tasks):
        paths = sorted(pc.unique(plan.tasks["partition"]).to_pylist())
        rest = f" and {len(paths) - _MAX_SHOWN:,} more" if len(paths) > _MAX_SHOWN else ""
        shown = ", ".join(map(repr, paths[:_MAX_SHOWN])) or "none"
        raise QueryError(f"the table has no rows in a partition {partition!r}; its partitions are {shown}{rest}")
    if groups is not None:
        tasks = tasks.filter(in_groups(tasks, groups.select(["partition", "file_id"])))
    rows = dataframe(SparkScan(spark, table, replace(plan, tasks=tasks), opts))
    # the file name of a base file begins with the file id; rows from logs have the file id only
    return rows.withColumn(FILE_ID, sf.substring_index(FILE_NAME, "_", 1))
