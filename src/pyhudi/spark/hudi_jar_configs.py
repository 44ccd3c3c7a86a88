"""Configs of a session that refer to Apache Hudi's jar, if the jar is not on its class path."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.errors import OptionWithoutEffectWarning, SetupError, warn

CATALOG = "spark.sql.catalog.spark_catalog"
HUDI_CATALOG = "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
REGISTRATOR = "spark.kryo.registrator"
HUDI_REGISTRATOR = "org.apache.spark.HoodieSparkKryoRegistrar"


def remove_unloadable_hudi_configs(spark: SparkSession) -> None:
    """Remove the configs of a session that Spark cannot load without Apache Hudi's jar.

    The session catalog is reset to that of Spark, with a warning. Spark itself skips an extension that it cannot load,
    with an entry in its log.

    Raises:
        SetupError: Spark cannot run jobs, because Kryo is configured with a class of the jar when Spark starts.
    """
    if names_class(spark, CATALOG, HUDI_CATALOG) and not _has_catalog(spark):
        spark.conf.unset(CATALOG)
        warn(
            f"{CATALOG}={HUDI_CATALOG} needs Apache Hudi's jar, which is not on the class path; Spark's own session "
            f"catalog is used, where pyhudi keeps Hudi tables. Remove the setting, and spark.sql.extensions=…"
            "HoodieSparkSessionExtension with it",
            OptionWithoutEffectWarning,
        )
    if names_class(spark, REGISTRATOR, HUDI_REGISTRATOR) and not can_run_jobs(spark):
        raise SetupError(
            f"{REGISTRATOR}={HUDI_REGISTRATOR} needs Apache Hudi's jar, which is not on the class path, so this Spark "
            "session cannot run jobs. Stop it, remove the setting, and begin a new one"
        )


def names_class(spark: SparkSession, key: str, name: str) -> bool:
    """Return True if the value of a setting names a class."""
    return name in (spark.conf.get(key, None) or "")


def _has_catalog(spark: SparkSession) -> bool:
    """Return True if Spark can load its session catalog, without which it runs nothing."""
    try:
        spark.catalog.currentDatabase()
    except Exception as e:  # PySpark has no class of its own for it
        if HUDI_CATALOG in str(e):
            return False
        raise
    return True


def can_run_jobs(spark: SparkSession) -> bool:
    """Return False if jobs fail because Spark cannot load the registrator of Kryo. Runs a small job."""
    try:
        spark.range(1).count()
    except Exception as e:  # the same
        if HUDI_REGISTRATOR in str(e):
            return False
        raise
    return True
