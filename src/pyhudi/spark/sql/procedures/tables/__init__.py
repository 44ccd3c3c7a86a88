"""Procedures of whole tables. Take the arguments of a call; create tables from files, copy them, delete partitions,
change numbers of buckets, or sync them to a catalog."""

from __future__ import annotations

from pyhudi.spark.sql.procedures.arguments import Procedure
from pyhudi.spark.sql.procedures.tables import (
    bootstrap_procedures,
    bucket_index_procedures,
    catalog_procedures,
    copy_procedures,
    parquet_import_procedure,
    table_procedures,
)

PROCEDURES: dict[str, Procedure] = {
    **bootstrap_procedures.PROCEDURES,
    **bucket_index_procedures.PROCEDURES,
    **catalog_procedures.PROCEDURES,
    **copy_procedures.PROCEDURES,
    **parquet_import_procedure.PROCEDURES,
    **table_procedures.PROCEDURES,
}
