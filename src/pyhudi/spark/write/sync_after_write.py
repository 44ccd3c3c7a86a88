"""Sync to catalogs after writes, with the settings of the Spark session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.catalog_sync.sync_after_commit import check_sync_after_commit, sync_after_commit
from pyhudi.catalog_sync.sync_settings import is_sync_enabled
from pyhudi.config import Options
from pyhudi.spark.hive_settings import with_hive_settings
from pyhudi.storage import Storage
from pyhudi.write.write_result import WriteResult


def check_sync_options(spark: SparkSession, opts: Options) -> None:
    """Check, before a write, that its commit can be synced if the options request it.

    Raises:
        ConfigError: Options are invalid or not supported, or the metastore is not known.
        SetupError: The package pymetastore is not installed.
    """
    if is_sync_enabled(opts):
        check_sync_after_commit(with_hive_settings(spark, opts))


def sync_after_write(spark: SparkSession, storage: Storage, opts: Options, result: WriteResult) -> WriteResult:
    """Sync the table of a write to the catalog if the options request it, and something was committed.

    Returns:
        The result, with a warning if the sync failed and its errors are ignored.

    Raises:
        ServiceAfterCommitError: The sync failed; the write is committed.
    """
    if result.instant is None or not is_sync_enabled(opts):
        return result
    return result.with_warning(sync_after_commit(storage, with_hive_settings(spark, opts)))
