"""Partitions of ``HudiTable.services``: those that have expired are dropped, those that are lost are found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import SetupError
from pyhudi.services.repair.partition_metadata_repair import repair_partition_metadata
from pyhudi.table.partition_ttl import PartitionTtl, TtlResult
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.table_services.service_base import Given, ServiceBase, session_if_any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class PartitionServices(ServiceBase):
    """The life of a table's partitions."""

    def delete_expired_partitions(
        self, options: Given = None, *, dry_run: bool = False, spark: SparkSession | None = None
    ) -> TtlResult:
        """Drop the partitions whose time to live is over, as Apache Hudi's ``run_ttl`` does.

        A partition has expired `hoodie.partition.ttl.strategy.days.retain` days after the last write to it, or after
        the write that made it (`hoodie.partition.ttl.management.strategy.type`). Its files stay until a clean deletes
        them. Who writes to one of the partitions meanwhile has a conflict.

        Args:
            options: Apache Hudi's options, on top of the table's.
            dry_run: Change nothing, and return what would be dropped.
            spark: Session that keeps indexes up to date; None for the active one.

        Returns:
            The paths of the partitions, and the instant of the commit.

        Raises:
            ConfigError: No time to live is set.
            ConflictError: Another writer was faster.
            SetupError: There is no Spark session.
        """
        client, opts = self._open(options)
        if dry_run:
            ttl = PartitionTtl.of(opts)
            table = PinnedTable.of(client)
            found = ttl.expired(table)
            return TtlResult(tuple(found), reason="" if found else f"no partition has expired: {ttl}")
        session = spark or session_if_any()
        if session is None:
            raise SetupError("to drop partitions takes a Spark session: pass spark=…")
        from pyhudi.spark.write.dataframe_writer import delete_expired_partitions

        return delete_expired_partitions(session, client, opts)

    def repair_partition_metadata(self, options: Given = None, *, dry_run: bool = False) -> pa.Table:
        """Write the ``.hoodie_partition_metadata`` of partitions that have lost it, as Apache Hudi's
        ``repair_add_partition_meta`` does: without it a listing does not take a folder for a partition.

        Args:
            options: Apache Hudi's options, on top of the table's.
            dry_run: Change nothing, and return what would be repaired.

        Returns:
            One row for each partition that has files: ``partition`` (path), ``is_present`` (whether it had its file),
            ``is_repaired``.

        Raises:
            InstantNotFoundError: The active timeline has no completed write.
        """
        client, _ = self._open(options)
        return repair_partition_metadata(client, dry_run=dry_run)
