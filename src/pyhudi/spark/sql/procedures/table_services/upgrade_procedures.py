"""Procedures that change a table's version."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.services.upgrade.upgrade_downgrade import UpgradeDowngrade
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.services.spark_compaction import SparkCompactionRunner
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.table.config.version_support import parse_version


def upgrade_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Upgrade the table."""
    return _run(spark, arguments, downgrade=False)


def downgrade_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Downgrade the table."""
    return _run(spark, arguments, downgrade=True)


def _run(spark: SparkSession, arguments: Arguments, *, downgrade: bool) -> Rows:
    client, opts = arguments.opened(spark)
    work = UpgradeDowngrade(client, opts, SparkCompactionRunner(spark), SparkFileStatsReader(spark))
    work.run(parse_version(str(arguments.text("to_version"))), downgrade=downgrade)
    return [(True,)]


PROCEDURES: dict[str, Procedure] = {"upgrade_table": upgrade_table, "downgrade_table": downgrade_table}
