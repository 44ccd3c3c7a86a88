"""Partitions of ``HudiTable.services``: dropping of expired partitions, and repair of partition metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.api.services.service_base import ServiceBase
from pyhudi.errors import SetupError
from pyhudi.read.selection.table_files import load_view
from pyhudi.services.repair.partition_metadata_repair import repair_partition_metadata
from pyhudi.spark.session import session_if_any
from pyhudi.table.partition_ttl import PartitionTtl, TtlResult
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class PartitionServices(ServiceBase):
    """Services for the partitions of a table."""

    def delete_expired_partitions(
        self, options: Mapping[str, object] | None = None, *, dry_run: bool = False, spark: SparkSession | None = None
    ) -> TtlResult:
        """Drop expired partitions, like Apache Hudi's ``run_ttl``.

        A partition expires `hoodie.partition.ttl.strategy.days.retain` days after its last write, or after the write
        that created it (`hoodie.partition.ttl.management.strategy.type`). Its files remain until a clean deletes them.
        Concurrent writes to one of the partitions have a conflict.

        Args:
            options: Apache Hudi's options, in addition to the table's.
            dry_run: Change nothing, and return what would be dropped.
            spark: Session that updates indexes; None for the active one.

        Returns:
            The paths of the partitions, and the instant of the commit.

        Raises:
            ConfigError: No TTL is set.
            ConflictError: Another writer committed a conflicting change first.
            SetupError: There is no Spark session.
        """
        client, opts = self._open(options)
        if dry_run:
            ttl = PartitionTtl.from_options(opts)
            table = TableSnapshot.load(client)
            expired = ttl.expired(table, load_view(table, opts))
            return TtlResult(tuple(expired), reason="" if expired else f"no partition has expired: {ttl}")
        session = spark or session_if_any()
        if session is None:
            raise SetupError("dropping partitions requires a Spark session: pass spark=…")
        from pyhudi.spark.write.operations.partition_expiry import delete_expired_partitions

        return delete_expired_partitions(session, client, opts)

    def repair_partition_metadata(
        self, options: Mapping[str, object] | None = None, *, dry_run: bool = False
    ) -> pa.Table:
        """Write the missing ``.hoodie_partition_metadata`` of partitions, like Apache Hudi's
        ``repair_add_partition_meta``: without it a listing does not recognise a folder as a partition.

        Args:
            options: Apache Hudi's options, in addition to the table's.
            dry_run: Change nothing, and return what would be repaired.

        Returns:
            One row per partition with files: ``partition`` (path), ``is_present`` (whether it had its file),
            ``is_repaired``.

        Raises:
            InstantNotFoundError: The active timeline has no completed write.
        """
        client, _ = self._open(options)
        return repair_partition_metadata(client, dry_run=dry_run)
