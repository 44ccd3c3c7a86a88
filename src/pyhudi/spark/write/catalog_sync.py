"""Sync to a Hive metastore after writes, with the settings of the Spark session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.catalog_sync.sync_after_commit import check_sync_after_commit, sync_after_commit
from pyhudi.catalog_sync.sync_settings import is_enabled
from pyhudi.config import Options, options
from pyhudi.hive_metastore.metastore_address import SETTINGS
from pyhudi.storage import Storage
from pyhudi.write.write_result import WriteResult

_PREFIXES = ("", "spark.hadoop.", "spark.")
"""Forms of Hive's settings in a session, in order of precedence: `SET`, of Hadoop, and `spark.hive.…`."""
_PART_LENGTH = "spark.sql.sources.schemaStringLengthThreshold"


def with_hive_settings(spark: SparkSession, opts: Options) -> Options:
    """Return the options of a sync with the session's settings of Hive, and its version, where options do not say."""
    found: dict[str, object] = {options.META_SYNC_SPARK_VERSION.key: spark.version}
    part_length = spark.conf.get(_PART_LENGTH, None)
    if part_length:
        found[options.HIVE_SYNC_SCHEMA_STRING_LENGTH.key] = part_length
    for key in SETTINGS:
        values = (spark.conf.get(prefix + key, None) for prefix in _PREFIXES)
        value = next((value for value in values if value), None)
        if value is not None:
            found[key] = value
    return Options.parse({**found, **opts})


def check_sync_options(spark: SparkSession, opts: Options) -> None:
    """Check, before a write, that its commit can be synced if the options request it.

    Raises:
        ConfigError: Options are invalid or not supported, or the metastore is not known.
        SetupError: The package pymetastore is not installed.
    """
    if is_enabled(opts):
        check_sync_after_commit(with_hive_settings(spark, opts))


def sync_after_write(spark: SparkSession, storage: Storage, opts: Options, result: WriteResult) -> WriteResult:
    """Sync the table of a write to the catalog if the options request it, and something was committed.

    Args:
        spark: Session of the write.
        storage: Storage of the table.
        opts: Options of the write.
        result: Its result.

    Returns:
        The result, with a warning if the sync failed and its errors are ignored.

    Raises:
        ServiceAfterCommitError: The sync failed; the write is committed.
    """
    if result.instant is None or not is_enabled(opts):
        return result
    return result.with_warning(sync_after_commit(storage, with_hive_settings(spark, opts)))
