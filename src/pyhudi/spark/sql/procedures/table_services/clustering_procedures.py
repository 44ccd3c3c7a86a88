"""Procedures of clustering."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from pyhudi.config import options
from pyhudi.errors import QueryError
from pyhudi.services.clustering.clustering_planner import pending_clusterings, schedule_clustering
from pyhudi.services.clustering.clustering_runner import run_pending_clusterings
from pyhudi.services.service_plans import BusyPlans, read_plans
from pyhudi.spark.column_names import expression
from pyhudi.spark.services.spark_clustering import SparkClusteringRunner
from pyhudi.spark.spark_types import spark_schema
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.procedures.table_services.planned_instants import check_planned
from pyhudi.table.view.pending_file_groups import is_clustering
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.plans.clustering_plan import ClusteringPlan

_CLUSTERING = {
    "order": options.CLUSTERING_SORT_COLUMNS.key,
    "order_strategy": options.LAYOUT_STRATEGY.key,
    "partition_regex_pattern": options.CLUSTERING_PARTITION_REGEX.key,
}
_PATH = "_pyhudi_partition_path"
_BOTH, _SCHEDULE, _EXECUTE = "scheduleandexecute", "schedule", "execute"


def run_clustering(spark: SparkSession, arguments: Arguments) -> Rows:
    """Plan a clustering, run plans, or both (the default): ``op`` is schedule, execute, or scheduleandexecute."""
    instants = arguments.texts("instants")
    op = (arguments.text("op") or (_EXECUTE if instants else _BOTH)).lower()
    if op not in (_BOTH, _SCHEDULE, _EXECUTE):
        raise QueryError(f"op is schedule, execute or scheduleandexecute, not {op!r}")
    if instants and op != _EXECUTE:
        raise QueryError(f"instants are run by op 'execute' alone, not by {op!r}")
    partitions = _partitions(spark, arguments)
    if partitions == []:
        return []
    client, opts = arguments.opened(spark, {**arguments.as_options(_CLUSTERING), **_selected(partitions)})
    active = client.active_timeline()
    pending = {str(plan.instant): plan for plan in pending_clusterings(active)}
    check_planned(instants, pending, "clustering")
    chosen = instants or sorted(pending)[: arguments.number("limit")]
    runner = SparkClusteringRunner(spark)
    if op != _EXECUTE:
        plan = schedule_clustering(client, opts, runner=None if op == _SCHEDULE else runner)
        if plan.instant is not None:
            pending, chosen = {plan.instant: plan}, [plan.instant]
        elif op == _SCHEDULE:
            chosen = []
    plans = {instant: pending[instant] for instant in chosen}
    if op != _SCHEDULE:
        plans = {}
        for instant in chosen:
            done = run_pending_clusterings(client.reload(), opts, runner, instant=instant, busy=BusyPlans.TAKE_OVER)
            # a plan whose file groups were written to since is made again, at another instant
            plans |= dict.fromkeys(done.instants, pending[instant])
    state = State.REQUESTED if op == _SCHEDULE else State.COMPLETED
    shown = arguments.flag("show_involved_partition")
    return [_row(plans[instant], instant, state, shown=shown) for instant in sorted(plans, reverse=True)]


def _row(plan: ClusteringPlan, instant: str, state: State, *, shown: bool) -> tuple[Any, ...]:
    return instant, len(plan), state.value, ",".join(plan.partitions) if shown else "*"


def _selected(partitions: list[str] | None) -> dict[str, str]:
    return {} if partitions is None else {options.CLUSTERING_PARTITIONS.key: ",".join(partitions)}


def _partitions(spark: SparkSession, arguments: Arguments) -> list[str] | None:
    """Return the paths of the requested partitions; None: all.

    Raises:
        QueryError: The predicate is about other columns than the partition columns.
    """
    predicate = arguments.text("predicate")
    if predicate is None:
        is_given = arguments.text("selected_partitions") is not None
        return arguments.texts("selected_partitions") if is_given else None
    handle = arguments.table(spark)
    fields = [field.name for field in handle.config.partition_fields]
    if not fields:
        raise QueryError(f"the table has no partitions for the predicate {predicate!r}; leave it out")
    partitions = handle.inspect.partitions().to_arrow()
    values = [partitions.column(number) for number in range(1, 1 + len(fields))]
    kinds = spark_schema(pa.schema([(name, column.type) for name, column in zip(fields, values, strict=True)]))
    rows = [row.values() for row in pa.table(values, names=fields).to_pylist()]
    schema = StructType([StructField(_PATH, StringType()), *kinds.fields])
    paths = partitions.column(0).to_pylist()
    frame = spark.createDataFrame([(path, *row) for path, row in zip(paths, rows, strict=True)], schema)
    try:
        selected = frame.where(expression(predicate)).select(_PATH).collect()
    except AnalysisException as error:
        raise QueryError(
            f"the predicate {predicate!r} must be a condition on the partition columns ({', '.join(fields)}) alone"
        ) from error
    return [row[0] for row in selected]


def show_clustering(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show clusterings, planned and done, newest first."""
    active = arguments.client(spark).active_timeline()
    shown = arguments.flag("show_involved_partition")
    rows = []
    for instant in reversed(list(active.timeline.of_actions(Action.CLUSTERING, Action.REPLACE_COMMIT))):
        if is_clustering(active, instant):
            rows.append(_row(_plan(active, instant), instant.requested, instant.state, shown=shown))
    return arguments.limited(rows)


def _plan(active: ActiveTimeline, instant: Instant) -> ClusteringPlan:
    (plan,) = read_plans(active, [instant], ClusteringPlan.decode)
    return plan


PROCEDURES: dict[str, Procedure] = {"run_clustering": run_clustering, "show_clustering": show_clustering}
