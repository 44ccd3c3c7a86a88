"""Filters of scan plans as Spark conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from operator import and_, or_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pyhudi.errors import QueryError
from pyhudi.read.filters.number_comparison import LISTS
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.terms import Term
from pyhudi.read.filters.time_comparison import is_date_or_time
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.schema.column_paths import resolve_column, type_at
from pyhudi.read.selection.commit_time_filter import CommitTimes
from pyhudi.schema.meta_fields import COMMIT_TIME
from pyhudi.spark.column_names import expression
from pyhudi.spark.spark_types import spark_type


def with_conditions(rows: DataFrame, plan: ScanPlan) -> DataFrame:
    """Return the rows of a scan that meet all conditions of a plan."""
    if plan.commit_times is not None:
        rows = rows.where(_commit_times(plan.commit_times))
    if plan.filter is not None:
        rows = rows.where(filter_column(plan.filter, plan.schema))
    for text in plan.query.incremental.sql_filters:
        rows = rows.where(expression(text))
    return rows


def with_sql_conditions(rows: DataFrame, plan: ScanPlan) -> DataFrame:
    """Return the rows that meet the conditions of a plan that are SQL texts; pyhudi has evaluated the others."""
    by_filter = () if plan.filter is None or plan.filter.sql is None else (plan.filter.sql,)
    for text in (*by_filter, *plan.query.incremental.sql_filters):
        rows = rows.where(expression(text))
    return rows


def _commit_times(times: CommitTimes) -> Column:
    time = sf.col(COMMIT_TIME)
    parts = [time.isNotNull()]
    if times.after is not None:
        parts.append(time > times.after)
    if times.up_to is not None:
        parts.append(time <= times.up_to)
    if times.any_of is not None:
        parts.append(time.isin(*times.any_of))
    if times.none_of:
        parts.append(~time.isin(*times.none_of))
    return _balanced(and_, parts)


def filter_column(row_filter: RowFilter, schema: pa.Schema) -> Column:
    """Convert a filter to a Spark condition.

    Raises:
        QueryError: The filter is a pyarrow expression, which Spark cannot evaluate.
    """
    if row_filter.sql is not None:
        return expression(row_filter.sql)
    if row_filter.expression is not None:
        raise QueryError(
            f"the filter {row_filter.expression} is a pyarrow expression, which Spark cannot evaluate; write it as SQL "
            "text or as [(column, op, value), …]"
        )
    bound = row_filter.bind(schema).anyof
    return _balanced(or_, (_balanced(and_, (_term(term, schema) for term in group)) for group in bound))


def _balanced(combine: Callable[[Column, Column], Column], conditions: Iterable[Column]) -> Column:
    """Return the combination of conditions as a tree of few levels: Spark overflows its stack at thousands, and Spark
    Connect refuses a hundred."""
    level = list(conditions)
    while len(level) > 1:
        pairs = [combine(*level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        level = [*pairs, *level[2 * len(pairs) :]]
    return level[0]


def _term(term: Term, schema: pa.Schema) -> Column:
    if term.value is None:
        column = sf.col(term.column)
        return column.isNull() if term.op in ("=", "==") else column.isNotNull()
    data_type = type_at(resolve_column(term.column, schema), schema)
    condition = _compared(term.column, term.op, term.value, data_type)
    if not pa.types.is_floating(data_type):
        return condition
    # NaN is not included in the statistics of row groups, by which Spark would skip them. An explicit condition on NaN
    # prevents that.
    return condition | sf.isnan(sf.col(term.column)) if term.is_true_of_nan else condition


def _compared(name: str, op: str, value: Any, data_type: pa.DataType) -> Column:
    column = sf.col(name)
    if op in LISTS:
        # Null is neither in a list nor outside of one, even if the list is empty.
        is_listed = column.isin(*(_operand(one, data_type) for one in value)) if value else sf.lit(False)
        return is_listed if op == "in" else ~is_listed & column.isNotNull()
    value = _operand(value, data_type)
    match op:
        case "=" | "==":
            return column == value
        case "!=":
            return column != value
        case "<":
            return column < value
        case "<=":
            return column <= value
        case ">":
            return column > value
        case _:
            return column >= value


def _operand(value: Any, data_type: pa.DataType) -> Any:
    """Convert a value to an operand that Spark compares with a column of a type in the same way as Arrow.

    Integers of more than 64 bits become decimals, and operands of single-precision columns stay single-precision,
    regardless of ``spark.sql.ansi.enabled``. Dates and times become texts, because PySpark interprets those without a
    time zone in the zone of the driver. -0.0 becomes 0.0, which equals it, but not to Spark's reader of Parquet.
    """
    if is_date_or_time(data_type):
        return sf.lit(str(value)).cast(spark_type(data_type))
    if isinstance(value, float):
        return value + 0.0
    if not isinstance(value, int):
        return value
    if not -(1 << 63) <= value < 1 << 63:
        return Decimal(value)
    return sf.lit(value).cast("float") if pa.types.is_float32(data_type) else value
