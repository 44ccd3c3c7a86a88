"""The metadata table as a whole, of ``HudiTable.services``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.api.services.service_base import ServiceBase, file_stats_reader
from pyhudi.services.indexing.metadata_table_build import create_metadata_table, delete_metadata_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class MetadataServices(ServiceBase):
    """Creation and deletion of the metadata table of one table."""

    def create_metadata_table(
        self, options: Mapping[str, object] | None = None, *, spark: SparkSession | None = None
    ) -> tuple[str, ...]:
        """Build the metadata table with the indexes that the options enable; later writes maintain it.

        Args:
            options: Apache Hudi's options (`hoodie.metadata.index.column.stats.enable` and others), in addition to the
                table's.
            spark: Session that reads files; None for the active one, or threads if there is none.

        Returns:
            The partitions of the metadata table.

        Raises:
            AlreadyExistsError: There is one.
            LockError: The lock of the table could not be acquired.
        """
        client, opts = self._open(options)
        return create_metadata_table(client, opts, file_stats_reader(spark))

    def delete_metadata_table(self, options: Mapping[str, object] | None = None) -> tuple[str, ...]:
        """Disable the metadata table and delete it with all indexes. Unless `hoodie.metadata.enable` is false, the next
        write builds another one.

        Args:
            options: Options of locks.

        Returns:
            The partitions that it had; none if there was no metadata table.

        Raises:
            LockError: The lock of the table could not be acquired.
        """
        client, opts = self._open(options)
        return delete_metadata_table(client, opts)
