"""Upgrades and downgrades as a user asks for them: the part of ``HudiTable.services`` that changes table versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from pyhudi.services.compaction.compaction_runner import run_in_threads
from pyhudi.services.upgrade.upgrade_downgrade import UpgradeDowngrade
from pyhudi.services.upgrade.upgrade_plan import UpgradePlan, UpgradeResult
from pyhudi.table_services.service_base import Given, ServiceBase, file_stats_reader, session_if_any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class VersionServices(ServiceBase):
    """Upgrades and downgrades of one table, between the table versions 5 (upgrades only), 6, 8 and 9.

    Writers should be stopped; one that has begun is waited for or refused, and one that opened the table before must
    open it again. The table has the one version or the other at any moment, and a run that died is gone on with by the
    same call.
    """

    @overload
    def upgrade(
        self, to: int = 9, options: Given = None, *, dry_run: Literal[False] = False, spark: SparkSession | None = None
    ) -> UpgradeResult: ...

    @overload
    def upgrade(
        self, to: int = 9, options: Given = None, *, dry_run: Literal[True], spark: SparkSession | None = None
    ) -> UpgradePlan: ...

    def upgrade(
        self, to: int = 9, options: Given = None, *, dry_run: bool = False, spark: SparkSession | None = None
    ) -> UpgradeResult | UpgradePlan:
        """Take the table to a later version, as Apache Hudi 1.2 does.

        Failed writes are rolled back and log files compacted first. Releases that do not know the version cannot open
        the table any more: 0.14 and 0.15 know version 6, 1.0 knows 8, 1.1 and 1.2 know 9.

        A table that names no payload class but an ordering column (precombine field) merges by that column from version
        8 on, as in Apache Hudi; `UpgradePlan.properties_set` shows the merge mode that it gets.

        Args:
            to: The version: 6, 8 or 9.
            options: Apache Hudi's options (locks, compaction), on top of the table's. The custom key generator of a
                version 6 table is described in full by `hoodie.datasource.write.partitionpath.field`.
            dry_run: Change nothing, and return what would be done.
            spark: Session that runs the compaction; None for the active one, or threads if there is none.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            ConfigError: There is no such version, or the table has a later one.
            UnsupportedTableError: The table cannot be written here.
            TransactionError: A plan of a table service is pending.
            BusyError: Somebody is writing.
            CorruptInstantError: A file of the timeline cannot be read.
            LockError: The table's lock could not be taken.
        """
        work = self._work(options, spark)
        return work.plan(to) if dry_run else work.run(to)

    @overload
    def downgrade(
        self,
        to: int,
        options: Given = None,
        *,
        lossy: bool = False,
        dry_run: Literal[False] = False,
        spark: SparkSession | None = None,
    ) -> UpgradeResult: ...

    @overload
    def downgrade(
        self,
        to: int,
        options: Given = None,
        *,
        lossy: bool = False,
        dry_run: Literal[True],
        spark: SparkSession | None = None,
    ) -> UpgradePlan: ...

    def downgrade(
        self,
        to: int,
        options: Given = None,
        *,
        lossy: bool = False,
        dry_run: bool = False,
        spark: SparkSession | None = None,
    ) -> UpgradeResult | UpgradePlan:
        """Take the table to an earlier version, for releases that do not know its own.

        What can be built again by itself, as column statistics, is dropped if the version has it in another form. What
        cannot is refused: features such as several ordering columns always, indexes with names and, on the way of a
        merge-on-read table to version 6, snapshots before the last one unless ``lossy``.

        Args:
            to: The version: 6 or 8.
            options: Apache Hudi's options (locks, compaction), on top of the table's.
            lossy: Drop indexes with names, and delete the files of older snapshots, where the version cannot have them.
            dry_run: Change nothing, and return what would be done.
            spark: Session that runs the compaction; None for the active one, or threads if there is none.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            ConfigError: There is no such version, or the table has an earlier one.
            UnsupportedTableError: Something would be lost; the text names it, and what to do.
            TransactionError: A plan of a table service is pending.
            BusyError: Somebody is writing.
            CorruptInstantError: A file of the timeline cannot be read.
            LockError: The table's lock could not be taken.
        """
        work = self._work(options, spark, lossy=lossy)
        return work.plan(to, downgrade=True) if dry_run else work.run(to, downgrade=True)

    def _work(self, options: Given, spark: SparkSession | None, *, lossy: bool = False) -> UpgradeDowngrade:
        client, opts = self._open(options)
        session = spark or session_if_any()
        if session is None:
            return UpgradeDowngrade(client, opts, run_in_threads, file_stats_reader(None), lossy=lossy)
        from pyhudi.spark.services.spark_compaction import spark_runner

        return UpgradeDowngrade(client, opts, spark_runner(session), file_stats_reader(session), lossy=lossy)
