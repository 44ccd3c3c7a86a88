"""Routing of tagged rows to the tasks that write their file groups.

The driver only has row counts by partition and file group. It assigns the groups to tasks (`task_placement`), and
broadcasts two small tables to the rows: the task of each group, and the groups of new records of each partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.local_relations import small_frame
from pyhudi.spark.execution.slice_tasks import coalesced, parallelism
from pyhudi.spark.execution.task_placement import place
from pyhudi.spark.indexes.record_index.record_index_keys import FILE
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, ROW, TASK
from pyhudi.write.planning.small_files import target_lookup_table
from pyhudi.write.planning.workload_profile import COUNTS_SCHEMA, WorkloadProfile

_SLOTS, _UPDATE_TASK, _UPDATE_PATH = "_pyhudi_slots", "_pyhudi_update_task", "_pyhudi_update_path"
_IDS, _PATHS, _TASKS = "_pyhudi_bucket_ids", "_pyhudi_bucket_paths", "_pyhudi_bucket_tasks"
_NUMBERS = "_pyhudi_bucket_numbers"

_TASK_ROWS = 100_000
"""Number of rows from which on another task pays off in any write."""
_TASK_BYTES = 4 * 1024 * 1024
"""Bytes to read and write from which on another task pays where a core would be idle."""


def count_rows(tagged: DataFrame) -> pa.Table:
    """Count the rows of a tagged frame by partition and file group (COUNTS_SCHEMA). Runs a Spark job."""
    counts = coalesced(tagged.groupBy(PARTITION_PATH, FILE_ID, BASE_PATH).count()).collect()
    columns = [[row[i] for row in counts] for i in range(4)]
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, COUNTS_SCHEMA, strict=True)], schema=COUNTS_SCHEMA
    )


def route(tagged: DataFrame, workload: WorkloadProfile, max_tasks: int) -> DataFrame:
    """Assign every row to its file group and move it to the group's task, sorted by group and row position."""
    groups = workload.groups
    # log files are small, but their rows have to be encoded
    total, size = (pc.sum(groups[name]).as_py() or 0 for name in ("rows", "size"))
    fewest = max(-(-total // _TASK_ROWS), min(parallelism(tagged.sparkSession), size // _TASK_BYTES), 1)
    fewest = min(max_tasks, max(groups.num_rows, 1), fewest)
    keys, tasks = place(groups["size"].to_numpy().astype(np.int64), max_tasks, fewest=fewest)
    groups = groups.append_column("task", pa.array(keys, pa.int32()))
    spark = tagged.sparkSession
    rows = tagged
    file_id, base_path, task = F.col(FILE_ID), F.col(BASE_PATH), F.lit(None).cast("int")
    if workload.updates.num_rows:
        rows = rows.join(F.broadcast(_update_tasks(spark, workload.updates, groups)), [PARTITION_PATH, FILE_ID], "left")
        # a file group that is not in the plan would be created with these rows alone
        unknown = file_id.isNotNull() & F.col(_UPDATE_TASK).isNull()
        text = F.concat(F.lit("rows are stored in another file group than `_hoodie_file_name`: "), file_id)
        task = F.when(unknown, F.raise_error(text).cast("int")).otherwise(F.col(_UPDATE_TASK))
        base_path = F.coalesce(base_path, F.col(_UPDATE_PATH))  # not known yet of rows that were read
    if workload.insert_targets.num_rows:
        rows = rows.join(F.broadcast(_insert_routes(spark, workload.insert_targets, groups)), PARTITION_PATH, "left")
        bucket = _bucket()
        # a record with a location keeps it; coalesce evaluates the lookup for new records only
        task = F.coalesce(task, F.element_at(_TASKS, bucket))
        base_path = F.when(file_id.isNull(), F.element_at(_PATHS, bucket)).otherwise(base_path)
        file_id = F.coalesce(file_id, F.element_at(_IDS, bucket))
    routed = {FILE_ID: file_id, BASE_PATH: base_path}
    names = [name for name in tagged.columns if name not in routed]
    rows = rows.select(*(quoted([name]) for name in names), *(c.alias(n) for n, c in routed.items()), task.alias(TASK))
    moved = rows.repartition(tasks, TASK)
    return moved.sortWithinPartitions(PARTITION_PATH, FILE_ID, F.col(ROW).asc_nulls_last())


def new_key_locations(keys: DataFrame, workload: WorkloadProfile, files: pa.Table) -> DataFrame:
    """Return keys of new records (``_hoodie_record_key`` and ``_hoodie_partition_path``) with `FILE`, the number in
    ``files`` (partition, file_id, number) of the file to which `route` assigns them; null if no file has that id."""
    targets = workload.insert_targets
    at = pc.index_in(group_keys(targets), value_set=group_keys(files))
    routes = _target_arrays(targets, {_NUMBERS: files["number"].combine_chunks().take(at)})
    routed = keys.join(F.broadcast(small_frame(keys.sparkSession, pa.table(routes))), PARTITION_PATH, "left")
    number = F.element_at(_NUMBERS, _bucket())
    return routed.select(*(quoted([name]) for name in keys.columns), number.alias(FILE))


def _bucket() -> Column:
    """Return the column with the number, from 1 on, of the bucket in the partition of a new record."""
    slot = F.pmod(F.xxhash64(RECORD_KEY), F.size(_SLOTS)).cast("int")
    return F.element_at(_SLOTS, slot + 1)


def _update_tasks(spark: SparkSession, updates: pa.Table, groups: pa.Table) -> DataFrame:
    joined = updates.select(["partition", "file_id"]).join(groups, ["partition", "file_id"], join_type="inner")
    columns = {"partition": PARTITION_PATH, "file_id": FILE_ID, "task": _UPDATE_TASK, "base_path": _UPDATE_PATH}
    return small_frame(spark, joined.select(list(columns)).rename_columns(list(columns.values())))


def _insert_routes(spark: SparkSession, targets: pa.Table, groups: pa.Table) -> DataFrame:
    """Return one row per partition: its targets, and the lookup table from a hash to one of them (counted from 1)."""
    at = pc.index_in(group_keys(targets), value_set=group_keys(groups))
    tasks = groups["task"].combine_chunks().take(at)
    data = _target_arrays(
        targets,
        {
            _IDS: targets["file_id"].combine_chunks(),
            _PATHS: targets["base_path"].combine_chunks(),
            _TASKS: tasks,
        },
    )
    return small_frame(spark, pa.table(data))


def _target_arrays(targets: pa.Table, facts: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return columns with one row per partition: the lookup table from hashes to targets, and properties of targets."""
    rows = targets["rows"].to_numpy()
    runs = pc.run_end_encode(targets["partition"].combine_chunks())
    ends = runs.run_ends.cast(pa.int32())
    bounds = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    lookup = [target_lookup_table(rows[start:end]) + 1 for start, end in pairwise(bounds.to_pylist())]
    lists = {name: pa.ListArray.from_arrays(bounds, values) for name, values in facts.items()}
    return {PARTITION_PATH: runs.values, _SLOTS: pa.array(lookup, pa.list_(pa.int32())), **lists}
