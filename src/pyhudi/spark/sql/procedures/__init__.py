"""CALL: each procedure is a function of a session and its arguments that returns the rows of its result.

Each module, and each package, has its procedures in `PROCEDURES`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.column_names import expression
from pyhudi.spark.sql.procedures import (
    files,
    help_procedure,
    lock_audit_procedures,
    metadata_table,
    recovery,
    table_services,
    tables,
    timeline,
)
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure
from pyhudi.spark.sql.spark_statements import result_frame
from pyhudi.sql.procedure_signatures import signature_of
from pyhudi.sql.statements import Call

PROCEDURES: dict[str, Procedure] = {
    **files.PROCEDURES,
    **help_procedure.PROCEDURES,
    **lock_audit_procedures.PROCEDURES,
    **metadata_table.PROCEDURES,
    **recovery.PROCEDURES,
    **table_services.PROCEDURES,
    **tables.PROCEDURES,
    **timeline.PROCEDURES,
}


def call_procedure(spark: SparkSession, statement: Call) -> DataFrame:
    """Run a procedure.

    Raises:
        QueryError: No procedure has the name, or an argument is invalid.
        ParseException: The argument ``filter`` is no complete condition.
        AnalysisException: It is no condition on the columns of the result.
    """
    signature = signature_of(statement.procedure)
    values = signature.bind(statement)
    condition = expression(str(text)) if (text := values.get("filter")) else None
    if condition is not None:
        # some procedures delete files, so an invalid filter must fail before they run
        _ = result_frame(spark, signature.schema, []).where(condition).schema
    procedure = PROCEDURES[signature.name]
    rows = result_frame(spark, signature.schema, procedure(spark, Arguments(signature, values)))
    return rows if condition is None else rows.where(condition)
