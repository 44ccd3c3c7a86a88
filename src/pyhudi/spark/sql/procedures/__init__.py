"""CALL: each procedure is a function of a session and its arguments that returns the rows of its result.

A module adds its procedures to `PROCEDURES`. Unsupported procedures are refused by name, with the alternative.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import UnsupportedTableError
from pyhudi.spark.sql.procedures import (
    bootstrap_procedures,
    bucket_index_procedures,
    cleaning_procedures,
    clustering_procedures,
    commit_procedures,
    instant_export,
    lock_audit_procedures,
    log_file_procedures,
    metadata_procedures,
    parquet_import_procedure,
    recovery_procedures,
    repair_procedures,
    service_procedures,
    storage_procedures,
    table_procedures,
    upgrade_procedures,
)
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure
from pyhudi.spark.sql.spark_statements import result
from pyhudi.sql.procedure_signatures import signature_of
from pyhudi.sql.statements import Call

PROCEDURES: dict[str, Procedure] = {
    **bootstrap_procedures.PROCEDURES,
    **bucket_index_procedures.PROCEDURES,
    **cleaning_procedures.PROCEDURES,
    **clustering_procedures.PROCEDURES,
    **commit_procedures.PROCEDURES,
    **instant_export.PROCEDURES,
    **lock_audit_procedures.PROCEDURES,
    **log_file_procedures.PROCEDURES,
    **metadata_procedures.PROCEDURES,
    **recovery_procedures.PROCEDURES,
    **parquet_import_procedure.PROCEDURES,
    **repair_procedures.PROCEDURES,
    **service_procedures.PROCEDURES,
    **storage_procedures.PROCEDURES,
    **table_procedures.PROCEDURES,
    **upgrade_procedures.PROCEDURES,
}
_USE_INSTEAD = {
    "hive_sync": "a catalog is synced by its own tools; tables by name are in Spark's session catalog",
    "sync_validate": "compare the tables with queries",
}
"""Procedures that are refused, with the alternative."""


def call(spark: SparkSession, statement: Call) -> DataFrame:
    """Run a procedure.

    Raises:
        QueryError: No procedure has the name, or an argument is invalid.
        UnsupportedTableError: The procedure is not supported.
    """
    signature = signature_of(statement.procedure)
    values = signature.bind(statement)
    procedure = PROCEDURES.get(signature.name)
    if procedure is None:
        raise UnsupportedTableError(f"the procedure {signature.name} is not supported: {_USE_INSTEAD[signature.name]}")
    rows = result(spark, signature.schema, procedure(spark, Arguments(signature, values)))
    condition = values.get("filter")
    return rows.where(str(condition)) if condition else rows
