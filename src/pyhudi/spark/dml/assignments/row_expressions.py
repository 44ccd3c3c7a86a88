"""Types of the expressions of statements.

An expression has one value for each row: window functions, aggregates and generators are refused.

In a projection Spark would evaluate a window function over the rows that the statement happens to read. A WHERE clause
refuses all three, so expressions are analysed in one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructType

from pyhudi.errors import QueryError

_REFUSED = re.compile(r"window function|INVALID_WHERE_CONDITION|UNSUPPORTED_GENERATOR", re.IGNORECASE)


def row_expression_types(rows: DataFrame, expressions: Mapping[str, Column]) -> list[DataType]:
    """Return the types of expressions, which have one value for each row. Runs no Spark job.

    Args:
        rows: Rows from which the expressions are computed.
        expressions: Expressions of any type by their description, such as ``the new value of 'n'``.

    Raises:
        QueryError: An expression has a window function, an aggregate or a generator.
        AnalysisException: Spark cannot resolve an expression.
    """
    # a struct, because the depth of a chain of conditions is limited in Spark Connect, and by the JVM's stack
    values = F.struct(*(value.alias(f"_pyhudi_value_{number}") for number, value in enumerate(expressions.values())))
    try:
        kinds = rows.where(values.isNotNull()).select(values.alias("_pyhudi_values")).schema[0].dataType
    except AnalysisException as error:
        if not _REFUSED.search(str(error)):
            raise
        raise QueryError(
            f"{_refused(rows, expressions)} has a window function, an aggregate, or a function that makes several "
            "rows; an expression of UPDATE, DELETE and MERGE has one value for each row: compute it by a query, and "
            "take the result as the source of a MERGE, or as a subquery"
        ) from error
    assert isinstance(kinds, StructType)
    return [field.dataType for field in kinds]


def _refused(rows: DataFrame, expressions: Mapping[str, Column]) -> str:
    """Return the description of the first expression that Spark refuses."""
    for what, expression in expressions.items():
        try:
            _ = rows.where(expression.isNotNull()).schema
        except AnalysisException:
            return what
    return next(iter(expressions))
