"""Repairs of ``HudiTable.services``. Writers should be stopped; those that show heartbeats are respected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import SetupError
from pyhudi.services.repair.clean_files_repair import repair_clean_files
from pyhudi.services.repair.deduplication import DedupeType, Deduplication
from pyhudi.services.repair.orphan_files import delete_orphan_files
from pyhudi.services.repair.partition_metadata_migration import migrate_partition_metadata
from pyhudi.services.repair.properties_repair import repair_properties
from pyhudi.storage import open_storage
from pyhudi.table_services.service_base import Given, ServiceBase, file_stats_reader, session_if_any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RepairServices(ServiceBase):
    """Repairs of one table."""

    def repair_clean_files(self, options: Given = None, *, dry_run: bool = False) -> pa.Table:
        """Delete pending cleans whose plans cannot be read, as Apache Hudi's ``repair_corrupted_clean_files`` does.

        Args:
            options: Options of locks and heartbeats.
            dry_run: Change nothing, and return what would be deleted.

        Returns:
            One row for each timeline file: ``instant``, ``file`` (path below the table's root), ``is_repaired``.

        Raises:
            BusyError: Somebody is at work on the table.
            LockError: The table's lock could not be taken.
        """
        client, opts = self._open(options)
        return repair_clean_files(client, opts, dry_run=dry_run)

    def migrate_partition_metadata(self, options: Given = None, *, dry_run: bool = False) -> pa.Table:
        """Keep the metadata files of partitions as Parquet files instead of texts, as Apache Hudi's
        ``repair_migrate_partition_meta`` does.

        Args:
            options: Options of heartbeats.
            dry_run: Change nothing, and return what would be migrated.

        Returns:
            One row for each partition: ``partition`` (path), ``has_text``, ``has_base`` (the files that it had),
            ``is_migrated``.

        Raises:
            UnsupportedTableError: The table's base files are not Parquet.
            BusyError: Somebody is at work on the table.
        """
        client, opts = self._open(options)
        return migrate_partition_metadata(client, opts, dry_run=dry_run)

    def overwrite_properties(
        self, properties: Mapping[str, str], options: Given = None, *, dry_run: bool = False
    ) -> pa.Table:
        """Put properties in place of all that ``hoodie.properties`` has, as Apache Hudi's
        ``repair_overwrite_hoodie_props`` does, also where the file is damaged or lost.

        Args:
            properties: All properties that the table is to have, without the checksum.
            options: Options of locks and heartbeats.
            dry_run: Change nothing, and return what would be changed.

        Returns:
            One row for each property before or after: ``property``, ``old_value``, ``new_value`` (null: not there).

        Raises:
            NotAHudiTableError: There is no table.
            ConfigError: The name, type or version is missing, or the version is another than the table's.
            UnsupportedTableError: A table with such properties is not served.
            BusyError: Somebody is at work on the table.
        """
        opts = Options.parse({**self._options, **(options or {})})
        return repair_properties(open_storage(self._path, opts), properties, opts, dry_run=dry_run)

    def deduplicate(
        self,
        partition: str,
        options: Given = None,
        *,
        dedupe_type: str = DedupeType.INSERT.value,
        dry_run: bool = False,
        output: str | None = None,
        spark: SparkSession | None = None,
    ) -> Deduplication:
        """Take rows out of a partition whose record keys it has more than once, as Apache Hudi's
        ``repair_deduplicate`` does; in one write, so that other writers may go on, and readers see all or none of it.

        Args:
            partition: Path of the partition.
            options: Options of files, locks and heartbeats.
            dedupe_type: How the duplicates came about: ``insert_type`` (never updated: the last commit's row stays),
                ``update_type`` (updated together: one stays), ``upsert_type`` (some updated: one of the last stays).
            dry_run: Change nothing of the table.
            output: Folder into which a dry run writes the rows that would stay in the file groups concerned.
            spark: Session that does the work; None for the active one.

        Returns:
            How many keys were there more than once, in which file groups, and the write that took rows out.

        Raises:
            QueryError: There is no such type, or several rows of a key would stay by it.
            UnsupportedTableError: The table keeps no record keys, or has buckets of consistent hashing.
            BusyError: Others are at work on the table, or have planned to rewrite a file group with duplicates.
            ConflictError: Another writer changed one meanwhile; nothing is changed then.
            SetupError: There is no Spark session.
        """
        kind = DedupeType.of(dedupe_type)
        session = spark or session_if_any()
        if session is None:
            raise SetupError("to look for duplicates takes Spark: pass spark=…")
        from pyhudi.spark.services.spark_deduplication import deduplicate

        client, opts = self._open(options)
        return deduplicate(session, client, opts, partition, kind, dry_run=dry_run, output=output)

    def delete_orphan_files(
        self,
        options: Given = None,
        *,
        partitions: Sequence[str] | None = None,
        dry_run: bool = True,
        spark: SparkSession | None = None,
    ) -> pa.Table:
        """List the data files that no write of the timeline knows, and delete them unless it is a dry run.

        Such are left by writers that died, when their rollback did not find them; once the timeline has been archived
        beyond their instants, readers take them for files of the table. Judged are files that are younger than the
        first instant that the timeline and its history know; files of pending instants and of savepoints stay.

        Args:
            options: Options of cleaning, locks and heartbeats.
            partitions: Only in these partitions; None for all.
            dry_run: Delete nothing, and return what would be deleted.
            spark: Session that reads files where the metadata table has to be built anew; None for the active one.

        Returns:
            One row for each file: ``partition``, ``path`` (below the table's root), ``file_id``, ``instant`` (as in its
            name), ``size`` (bytes), ``is_deleted``.

        Raises:
            BusyError: A write is pending, or a planned service is going to read such a file.
            CorruptInstantError: The timeline cannot be read.
            LockError: The table's lock could not be taken.
        """
        client, opts = self._open(options)
        reader = file_stats_reader(spark)
        return delete_orphan_files(client, opts, partitions=partitions, dry_run=dry_run, stats_reader=reader)
