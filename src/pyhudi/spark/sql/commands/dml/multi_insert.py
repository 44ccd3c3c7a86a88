"""Several INSERTs after one FROM."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql import DataFrame

from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.spark_statements import empty_result
from pyhudi.spark.sql.statement_call import StatementCall
from pyhudi.sql.statements import MultiInsert

_FAILURE = re.compile(r"^(?:[\w.]*Exception|Error occurred during query planning): *(.*)", re.DOTALL | re.MULTILINE)
"""Text of EXPLAIN of a statement that Spark cannot plan."""


def run_inserts(call: StatementCall, statement: MultiInsert, run: Callable[[str], DataFrame]) -> DataFrame:
    """Run several INSERTs after one FROM, one after the other if some are into Hudi tables.

    Raises:
        UnsupportedTableError: The INSERTs read a Hudi table that they change.
        QueryError: A later one cannot be planned, so that none is run.
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
        texts = call.values.with_literals(statement).texts
        for text in texts[1:]:
            _check(text, run)
        for text in texts:
            run(text)
    return empty_result(spark)


def _check(insert: str, run: Callable[[str], DataFrame]) -> None:
    """Find errors of an INSERT before the others are run.

    Raises:
        QueryError: Spark cannot plan it.
    """
    text = "\n".join(row[0] for row in run(f"EXPLAIN {insert}").collect())  # Spark gives each line of an error its row
    failure = _FAILURE.search(text)
    if failure is not None:
        raise QueryError(f"nothing was written, because this INSERT fails: {insert}: {failure[1].strip()}")
