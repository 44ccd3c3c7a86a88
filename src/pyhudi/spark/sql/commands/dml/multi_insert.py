"""Several INSERTs after one FROM."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from pyhudi.errors import UnsupportedTableError
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.spark_statements import empty_result
from pyhudi.spark.sql.statement_call import StatementCall
from pyhudi.sql.statements import MultiInsert


def run_inserts(call: StatementCall, statement: MultiInsert, run: Callable[[str], object]) -> DataFrame:
    """Run several INSERTs after one FROM, one after the other if some are into Hudi tables.

    Args:
        call: The call.
        statement: The statement.
        run: Runs one INSERT.

    Raises:
        UnsupportedTableError: The INSERTs read a Hudi table that they change.
    """
    spark = call.spark
    tables = [table for name in statement.names if (table := find_table(spark, name)) is not None]
    prepared = rewrite_query(spark, statement.source, args=call.args)
    if not tables:
        return call.run_rewritten("", prepared, " ".join(statement.inserts))
    read = next((table for table in tables if table.location in prepared.locations), None)
    if read is not None:
        raise UnsupportedTableError(
            f"{read.sql} is a Hudi table, which FROM before several INSERTs cannot both read and change; write one "
            "INSERT for each table"
        )
    with call.values.frames_as_views(spark):
        for text in call.values.with_literals(statement).texts:
            run(text)
    return empty_result(spark)
