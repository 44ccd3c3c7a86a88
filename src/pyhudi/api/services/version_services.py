"""Upgrades and downgrades of ``HudiTable.services``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, overload

from pyhudi.api.services.compaction_services import compaction_runner
from pyhudi.api.services.service_base import ServiceBase, file_stats_reader
from pyhudi.services.upgrade.upgrade_downgrade import UpgradeDowngrade
from pyhudi.services.upgrade.upgrade_plan import UpgradePlan, UpgradeResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class VersionServices(ServiceBase):
    """Upgrades and downgrades of one table, between the table versions 5 (upgrades only), 6, 8 and 9.

    Writers should be stopped: a running write delays the change or causes an error, and a process that opened the table
    before must open it again. The version changes atomically, and an interrupted run is continued by the same call.
    """

    @overload
    def upgrade(
        self,
        to: int = 9,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[False] = False,
        spark: SparkSession | None = None,
    ) -> UpgradeResult: ...

    @overload
    def upgrade(
        self,
        to: int = 9,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: Literal[True],
        spark: SparkSession | None = None,
    ) -> UpgradePlan: ...

    def upgrade(
        self,
        to: int = 9,
        options: Mapping[str, object] | None = None,
        *,
        dry_run: bool = False,
        spark: SparkSession | None = None,
    ) -> UpgradeResult | UpgradePlan:
        """Upgrade the table to a later version, like Apache Hudi 1.2.

        Failed writes are rolled back and log files compacted first. Releases that do not support the version can no
        longer open the table: 0.14 and 0.15 support version 6, 1.0 supports 8, 1.1 and 1.2 support 9.

        A table without a payload class but with an ordering column (precombine field) merges by that column from
        version 8 on, as in Apache Hudi; `UpgradePlan.properties_set` contains its new merge mode.

        Args:
            to: The version: 6, 8 or 9.
            options: Apache Hudi's options (locks, compaction), in addition to the table's. The custom key generator of
                a version 6 table is defined completely by `hoodie.datasource.write.partitionpath.field`.
            dry_run: Change nothing, and return what would be done.
            spark: Session that runs the compaction; None for the active one, or threads if there is none.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            ConfigError: The version does not exist, or the table has a later one.
            UnsupportedTableError: pyhudi cannot write the table.
            TransactionError: A plan of a table service is pending.
            BusyError: A write is running.
            CorruptInstantError: A file of the timeline cannot be read.
            LockError: The lock of the table could not be acquired.
        """
        work = self._work(options, spark)
        return work.plan(to) if dry_run else work.run(to)

    @overload
    def downgrade(
        self,
        to: int,
        options: Mapping[str, object] | None = None,
        *,
        lossy: bool = False,
        dry_run: Literal[False] = False,
        spark: SparkSession | None = None,
    ) -> UpgradeResult: ...

    @overload
    def downgrade(
        self,
        to: int,
        options: Mapping[str, object] | None = None,
        *,
        lossy: bool = False,
        dry_run: Literal[True],
        spark: SparkSession | None = None,
    ) -> UpgradePlan: ...

    def downgrade(
        self,
        to: int,
        options: Mapping[str, object] | None = None,
        *,
        lossy: bool = False,
        dry_run: bool = False,
        spark: SparkSession | None = None,
    ) -> UpgradeResult | UpgradePlan:
        """Downgrade the table to an earlier version, for releases that do not support its current one.

        Data that can be rebuilt automatically, such as column statistics, are dropped if the version has them in
        another form. A downgrade that would lose anything else is refused: always for features such as several ordering
        columns; unless ``lossy`` for named indexes and, from a merge-on-read table to version 6, for snapshots before
        the last one.

        Args:
            to: The version: 6 or 8.
            options: Apache Hudi's options (locks, compaction), in addition to the table's.
            lossy: Drop named indexes, and delete the files of older snapshots, if the version does not support them.
            dry_run: Change nothing, and return what would be done.
            spark: Session that runs the compaction; None for the active one, or threads if there is none.

        Returns:
            The result, or the plan with ``dry_run``.

        Raises:
            ConfigError: The version does not exist, or the table has an earlier one.
            UnsupportedTableError: Something would be lost; the message has the solution.
            TransactionError: A plan of a table service is pending.
            BusyError: A write is running.
            CorruptInstantError: A file of the timeline cannot be read.
            LockError: The lock of the table could not be acquired.
        """
        work = self._work(options, spark, lossy=lossy)
        return work.plan(to, downgrade=True) if dry_run else work.run(to, downgrade=True)

    def _work(
        self, options: Mapping[str, object] | None, spark: SparkSession | None, *, lossy: bool = False
    ) -> UpgradeDowngrade:
        client, opts = self._open(options)
        return UpgradeDowngrade(client, opts, compaction_runner(spark), file_stats_reader(spark), lossy=lossy)
