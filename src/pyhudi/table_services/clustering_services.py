"""Clustering as a user asks for it: the part of ``HudiTable.services`` that rewrites file groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from pyhudi.metrics.progress import Progress
from pyhudi.services.clustering.clustering_plan import ClusteringPlan
from pyhudi.services.clustering.clustering_runner import (
    ClusteringResult,
    ClusteringRunner,
    ThreadRunner,
    run_all,
    run_pending,
)
from pyhudi.services.clustering.clustering_schedule import make_plan, pending_plans, schedule
from pyhudi.table_services.service_base import Given, ServiceBase, session_if_any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ClusteringServices(ServiceBase):
    """Clustering of one table: small file groups become large ones, and rows are sorted, while their commit times,
    sequence numbers and keys stay. Log files are merged on the way.

    What is planned stays readable and is replaced in one commit. File groups of a pending plan cannot be written to
    until it is run; a write that did so all the same makes the clustering fail, never the other way round.
    """

    @overload
    def cluster(
        self,
        options: Given = None,
        *,
        dry_run: Literal[False] = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> ClusteringResult: ...

    @overload
    def cluster(
        self,
        options: Given = None,
        *,
        dry_run: Literal[True],
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> ClusteringPlan: ...

    def cluster(
        self,
        options: Given = None,
        *,
        dry_run: bool = False,
        only_if_due: bool = False,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> ClusteringResult | ClusteringPlan:
        """Rewrite file groups: run the plans that are pending or, if there are none, make a plan and run it.

        Base files below `hoodie.clustering.plan.strategy.small.file.limit` are clustered, into files of up to
        `hoodie.clustering.plan.strategy.target.file.max.bytes`, sorted by
        `hoodie.clustering.plan.strategy.sort.columns` if given, along the curve that `hoodie.layout.optimize.strategy`
        names.

        Args:
            options: Apache Hudi's options, on top of the table's.
            dry_run: Change nothing, and return the plan that would be made.
            only_if_due: Make a new plan only after `hoodie.clustering.async.max.commits` commits. By default the call
                itself is the reason to cluster.
            spark: Session that runs the tasks; None for the active one, or threads if there is none.
            progress: Called with the name of the work, how many groups of files are done, and how many there are; on
                Spark before and after.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            ConfigError: options are wrong, or there is no such column to sort by; nothing is planned then.
            UnsupportedTableError: the table has the bucket index with a fixed number of buckets, or merges by a merger
                that is not registered.
            ConflictError: a file group was written to meanwhile; the plan stays, to be tried again.
            TransactionError: another process runs a plan, or a restore is pending.
            SetupError: the table has a record index, or there is too much to be sorted in memory, and no Spark.
        """
        client, opts = self._open(options)
        if dry_run:
            return make_plan(client, opts, only_if_due=only_if_due)
        return run_all(client, opts, _runner(spark, progress), only_if_due=only_if_due)

    def schedule_clustering(self, options: Given = None, *, only_if_due: bool = False) -> ClusteringPlan:
        """Make a clustering plan and leave it on the timeline, to be run by any process. Its file groups cannot be
        written to until then.

        Args:
            options: Apache Hudi's options, on top of the table's.
            only_if_due: Make a plan only after `hoodie.clustering.async.max.commits` commits.

        Returns:
            The plan. It is empty, and not on the timeline, when there is nothing to do; its ``reason`` says why.

        Raises:
            ConfigError: Options are wrong, or there is no such column to sort by.
            UnsupportedTableError: The table cannot be clustered.
        """
        client, opts = self._open(options)
        return schedule(client, opts, only_if_due=only_if_due)

    def run_clustering(
        self,
        instant: str | None = None,
        options: Given = None,
        *,
        spark: SparkSession | None = None,
        progress: Progress | None = None,
    ) -> ClusteringResult:
        """Run the clustering plans that are pending, oldest first, or only that of ``instant``.

        A run that failed before, here or elsewhere, is rolled back and started again. A clustering that another program
        has begun is left alone, unless its ``instant`` is given here, or it has been silent for
        `pyhudi.compaction.abandoned.minutes`.

        Args:
            instant: Requested time of the plan to run; None for all.
            options: Apache Hudi's options, on top of the table's.
            spark: Session that runs the tasks; None for the active one, or threads if there is none.
            progress: Called with the name of the work, how many groups of files are done, and how many there are; on
                Spark before and after.

        Returns:
            The result.

        Raises:
            InstantNotFoundError: There is no such pending plan.
            BusyError: Another process runs a plan, or another program may be running one.
            ConflictError: A file group was written to meanwhile; the plan stays, to be tried again.
            SetupError: The table has a record index, or there is too much to be sorted in memory, and no Spark.
        """
        client, opts = self._open(options)
        return run_pending(client, opts, _runner(spark, progress), instant=instant, asked_for=instant is not None)

    def pending_clusterings(self) -> list[ClusteringPlan]:
        """Return the clustering plans on the timeline that are not completed, oldest first."""
        client, _ = self._open(None)
        return pending_plans(client.active_timeline())


def _runner(spark: SparkSession | None, progress: Progress | None) -> ClusteringRunner:
    """Return the runner of clusterings: Spark, if there is a session, else threads."""
    session = spark or session_if_any()
    if session is None:
        return ThreadRunner(progress)
    from pyhudi.spark.services.spark_clustering import SparkClusteringRunner

    return SparkClusteringRunner(session, progress=progress)
