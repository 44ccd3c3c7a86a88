"""Execution of the same statements by pyhudi and by Apache Iceberg in one Spark application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pyhudi.errors import HudiError
from tests.random_statements.statements import Kind, RandomTable, Statement

_SHOWN = 5
"""Number of the last statements and of rows that a difference shows."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sessions of an application: one with tables of pyhudi, and one with tables of Apache Iceberg."""

    pyhudi: SparkSession
    iceberg: SparkSession

    @classmethod
    def start(cls, spark: SparkSession) -> Self:
        """Prepare both sessions; ``spark`` has the catalog ``iceberg``."""
        spark.sql("SET hoodie.spark.sql.insert.into.operation = insert")
        spark.sql("SET hoodie.schema.on.read.enable = true")
        other = spark.newSession()
        other.sql("CREATE NAMESPACE IF NOT EXISTS iceberg.default")
        other.sql("USE iceberg.default")
        return cls(spark, other)

    def run(self, table: RandomTable, count: int) -> str | None:
        """Run the statements of a table. Return the first difference; None: both have the same rows all the time."""
        done: list[str] = []
        for statement in table.statements(count):
            done += [] if statement.kind is Kind.QUERY else [statement.text]
            ours = _result(self.pyhudi, statement, statement.text)
            theirs = ours if statement.iceberg is None else _result(self.iceberg, statement, statement.iceberg)
            if statement.kind is Kind.SERVICE and isinstance(ours, str):
                theirs = "the service runs"
            if ours != theirs:
                history = "\n".join([done[0], *done[1:][-_SHOWN:]])
                return (
                    f"\n{statement.text}\npyhudi:  {_shown(ours, theirs)}\niceberg: {_shown(theirs, ours)}\n{history}"
                )
        for session in (self.pyhudi, self.iceberg):
            session.sql(f"DROP TABLE {table.name}")
        return None


_Result = list[str] | str | None


def _result(session: SparkSession, statement: Statement, text: str) -> _Result:
    """Run a statement; return the rows of a query in order, or the error."""
    try:
        rows = session.sql(text).collect()
    except (PySparkException, HudiError) as error:
        return f"{type(error).__name__}: {error}"
    return sorted(map(str, rows)) if statement.kind is Kind.QUERY else None


def _shown(result: _Result, other: _Result) -> str:
    """Return an error, or the rows that the other one does not have."""
    if not isinstance(result, list):
        return str(result)
    own = [row for row in result if not isinstance(other, list) or result.count(row) > other.count(row)]
    return f"{len(result)} rows, of them alone {own[:_SHOWN]}"
