"""CALL: each procedure is a function of a session and its arguments that returns the rows of its result.

A module adds its procedures to `PROCEDURES`; what Apache Hudi has and nobody has added is refused by name.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from pyhudi.errors import UnsupportedTableError
from pyhudi.spark.sql.passthrough_statements import result
from pyhudi.spark.sql.procedures import commit_procedures, service_procedures, table_procedures
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure
from pyhudi.sql.procedure_signatures import signature_of
from pyhudi.sql.statements import Call

PROCEDURES: dict[str, Procedure] = {
    **commit_procedures.PROCEDURES,
    **table_procedures.PROCEDURES,
    **service_procedures.PROCEDURES,
}
_NOT_SERVED = {
    "copy_to_temp_view": ("begin_instance_time", "end_instance_time", "as_of_instant"),
    "show_archived_commits": ("start_ts", "end_ts"),
    "show_timeline": ("startTime", "endTime"),
}
"""Arguments of procedures that are refused: leaving them out of account would give other rows than asked for."""
_JAVA_ONLY = {
    "hive_sync": "sync the table with the tools of your catalog",
    "hdfs_parquet_import": "read the files with spark.read.parquet and write them with bulk_insert",
    "run_bootstrap": "read the files with spark.read.parquet and write them with bulk_insert",
    "sync_validate": "compare the tables with queries",
}


def call(spark: SparkSession, statement: Call) -> DataFrame:
    """Run a procedure.

    Raises:
        QueryError: there is none of that name, or its arguments are wrong.
        UnsupportedTableError: it is not served.
    """
    signature = signature_of(statement.procedure)
    values = signature.bind(statement)
    procedure = PROCEDURES.get(signature.name)
    if procedure is None:
        other = _JAVA_ONLY.get(signature.name, "the service that it runs is not served by CALL yet")
        raise UnsupportedTableError(f"the procedure {signature.name} is not served: {other}")
    for name in _NOT_SERVED.get(signature.name, ()):
        if values[name]:
            raise UnsupportedTableError(
                f"the argument {name!r} of {signature.name} is not served: leave it out, and filter the result"
            )
    found = result(spark, signature.schema, procedure(spark, Arguments(signature, values)))
    condition = values.get("filter")
    return found.where(str(condition)) if condition else found
