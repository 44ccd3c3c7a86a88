"""Compaction and log compaction of ``HudiTable.services``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, overload

from pyhudi.api.services.service_base import ServiceBase
from pyhudi.metrics.progress import Progress
from pyhudi.services.compaction.compaction_planner import pending_compactions, plan_compaction, schedule_compaction
from pyhudi.services.compaction.compaction_runner import (
    CompactionResult,
    CompactionRunner,
    ThreadCompactionRunner,
    run_compactions,
    run_pending_compactions,
)
from pyhudi.services.service_plans import BusyPlans
from pyhudi.spark.session import session_if_any
from pyhudi.timeline.instant import Action
from pyhudi.timeline.plans.compaction_plan import CompactionPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CompactionServices(ServiceBase):
    """Compaction and log compaction of one merge-on-read table: planning, execution and listing."""

    @overload
    def compact(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult: ...

    @overload
    def compact(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionPlan: ...

    def compact(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult | CompactionPlan:
        """Merge log files into new base files: execute the pending plans, then make a new plan and execute it.

        Args:
            options: Apache Hudi's options, in addition to the table's.
            dry_run: Change nothing, and return the plan that would be made.
            only_if_due: Make a new plan only if the trigger (`hoodie.compact.inline.trigger.strategy`) is due. By
                default a plan is always made.
            spark: Session that runs the tasks; None for the active one, or threads if there is none.
            progress: Called with "compact file slices", the number of completed ones, and their total number; on Spark
                only at the start and the end.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            UnsupportedTableError: The table is not merge-on-read, or its merger is not registered
                (`pyhudi.register_merger`). Nothing is planned then. Planning alone, or a dry run, requires no merger.
            TransactionError: Another process executes a plan, or a restore is pending.
        """
        return self._compact(options, Action.COMPACTION, spark, progress, dry_run=dry_run, only_if_due=only_if_due)

    def schedule_compaction(
        self, options: Mapping[str, object] | None = None, *, only_if_due: bool = False
    ) -> CompactionPlan:
        """Schedule a compaction: put a plan on the timeline, to be executed by any process concurrently with writers.

        Args:
            options: Apache Hudi's options, in addition to the table's.
            only_if_due: Make a plan only if the trigger is due.

        Returns:
            The plan. It is empty, and not in the timeline, if there is nothing to do; its ``reason`` explains why.
        """
        client, opts = self._open(options)
        return schedule_compaction(client, opts, only_if_due=only_if_due)

    def run_compaction(
        self,
        instant: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult:
        """Execute the pending compaction plans, oldest first, or only that of ``instant``.

        A failed run, here or elsewhere, is rolled back and started again. Compactions of Apache Hudi before 1.2 have no
        heartbeat. One that has been started is skipped, unless its ``instant`` is passed, or it has been inactive for
        `pyhudi.compaction.abandoned.minutes`.

        Args:
            instant: Requested time of the plan to execute; None for all.
            options: Apache Hudi's options, in addition to the table's.
            spark: Session that runs the tasks; None for the active one, or threads if there is none.
            progress: As of `compact`.

        Returns:
            The result.

        Raises:
            BusyError: Another process executes a plan, or another program may be executing one.
        """
        return self._run(Action.COMPACTION, instant, options, spark, progress)

    def pending_compactions(self) -> list[CompactionPlan]:
        """Return the compaction plans in the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_compactions(client.active_timeline(), Action.COMPACTION)

    @overload
    def log_compact(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult: ...

    @overload
    def log_compact(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionPlan: ...

    def log_compact(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult | CompactionPlan:
        """Merge the log files of each file slice into one, which costs less than new base files and makes reads cheaper
        until the next compaction.

        File slices with at least `hoodie.log.compaction.blocks.threshold` log files or blocks are selected. Arguments,
        result and errors as of `compact`.
        """
        return self._compact(options, Action.LOG_COMPACTION, spark, progress, dry_run=dry_run, only_if_due=only_if_due)

    def schedule_log_compaction(
        self, options: Mapping[str, object] | None = None, *, only_if_due: bool = False
    ) -> CompactionPlan:
        """Schedule a log compaction: put a plan on the timeline. Arguments and result as of `schedule_compaction`."""
        client, opts = self._open(options)
        return schedule_compaction(client, opts, action=Action.LOG_COMPACTION, only_if_due=only_if_due)

    def run_log_compaction(
        self,
        instant: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> CompactionResult:
        """Execute the pending log compaction plans, oldest first, or only that of ``instant``.

        A plan that was started and failed, or whose logs have been compacted since, is dropped. Arguments, result and
        errors as of `run_compaction`.
        """
        return self._run(Action.LOG_COMPACTION, instant, options, spark, progress)

    def pending_log_compactions(self) -> list[CompactionPlan]:
        """Return the log compaction plans in the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_compactions(client.active_timeline(), Action.LOG_COMPACTION)

    def _compact(
        self,
        options: Mapping[str, object] | None,
        action: str,
        spark: SparkSession | None,
        progress: Progress | None,
        *,
        dry_run: bool,
        only_if_due: bool,
    ) -> CompactionResult | CompactionPlan:
        client, opts = self._open(options)
        if dry_run:
            return plan_compaction(client, opts, action=action, only_if_due=only_if_due)
        runner = compaction_runner(spark, progress)
        return run_compactions(client, opts, runner, action=action, only_if_due=only_if_due)

    def _run(
        self,
        action: str,
        instant: str | None,
        options: Mapping[str, object] | None,
        spark: SparkSession | None,
        progress: Progress | None,
    ) -> CompactionResult:
        client, opts = self._open(options)
        runner, busy = compaction_runner(spark, progress), BusyPlans.for_request(instant)
        return run_pending_compactions(client, opts, runner, action=action, instant=instant, busy=busy)


def compaction_runner(spark: SparkSession | None, progress: Progress | None = None) -> CompactionRunner:
    """Return the runner of compactions: Spark, if there is a session, otherwise threads."""
    session = spark or session_if_any()
    if session is None:
        return ThreadCompactionRunner(progress)
    from pyhudi.spark.services.spark_compaction import SparkCompactionRunner

    return SparkCompactionRunner(session, progress)
