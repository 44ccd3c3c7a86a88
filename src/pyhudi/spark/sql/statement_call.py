"""One call of ``spark.sql``: what the functions that execute its statement have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark.sql.queries.rewritten_query import RewrittenQuery
from pyhudi.spark.sql.statement_parameters import StatementParameters


@dataclass(frozen=True, slots=True)
class StatementCall:
    """A call of ``spark.sql``.

    Attributes:
        spark: The session.
        values: The text of the statement, with the values of its parameters.
        run_on_spark: Passes the statement to Spark unchanged.
    """

    spark: SparkSession
    values: StatementParameters
    run_on_spark: Callable[[], DataFrame]

    @property
    def args(self) -> Any:
        """Values of the parameters."""
        return self.values.args

    def run_rewritten(self, head: str, query: RewrittenQuery, tail: str = "") -> DataFrame:
        """Run a statement whose query may read Hudi tables, by Spark: with the rewritten query if it does."""
        if not query.reads_hudi_tables:
            return self.run_on_spark()
        return self.values.run(self.spark, f"{head} {query.text} {tail}".rstrip())
