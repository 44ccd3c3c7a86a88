"""Routing of rows to the tasks that write the file groups of their buckets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType

from pyhudi.config.enums import TableType
from pyhudi.index.bucket_file_ids import SHARED_FILE_ID_SUFFIX, bucket_groups, new_file_id_suffix
from pyhudi.index.bucket_hash import bucket_hashes
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.arrow_udfs import arrow_function
from pyhudi.spark.execution.local_relations import small_frame
from pyhudi.spark.execution.task_placement import assign_tasks
from pyhudi.spark.keys.deduplication import POSITION
from pyhudi.spark.write.plans.write_plan import max_tasks, requested_tasks
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.transaction.concurrency_mode import is_non_blocking
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, PLACEMENT_KEY, ROW_POSITION

_BUCKET, _KNOWN_ID = "_pyhudi_bucket", "_pyhudi_known_id"
_MIN_TASKS = 8


def route_to_buckets(rows: DataFrame, job: WriteJob, bucketing: BucketIndex, slices: pa.Table) -> DataFrame:
    """Return the rows with the file groups of their buckets, on the tasks that write these.

    Args:
        rows: Keyed rows.
        job: The job.
        bucketing: Distribution of keys over buckets.
        slices: The file groups that rows are merged into (SLICE_SCHEMA).
    """
    rows, groups = with_bucket(rows, job.spec, bucketing, _BUCKET), bucket_groups(slices)
    suffix = SHARED_FILE_ID_SUFFIX if is_non_blocking(job.opts) else new_file_id_suffix()
    opened_id = F.concat(F.lpad(F.col(_BUCKET).cast("string"), 8, "0"), F.lit(suffix))
    file_id, base_path = opened_id, F.lit(None).cast("string")
    keys, tasks = _task_placement(slices, job)
    if groups.num_rows:
        groups_with_tasks = groups.append_column(PLACEMENT_KEY, pa.array(keys, pa.int32())).rename_columns(
            [PARTITION_PATH, _BUCKET, _KNOWN_ID, BASE_PATH, PLACEMENT_KEY]
        )
        rows = rows.join(
            F.broadcast(small_frame(rows.sparkSession, groups_with_tasks)), [PARTITION_PATH, _BUCKET], "left"
        )
        file_id, base_path = F.coalesce(F.col(_KNOWN_ID), opened_id), F.col(BASE_PATH)
    added: dict[str, Column] = {FILE_ID: file_id, BASE_PATH: base_path, ROW_POSITION: no_position()}
    merges = job.config.table_type is not TableType.MERGE_ON_READ and groups.num_rows > 0
    if merges:
        added[PLACEMENT_KEY] = F.coalesce(F.col(PLACEMENT_KEY), F.hash(PARTITION_PATH, _BUCKET))
    unused = (_BUCKET, _KNOWN_ID, *(() if merges else (PLACEMENT_KEY,)))
    routed = rows.withColumns(added).drop(*unused)
    return cluster_by_file_group(routed, job, tasks if merges else 0)


def cluster_by_file_group(rows: DataFrame, job: WriteJob, tasks: int = 0) -> DataFrame:
    """Return rows with their file groups, clustered by file group, in their order.

    With a number of tasks, rows have the placement keys of these. Otherwise the work of a task depends only on its
    rows, whose number Spark knows after the shuffle.
    """
    order = [PARTITION_PATH, FILE_ID, *([POSITION] if POSITION in rows.columns else [])]
    num_tasks = requested_tasks(job)
    if tasks:
        return rows.repartition(num_tasks or tasks, PLACEMENT_KEY).sortWithinPartitions(*order)
    by = [F.col(PARTITION_PATH), F.col(FILE_ID)]
    return (rows.repartition(num_tasks, *by) if num_tasks else rows.repartition(*by)).sortWithinPartitions(*order)


def no_position() -> Column:
    """Return the position of rows whose records are not looked up."""
    return F.lit(None).cast("bigint")


def _task_placement(slices: pa.Table, job: WriteJob) -> tuple[npt.NDArray[np.int32], int]:
    """Return the placement keys of the file groups' tasks, from the sizes of base files, and the number of tasks."""
    sizes = pc.fill_null(slices["base_size"], 0).to_numpy().astype(np.int64)
    limit = max_tasks(job)
    return assign_tasks(sizes, limit, min_tasks=min(limit, _MIN_TASKS))


def with_bucket(rows: DataFrame, spec: KeySpec, bucketing: BucketIndex, name: str) -> DataFrame:
    """Add the bucket (int) of each row to rows that have keys and partition paths; *spec* is the key specification.
    Lazy.

    Only these two columns are sent to Python: Spark itself can only compute Java's hash of a text character by
    character, which takes several times as long.
    """
    fields, counts = spec.record_fields, bucketing.counts

    def buckets(keys: pa.Array, partitions: pa.Array) -> pa.Array:
        hashes = bucket_hashes(keys, fields, bucketing.fields, legacy_key_split=bucketing.legacy_key_split)
        numbers = bucketing.counts_of(partitions).to_numpy() if counts.rules else counts.default
        return pa.array(hashes % numbers, pa.int32())

    paths = F.col(PARTITION_PATH) if counts.rules else F.lit("")
    bucket = arrow_function(buckets, [pa.string(), pa.string()], IntegerType())
    return rows.withColumn(name, bucket(F.col(RECORD_KEY), paths))
