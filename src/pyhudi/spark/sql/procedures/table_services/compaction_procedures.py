"""Procedures of compaction."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.errors import QueryError
from pyhudi.services.compaction.compaction_planner import pending_compactions, schedule_compaction
from pyhudi.services.compaction.compaction_runner import run_pending_compactions
from pyhudi.spark.services.spark_compaction import SparkCompactionRunner
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.procedures.table_services.planned_instants import check_planned
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.compaction_plan import CompactionPlan


def run_compaction(spark: SparkSession, arguments: Arguments) -> Rows:
    """Plan a compaction, run plans, or both: ``op`` is schedule, run (or execute), or scheduleandexecute.

    Raises:
        QueryError: ``op`` is unknown, no compaction is planned at an instant, or an instant is passed for a new plan.
    """
    op, instants = _requested(arguments)
    client, opts = arguments.opened(spark)
    runner = SparkCompactionRunner(spark)
    if op.startswith("schedule"):
        plan = schedule_compaction(client, opts, runner=None if op == "schedule" else runner)
        if plan.instant is None:
            return []
        if op == "schedule":
            return [(plan.instant, len(plan), (plan.state or State.REQUESTED).value)]
        pending = {plan.instant: plan}
    else:
        plans = pending_compactions(client.active_timeline(), Action.COMPACTION)
        pending = {plan.instant: plan for plan in plans if plan.instant is not None}
    chosen = sorted(pending) if instants is None else instants
    check_planned(chosen, pending, "compaction")
    rows = []
    for instant in chosen[: arguments.number("limit")]:
        run_pending_compactions(client, opts, runner, instant=instant)
        rows.append((instant, len(pending[instant]), State.COMPLETED.value))
    return rows


def _requested(arguments: Arguments) -> tuple[str, list[str] | None]:
    """Return the operation, and the instants of the plans to run; None: all."""
    op = str(arguments.text("op")).lower()
    if op not in ("schedule", "scheduleandexecute", "run", "execute"):
        raise QueryError(f"op is schedule, run, execute or scheduleandexecute, not {op!r}")
    instants = arguments.text("instants") or arguments.number("timestamp")
    if instants is None:
        return op, None
    if op.startswith("schedule"):
        raise QueryError(
            f"op {op!r} plans a compaction at a new instant, not at {instants}: leave instants and timestamp out, or "
            "run an existing plan by op 'run'"
        )
    return op, [part.strip() for part in str(instants).split(",")]


def show_compaction(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show compactions, planned and done, newest first."""
    active = arguments.client(spark).active_timeline()
    rows = []
    for instant in reversed(list(active.timeline)):
        requested = active.in_state(instant, State.REQUESTED)
        if requested is not None and requested.action == Action.COMPACTION:
            plan = CompactionPlan.decode(requested.action, instant.requested, requested.state, active.read(requested))
            rows.append((instant.requested, len(plan), instant.state.value))
    return arguments.limited(rows)


PROCEDURES: dict[str, Procedure] = {"run_compaction": run_compaction, "show_compaction": show_compaction}
