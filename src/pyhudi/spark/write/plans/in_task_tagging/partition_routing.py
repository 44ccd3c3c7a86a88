"""Routing of rows to the tasks of their partitions, which look up their locations."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.spark.execution.local_relations import MAX_LITERALS, literal_lookup, small_frame
from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.execution.task_placement import assign_tasks
from pyhudi.spark.keys.deduplication import POSITION
from pyhudi.spark.write.plans.in_task_tagging.partition_work import rewritten_bytes
from pyhudi.spark.write.plans.row_preparation import changed_input_failure
from pyhudi.write.location_columns import PARTITION_SHARE, PLACEMENT_KEY
from pyhudi.write.tasks.in_task_tagging import PartitionShare

_TASKS = "_pyhudi_tasks"


def route_by_partition(rows: DataFrame, shares: pa.Table, limit: int) -> DataFrame:
    """Return the rows routed to the tasks of their partitions (`partition_shares`), at most ``limit``, in input order,
    without locations. If several tasks rewrite files of a partition, each gets all of its rows."""
    # Tasks are placed by time, expressed as the bytes rewritten in that time.
    work = rewritten_bytes(shares["seconds"].to_numpy())
    cores = parallelism(rows.sparkSession)
    keys, tasks = assign_tasks(work, limit, min_tasks=min(limit, len(work), cores))
    shares = shares.drop_columns(["seconds"]).append_column(PLACEMENT_KEY, pa.array(keys, pa.int32()))
    routed = _routed(rows, shares)
    # One task needs no shuffle.
    return _sorted(routed.coalesce(1) if tasks == 1 else routed.repartition(tasks, PLACEMENT_KEY))


def route_to_one_task(rows: DataFrame, max_rows: int) -> DataFrame:
    """Return as many rows as one task needs to detect that there are more than a number, without reading the others."""
    # A limit computes rows in parallel and moves them to one task. Adaptive execution drops it if it knows that there
    # are fewer cached rows; then they are still in several.
    rows = rows.limit(max_rows + 1).coalesce(1)
    share = pa.table(
        {PARTITION_PATH: [""], PARTITION_SHARE: [str(PartitionShare())], PLACEMENT_KEY: pa.array([0], pa.int32())}
    )
    return _sorted(_routed(rows, share))


def _sorted(routed: DataFrame) -> DataFrame:
    """Return routed rows sorted by partition and share, in input order."""
    order = [PARTITION_PATH, PARTITION_SHARE, *([POSITION] if POSITION in routed.columns else [])]
    return routed.sortWithinPartitions(*order)


def _routed(rows: DataFrame, shares: pa.Table) -> DataFrame:
    """Return the rows with their tasks and shares."""
    if shares.num_rows == 1:
        only_share = shares.to_pylist()[0]
        return rows.withColumns({name: F.lit(only_share[name]) for name in (PARTITION_SHARE, PLACEMENT_KEY)})
    failure = changed_input_failure("partition ", F.col(PARTITION_PATH))
    if shares.num_rows <= MAX_LITERALS:
        tasks = literal_lookup(_by_partition_path(shares), [PARTITION_PATH], _TASKS)
        tasks = F.when(tasks.isNull(), failure.cast("array<struct<share:string,task:int>>")).otherwise(tasks)
        each = rows.withColumn(_TASKS, F.explode(tasks))
        own = {PARTITION_SHARE: F.col(f"{_TASKS}.share"), PLACEMENT_KEY: F.col(f"{_TASKS}.task")}
        return each.withColumns(own).drop(_TASKS)
    partition_tasks = F.broadcast(small_frame(rows.sparkSession, shares))
    task = F.coalesce(F.col(PLACEMENT_KEY), failure.cast("int"))
    return rows.join(partition_tasks, PARTITION_PATH, "left").withColumn(PLACEMENT_KEY, task)


def _by_partition_path(shares: pa.Table) -> pa.Table:
    """Return the shares and tasks of each partition as a list."""
    tasks: dict[str, list[dict[str, object]]] = {}
    for row in shares.to_pylist():
        tasks.setdefault(row[PARTITION_PATH], []).append({"share": row[PARTITION_SHARE], "task": row[PLACEMENT_KEY]})
    kind = pa.list_(pa.struct([("share", pa.string()), ("task", pa.int32())]))
    return pa.table({PARTITION_PATH: pa.array(list(tasks), pa.string()), _TASKS: pa.array(list(tasks.values()), kind)})
