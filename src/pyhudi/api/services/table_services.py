"""``TableServices``: all services of a table, as returned by ``HudiTable.services``."""

from __future__ import annotations

from pyhudi.api.services.catalog_services import CatalogServices
from pyhudi.api.services.cleaning_services import CleaningServices
from pyhudi.api.services.clustering_services import ClusteringServices
from pyhudi.api.services.compaction_services import CompactionServices
from pyhudi.api.services.index_services import IndexServices
from pyhudi.api.services.lock_audit_services import LockAuditServices
from pyhudi.api.services.metadata_services import MetadataServices
from pyhudi.api.services.partition_services import PartitionServices
from pyhudi.api.services.recovery_services import RecoveryServices
from pyhudi.api.services.repair_services import RepairServices
from pyhudi.api.services.version_services import VersionServices


class TableServices(
    CompactionServices,
    ClusteringServices,
    CleaningServices,
    RecoveryServices,
    IndexServices,
    PartitionServices,
    MetadataServices,
    RepairServices,
    LockAuditServices,
    VersionServices,
    CatalogServices,
):
    """Services of one table.

    Each service takes Apache Hudi's options (``hoodie.compact.…``, ``hoodie.compaction.…``,
    ``hoodie.log.compaction.…``, ``hoodie.clustering.…``, and those of files and locks) in addition to the table's. The
    work runs on ``spark``, otherwise on the active Spark session, otherwise on threads of this process. Services may
    run concurrently with writers, also in another process.
    """
