"""Repairs of ``HudiTable.services``. Writers should be stopped; those with current heartbeats cause an error."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.api.services.service_base import ServiceBase, file_stats_reader
from pyhudi.config import Options
from pyhudi.errors import SetupError
from pyhudi.services.repair.corrupted_clean_repair import repair_clean_files
from pyhudi.services.repair.duplicate_keys import DedupeType, Deduplication
from pyhudi.services.repair.orphan_files import delete_orphan_files
from pyhudi.services.repair.partition_metadata_migration import migrate_partition_metadata
from pyhudi.services.repair.properties_repair import change_properties, repair_properties
from pyhudi.spark.session import session_if_any
from pyhudi.storage import open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RepairServices(ServiceBase):
    """Repairs of one table."""

    def repair_clean_files(self, options: Mapping[str, object] | None = None, *, dry_run: bool = False) -> pa.Table:
        """Delete pending cleans with unreadable plans, like Apache Hudi's ``repair_corrupted_clean_files``.

        Args:
            options: Options of locks and heartbeats.
            dry_run: Change nothing, and return what would be deleted.

        Returns:
            One row per timeline file: ``instant``, ``file`` (path relative to the root of the table), ``is_repaired``.

        Raises:
            BusyError: A write or service is running on the table.
            LockError: The lock of the table could not be acquired.
        """
        client, opts = self._open(options)
        return repair_clean_files(client, opts, dry_run=dry_run)

    def change_properties(
        self,
        put: Mapping[str, str] | None = None,
        remove: Collection[str] = (),
        options: Mapping[str, object] | None = None,
        *,
        dry_run: bool = False,
    ) -> pa.Table:
        """Set and remove properties of the table (``hoodie.properties``), like ``table update-configs`` and ``table
        delete-configs`` of Apache Hudi's hudi-cli. Nothing in the files of the table changes: what properties say of
        them, such as the key fields, has to stay true.

        Args:
            put: Properties to set.
            remove: Names of properties to remove; those that the table does not have are ignored.
            options: Options of locks and heartbeats.
            dry_run: Change nothing, and return what would change.

        Returns:
            One row per property that changes: ``property``, ``old_value``, ``new_value``, null if it does not exist.

        Raises:
            ConfigError: The name, type or version would be missing, or the version another one.
            UnsupportedTableError: A table with such properties is not supported.
            BusyError: A write or service is running on the table.
            LockError: The lock of the table could not be acquired.
        """
        client, opts = self._open(options)
        return change_properties(client.storage, opts, put=put or {}, remove=remove, dry_run=dry_run)

    def migrate_partition_metadata(
        self, options: Mapping[str, object] | None = None, *, dry_run: bool = False
    ) -> pa.Table:
        """Convert the metadata files of partitions from text to Parquet files, like Apache Hudi's
        ``repair_migrate_partition_meta``.

        Args:
            options: Options of heartbeats.
            dry_run: Change nothing, and return what would be migrated.

        Returns:
            One row per partition: ``partition`` (path), ``has_text``, ``has_base`` (previous files), ``is_migrated``.

        Raises:
            UnsupportedTableError: The table's base files are not Parquet.
            BusyError: A write or service is running on the table.
        """
        client, opts = self._open(options)
        return migrate_partition_metadata(client, opts, dry_run=dry_run)

    def overwrite_properties(
        self, properties: Mapping[str, str], options: Mapping[str, object] | None = None, *, dry_run: bool = False
    ) -> pa.Table:
        """Replace all properties in ``hoodie.properties``, like Apache Hudi's ``repair_overwrite_hoodie_props``, also
        if the file is corrupt or missing.

        Args:
            properties: All properties of the table, without the checksum.
            options: Options of locks and heartbeats.
            dry_run: Change nothing, and return what would be changed.

        Returns:
            One row per property before or after: ``property``, ``old_value``, ``new_value`` (null: does not exist).

        Raises:
            NotAHudiTableError: There is no table.
            ConfigError: The name, type or version is missing, or the version differs from the table's.
            UnsupportedTableError: A table with such properties is not supported.
            BusyError: A write or service is running on the table.
        """
        opts = Options.parse({**self._options, **(options or {})})
        return repair_properties(open_storage(self._path, opts), properties, opts, dry_run=dry_run)

    def deduplicate(
        self,
        partition: str,
        options: Mapping[str, object] | None = None,
        *,
        dedupe_type: str = DedupeType.INSERT.value,
        dry_run: bool = False,
        output: str | None = None,
        spark: SparkSession | None = None,
    ) -> Deduplication:
        """Remove rows with duplicate record keys from a partition, like Apache Hudi's ``repair_deduplicate``, but in
        one atomic write that is safe with concurrent writers.

        Args:
            partition: Path of the partition.
            options: Options of files, locks and heartbeats.
            dedupe_type: Cause of the duplicates: ``insert_type`` (never updated: the row of the last commit is kept),
                ``update_type`` (updated together: one is kept), ``upsert_type`` (some updated: one of the most recent
                ones is kept).
            dry_run: Do not change the table.
            output: Folder to which a dry run writes the remaining rows of the affected file groups.
            spark: Session that runs the work; None for the active one.

        Returns:
            The number of duplicate keys, their file groups, and the write that removed rows.

        Raises:
            QueryError: The partition has no files, the type is unknown, or it would keep several rows of a key.
            UnsupportedTableError: The table stores no record keys, or has consistent hashing buckets.
            BusyError: A write or service is running, or has planned to rewrite a file group with duplicates.
            ConflictError: Another writer changed one concurrently; nothing is changed then.
            SetupError: There is no Spark session.
        """
        kind = DedupeType.from_text(dedupe_type)
        session = spark or session_if_any()
        if session is None:
            raise SetupError("deduplication requires Spark: pass spark=…")
        from pyhudi.spark.services.spark_deduplication import deduplicate, preview_deduplication

        client, opts = self._open(options)
        if dry_run:
            return preview_deduplication(session, client, opts, partition=partition, kind=kind, output=output)
        return deduplicate(session, client, opts, partition, kind)

    def delete_orphan_files(
        self,
        options: Mapping[str, object] | None = None,
        *,
        partitions: Sequence[str] | None = None,
        dry_run: bool = True,
        spark: SparkSession | None = None,
    ) -> pa.Table:
        """List the data files that belong to no write of the timeline, and delete them unless it is a dry run.

        Such files are left by killed writers whose rollback did not find them; once the timeline has been archived
        beyond their instants, readers include them in the table. Only files later than the first instant of the active
        and archived timeline are examined; files of pending instants and of savepoints are kept.

        Args:
            options: Options of cleaning, locks and heartbeats.
            partitions: Only in these partitions; None for all.
            dry_run: Delete nothing, and return what would be deleted.
            spark: Session that reads files if the metadata table has to be rebuilt; None for the active one.

        Returns:
            One row per file: ``partition``, ``path`` (relative to the root of the table), ``file_id``, ``instant`` (as
            in its name), ``size`` (bytes), ``is_deleted``.

        Raises:
            BusyError: A write is pending, or a planned service is going to read such a file.
            CorruptInstantError: The timeline cannot be read.
            LockError: The lock of the table could not be acquired.
        """
        client, opts = self._open(options)
        reader = file_stats_reader(spark)
        return delete_orphan_files(client, opts, partitions=partitions, dry_run=dry_run, stats_reader=reader)


def overwrite_properties(
    path: str | os.PathLike[str],
    properties: Mapping[str, str],
    options: Mapping[str, object] | None = None,
    *,
    dry_run: bool = False,
) -> pa.Table:
    """Replace all properties in a table's ``hoodie.properties``, also if the file is corrupt or missing, so that
    :class:`pyhudi.HudiTable` cannot open the table.

    Args:
        path: Path or URI of the table's root folder.
        properties: All properties of the table, without the checksum.
        options: Options of storage, locks and heartbeats.
        dry_run: Change nothing, and return what would be changed.

    Returns:
        One row per property before or after: ``property``, ``old_value``, ``new_value`` (null: does not exist).

    Raises:
        NotAHudiTableError: There is no ``.hoodie`` folder.
        ConfigError: The name, type or version is missing, or the version differs from the table's.
        UnsupportedTableError: A table with such properties is not supported.
        BusyError: A write or service is running on the table.
    """
    opts = Options.parse(options or {})
    return repair_properties(open_storage(path, opts), properties, opts, dry_run=dry_run)
