"""Procedures that change a table's version."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.errors import QueryError
from pyhudi.services.upgrade.upgrade_downgrade import UpgradeDowngrade
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.services.spark_compaction import SparkCompactionRunner
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows

_NAMES = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")


def upgrade_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Upgrade the table."""
    return _run(spark, arguments, downgrade=False)


def downgrade_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Downgrade the table."""
    return _run(spark, arguments, downgrade=True)


def _run(spark: SparkSession, arguments: Arguments, *, downgrade: bool) -> Rows:
    client, opts = arguments.opened(spark)
    work = UpgradeDowngrade(client, opts, SparkCompactionRunner(spark), SparkFileStatsReader(spark))
    work.run(_version(str(arguments.text("to_version"))), downgrade=downgrade)
    return [(True,)]


def _version(text: str) -> int:
    """A table version by its name in Apache Hudi (``SIX``) or its number.

    Raises:
        QueryError: It is neither.
    """
    if text.upper() in _NAMES:
        return _NAMES.index(text.upper())
    if not text.isdigit():
        raise QueryError(f"to_version is a table version, as 'EIGHT' or '8', not {text!r}")
    return int(text)


PROCEDURES: dict[str, Procedure] = {"upgrade_table": upgrade_table, "downgrade_table": downgrade_table}
