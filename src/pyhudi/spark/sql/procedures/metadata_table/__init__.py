"""Procedures of the metadata table. Take the arguments of a call; create, open or delete the metadata table, or
return rows of its file lists and column statistics."""

from __future__ import annotations

from pyhudi.spark.sql.procedures.arguments import Procedure
from pyhudi.spark.sql.procedures.metadata_table import (
    column_stats_procedures,
    metadata_listing_procedures,
    metadata_table_procedures,
)

PROCEDURES: dict[str, Procedure] = {
    **column_stats_procedures.PROCEDURES,
    **metadata_listing_procedures.PROCEDURES,
    **metadata_table_procedures.PROCEDURES,
}
