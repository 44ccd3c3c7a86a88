"""Procedures of table services: compaction, clustering, cleaning, archival, partition TTL, upgrades. Take the
arguments of a call, run or plan a service, and return rows about its plans and results."""

from __future__ import annotations

from pyhudi.spark.sql.procedures.arguments import Procedure
from pyhudi.spark.sql.procedures.table_services import (
    archival_procedures,
    cleaning_procedures,
    clustering_procedures,
    compaction_procedures,
    partition_ttl_procedures,
    upgrade_procedures,
)

PROCEDURES: dict[str, Procedure] = {
    **archival_procedures.PROCEDURES,
    **cleaning_procedures.PROCEDURES,
    **clustering_procedures.PROCEDURES,
    **compaction_procedures.PROCEDURES,
    **partition_ttl_procedures.PROCEDURES,
    **upgrade_procedures.PROCEDURES,
}
