"""Routing of tagged rows to the tasks that write their file groups.

The driver only has row counts by partition and file group. It assigns the groups to tasks (`task_placement`), and
broadcasts two small tables to the rows: the task of each group, and the groups of new records of each partition. Tables
of a few rows are literals in the plan instead, because Spark runs a job for each broadcast.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.cached_frames import planned
from pyhudi.spark.execution.local_relations import MAX_LITERALS, looked_up, small_frame
from pyhudi.spark.execution.slice_tasks import coalesced, parallelism
from pyhudi.spark.execution.task_placement import assign_tasks
from pyhudi.spark.helper_columns import INDEX_LOCATION
from pyhudi.spark.write.plans.row_preparation import changed_input_failure
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, PLACEMENT_KEY, ROW_POSITION
from pyhudi.write.planning.small_files import target_lookup_table
from pyhudi.write.planning.workload_profile import COUNTS_SCHEMA, WorkloadProfile
from pyhudi.write.write_result import ChangeCounts

_SLOTS, _UPDATE_TASK, _UPDATE_PATH = "_pyhudi_slots", "_pyhudi_update_task", "_pyhudi_update_path"
_IDS, _PATHS, _TASKS = "_pyhudi_bucket_ids", "_pyhudi_bucket_paths", "_pyhudi_bucket_tasks"
_NUMBERS = "_pyhudi_bucket_numbers"
_LOOKED_UP = (_SLOTS, _UPDATE_TASK, _UPDATE_PATH, _IDS, _PATHS, _TASKS)
"""Columns of small tables that were joined with the rows."""

_TASK_ROWS = 100_000
"""Number of rows from which on another task pays off in any write."""
_TASK_BYTES = 4 * 1024 * 1024
"""Bytes to read and write from which on another task pays where a core would be idle."""
_TASK_GROUPS = 4
"""File groups from which on it does: each takes a file of its own, however few rows it gets."""


def count_rows(
    tagged: DataFrame, *, counts_changes: bool = False, adaptive: bool = True
) -> tuple[pa.Table, ChangeCounts | None]:
    """Count the rows of a tagged frame. Runs a Spark job.

    Args:
        tagged: The rows.
        counts_changes: Count the deletes and the new rows, too.
        adaptive: The plan of the rows may improve while it is executed.

    Returns:
        The numbers by partition and file group (COUNTS_SCHEMA), and those of all rows; None: not requested.
    """
    rows = [F.count(F.lit(1))]
    if counts_changes:
        rows.append(F.count(F.when(F.col(IS_DELETE), 1)))
    grouped = coalesced(tagged.groupBy(PARTITION_PATH, FILE_ID, BASE_PATH).agg(*rows))
    with planned(grouped, adaptive=adaptive) as counted:
        counts = counted.collect()
    columns = [[row[i] for row in counts] for i in range(4)]
    by_group = pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, COUNTS_SCHEMA, strict=True)], schema=COUNTS_SCHEMA
    )
    if not counts_changes:
        return by_group, None
    deleted, inserted = sum(row[4] for row in counts), sum(row[3] for row in counts if row[1] is None)
    return by_group, ChangeCounts(sum(row[3] for row in counts), deleted, inserted)


def route(tagged: DataFrame, workload: WorkloadProfile, max_tasks: int) -> DataFrame:
    """Assign every row to its file group and move it to the group's task, sorted by group and row position."""
    groups, tasks = _placed_groups(workload.groups, parallelism(tagged.sparkSession), max_tasks)
    rows = tagged
    file_id, base_path, task = F.col(FILE_ID), F.col(BASE_PATH), F.lit(None).cast("int")
    if workload.updates.num_rows:
        rows, update_columns = looked_up(rows, _update_tasks(workload.updates, groups), [PARTITION_PATH, FILE_ID])
        # a file group that is not in the plan would be created with these rows alone
        unknown = file_id.isNotNull() & update_columns[_UPDATE_TASK].isNull()
        refused = changed_input_failure("file group ", file_id, ", which a wrong `_hoodie_file_name` may name, too")
        task = F.when(unknown, refused.cast("int")).otherwise(update_columns[_UPDATE_TASK])
        base_path = F.coalesce(base_path, update_columns[_UPDATE_PATH])  # not known yet of rows that were read
    if workload.insert_targets.num_rows:
        rows, insert_columns = _insert_columns(rows, workload.insert_targets, groups)
        # a record with a location keeps it; coalesce evaluates the lookup for new records only
        task = F.coalesce(task, insert_columns[_TASKS])
        base_path = F.when(file_id.isNull(), insert_columns[_PATHS]).otherwise(base_path)
        file_id = F.coalesce(file_id, insert_columns[_IDS])
    routed = rows.withColumns({FILE_ID: file_id, BASE_PATH: base_path, PLACEMENT_KEY: task})
    moved = routed.drop(*_LOOKED_UP).repartition(tasks, PLACEMENT_KEY)
    return moved.sortWithinPartitions(PARTITION_PATH, FILE_ID, F.col(ROW_POSITION).asc_nulls_last())


def _placed_groups(groups: pa.Table, cores: int, max_tasks: int) -> tuple[pa.Table, int]:
    """Return the file groups with the placement keys of their tasks (``task``), and the number of tasks."""
    # log files are small, but their rows have to be encoded
    total, size = (pc.sum(groups[name]).as_py() or 0 for name in ("rows", "size"))
    for_idle_cores = min(cores, max(size // _TASK_BYTES, groups.num_rows // _TASK_GROUPS))
    worthwhile = max(-(-total // _TASK_ROWS), for_idle_cores, 1)
    min_tasks = min(max_tasks, max(groups.num_rows, 1), worthwhile)
    keys, tasks = assign_tasks(groups["size"].to_numpy().astype(np.int64), max_tasks, min_tasks=min_tasks)
    return groups.append_column("task", pa.array(keys, pa.int32())), tasks


def new_key_locations(keys: DataFrame, workload: WorkloadProfile, files: pa.Table) -> DataFrame:
    """Return keys of new records (``_hoodie_record_key`` and ``_hoodie_partition_path``) with `INDEX_LOCATION`, the
    number in ``files`` (partition, file_id, number) of the file to which `route` assigns them; null if no file has that
    id."""
    targets = workload.insert_targets
    at = pc.index_in(group_keys(targets), value_set=group_keys(files))
    numbers = {_NUMBERS: files["number"].combine_chunks().take(at)}
    routed, columns = _target_columns(keys, targets, numbers)
    return routed.select(*(quoted([name]) for name in keys.columns), columns[_NUMBERS].alias(INDEX_LOCATION))


def _bucket() -> Column:
    """Return the column with the number, from 1 on, of the bucket in the partition of a new record."""
    slot = F.pmod(F.xxhash64(RECORD_KEY), F.size(_SLOTS)).cast("int")
    return F.element_at(_SLOTS, slot + 1)


def _update_tasks(updates: pa.Table, groups: pa.Table) -> pa.Table:
    """Return one row per file group with updates: its task and base file."""
    joined = updates.select(["partition", "file_id"]).join(groups, ["partition", "file_id"], join_type="inner")
    columns = {"partition": PARTITION_PATH, "file_id": FILE_ID, "task": _UPDATE_TASK, "base_path": _UPDATE_PATH}
    return joined.select(list(columns)).rename_columns(list(columns.values()))


def _insert_columns(rows: DataFrame, targets: pa.Table, groups: pa.Table) -> tuple[DataFrame, dict[str, Column]]:
    """Return rows with helper columns for the routing of new records, and the columns with id, base file and task of
    their file group."""
    at = pc.index_in(group_keys(targets), value_set=group_keys(groups))
    properties = {
        _IDS: targets["file_id"].combine_chunks(),
        _PATHS: targets["base_path"].combine_chunks(),
        _TASKS: groups["task"].combine_chunks().take(at),
    }
    return _target_columns(rows, targets, properties)


def _target_columns(
    rows: DataFrame, targets: pa.Table, properties: Mapping[str, pa.Array]
) -> tuple[DataFrame, dict[str, Column]]:
    """Return rows with helper columns, and columns with these properties of the target of each new record."""
    if targets.num_rows <= MAX_LITERALS and pc.count_distinct(targets["partition"]).as_py() == targets.num_rows:
        one_each = pa.table({PARTITION_PATH: targets["partition"], **properties})
        return looked_up(rows, one_each, [PARTITION_PATH])
    # one row per partition: its targets, and the lookup table from a hash to one of them (counted from 1)
    routes = small_frame(rows.sparkSession, pa.table(_target_arrays(targets, properties)))
    bucket = _bucket()
    joined = rows.join(F.broadcast(routes), PARTITION_PATH, "left")
    return joined, {name: F.element_at(name, bucket) for name in properties}


def _target_arrays(targets: pa.Table, properties: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return columns with one row per partition: the lookup table from hashes to targets, and properties of targets."""
    rows = targets["rows"].to_numpy()
    runs = pc.run_end_encode(targets["partition"].combine_chunks())
    ends = runs.run_ends.cast(pa.int32())
    bounds = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    lookup = [target_lookup_table(rows[start:end]) + 1 for start, end in pairwise(bounds.to_pylist())]
    lists = {name: pa.ListArray.from_arrays(bounds, values) for name, values in properties.items()}
    return {PARTITION_PATH: runs.values, _SLOTS: pa.array(lookup, pa.list_(pa.int32())), **lists}
