"""Procedures of file slices and log files of a table, and files in its storage."""

from __future__ import annotations

from pyhudi.spark.sql.procedures.arguments import Procedure
from pyhudi.spark.sql.procedures.files import (
    file_status_procedures,
    file_view_procedures,
    invalid_parquet_procedures,
    log_file_procedures,
    storage_size_procedures,
)

PROCEDURES: dict[str, Procedure] = {
    **file_status_procedures.PROCEDURES,
    **file_view_procedures.PROCEDURES,
    **invalid_parquet_procedures.PROCEDURES,
    **log_file_procedures.PROCEDURES,
    **storage_size_procedures.PROCEDURES,
}
