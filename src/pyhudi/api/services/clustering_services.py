"""Clustering of ``HudiTable.services``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, overload

from pyhudi.api.services.service_base import ServiceBase
from pyhudi.metrics.progress import Progress
from pyhudi.services.clustering.clustering_planner import pending_clusterings, plan_clustering, schedule_clustering
from pyhudi.services.clustering.clustering_runner import (
    ClusteringResult,
    ClusteringRunner,
    ThreadClusteringRunner,
    run_clusterings,
    run_pending_clusterings,
)
from pyhudi.services.service_plans import BusyPlans
from pyhudi.spark.session import session_if_any
from pyhudi.timeline.plans.clustering_plan import ClusteringPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ClusteringServices(ServiceBase):
    """Clustering of one table: small file groups are combined into large ones, and rows are sorted; their commit times,
    sequence numbers and keys are kept. Log files are merged.

    Planned file groups remain readable and are replaced in one commit. They cannot be written to until the plan is
    executed; if a write nevertheless does so, the clustering fails, never the write.
    """

    @overload
    def cluster(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> ClusteringResult: ...

    @overload
    def cluster(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> ClusteringPlan: ...

    def cluster(
        self,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> ClusteringResult | ClusteringPlan:
        """Rewrite file groups: execute the pending plans or, if there are none, make a plan and execute it.

        Base files smaller than `hoodie.clustering.plan.strategy.small.file.limit` are combined into files of up to
        `hoodie.clustering.plan.strategy.target.file.max.bytes`, sorted by
        `hoodie.clustering.plan.strategy.sort.columns` if set, along the curve in `hoodie.layout.optimize.strategy`.

        Args:
            options: Apache Hudi's options, in addition to the table's.
            dry_run: Change nothing, and return the plan that would be made.
            only_if_due: Make a new plan only after `hoodie.clustering.async.max.commits` commits. By default a plan is
                always made.
            spark: Session that runs the tasks; None for the active one, or threads if there is none.
            progress: Called with the name of the work, the number of completed groups of files, and their total number;
                on Spark before and after.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            ConfigError: Options are invalid, or a sort column does not exist; nothing is planned then.
            UnsupportedTableError: The table has the bucket index with a fixed number of buckets, or its merger is not
                registered; nothing is planned then.
            ConflictError: A file group was written concurrently; the plan remains, to be retried.
            TransactionError: Another process executes a plan, or a restore is pending.
            SetupError: The table has a record index, or the input is too large to sort in memory, and there is no Spark
                session.
        """
        client, opts = self._open(options)
        if dry_run:
            return plan_clustering(client, opts, only_if_due=only_if_due)
        return run_clusterings(client, opts, _runner(spark, progress), only_if_due=only_if_due)

    def schedule_clustering(
        self, options: Mapping[str, object] | None = None, *, only_if_due: bool = False
    ) -> ClusteringPlan:
        """Schedule a clustering: put a plan on the timeline, to be executed by any process. Its file groups cannot be
        written to until then.

        Args:
            options: Apache Hudi's options, in addition to the table's.
            only_if_due: Make a plan only after `hoodie.clustering.async.max.commits` commits.

        Returns:
            The plan. It is empty, and not in the timeline, if there is nothing to do; its ``reason`` explains why.

        Raises:
            ConfigError: Options are invalid, or a sort column does not exist.
            UnsupportedTableError: The table cannot be clustered.
        """
        client, opts = self._open(options)
        return schedule_clustering(client, opts, only_if_due=only_if_due)

    def run_clustering(
        self,
        instant: str | None = None,
        options: Mapping[str, object] | None = None,
        *,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> ClusteringResult:
        """Execute the pending clustering plans, oldest first, or only that of ``instant``.

        A failed run, here or elsewhere, is rolled back and started again. A plan whose file groups were written to is
        replaced by one with a new instant. A clustering started by another program is
        skipped, unless its ``instant`` is passed, or it has been inactive for `pyhudi.compaction.abandoned.minutes`.

        Args:
            instant: Requested time of the plan to execute; None for all.
            options: Apache Hudi's options, in addition to the table's.
            spark: Session that runs the tasks; None for the active one, or threads if there is none.
            progress: Called with the name of the work, the number of completed groups of files, and their total number;
                on Spark before and after.

        Returns:
            The result.

        Raises:
            InstantNotFoundError: There is no such pending plan.
            BusyError: Another process executes a plan, or another program may be executing one.
            ConflictError: A file group was written concurrently; the plan remains, to be retried.
            SetupError: The table has a record index, or the input is too large to sort in memory, and there is no Spark
                session.
        """
        client, opts = self._open(options)
        return run_pending_clusterings(
            client, opts, _runner(spark, progress), instant=instant, busy=BusyPlans.for_request(instant)
        )

    def pending_clusterings(self) -> list[ClusteringPlan]:
        """Return the clustering plans in the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_clusterings(client.active_timeline())


def _runner(spark: SparkSession | None, progress: Progress | None) -> ClusteringRunner:
    """Return the runner of clusterings: Spark, if there is a session, otherwise threads."""
    session = spark or session_if_any()
    if session is None:
        return ThreadClusteringRunner(progress)
    from pyhudi.spark.services.spark_clustering import SparkClusteringRunner

    return SparkClusteringRunner(session, progress=progress)
