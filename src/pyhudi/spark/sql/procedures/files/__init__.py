"""Procedures of files. Take the arguments of a call, and return rows about file slices, log files, and files in
storage."""

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
