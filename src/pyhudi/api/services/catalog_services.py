"""Sync to a catalog, of ``HudiTable.services``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.api.services.service_base import ServiceBase
from pyhudi.catalog_sync.sync_result import CatalogSyncResult
from pyhudi.catalog_sync.table_sync import sync_table
from pyhudi.spark.session import session_if_any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CatalogServices(ServiceBase):
    """Sync of one table to a Hive metastore."""

    def sync_catalog(
        self, options: Mapping[str, object] | None = None, *, spark: SparkSession | None = None
    ) -> CatalogSyncResult:
        """Sync the table to a Hive metastore, like Apache Hudi's ``HiveSyncTool`` in the mode ``hms``, or to AWS Glue:
        create its entries or change their columns, properties and partitions, so that other engines find it by name.

        A table that is synced already, up to its last commit, is left as it is, unless ``hoodie.meta.sync.incremental``
        is false.

        Args:
            options: Apache Hudi's options ``hoodie.datasource.hive_sync.…`` and ``hoodie.meta.sync.…``. The metastore
                is that of ``hoodie.datasource.hive_sync.metastore.uris``, of the Spark session, or of hive-site.xml.
            spark: Session whose settings of Hive count; None for the active one, if there is one.

        Returns:
            What was changed, for each table of the catalog.

        Raises:
            ConfigError: Options are invalid or not supported, or the metastore is not known.
            SetupError: The package of the client is not installed (``pyhudi[hive]``, ``pyhudi[glue]``).
            UnsupportedTableError: The table has no commit yet.
            CatalogError: The catalog does not answer or refused a request, or the name belongs to something else.
        """
        client, opts = self._open(options)
        session = spark or session_if_any()
        if session is not None:
            from pyhudi.spark.hive_settings import with_hive_settings

            opts = with_hive_settings(session, opts)
        return sync_table(client, opts)
