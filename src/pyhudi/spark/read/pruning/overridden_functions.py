"""Detection of Spark functions that a session has overridden, so that indexes on these functions do not apply."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyhudi.metadata.indexes.expression_index_definition import FUNCTIONS, is_expression
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.sql_operands import ALIASES
from pyhudi.table.config.table_config import TableConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_OWN = "org.apache.spark.sql.catalyst."
"""Package of Spark's own functions."""
_SPARK_NAMES = {"day": "dayofmonth"}


def overridden_functions(spark: SparkSession, functions: Iterable[str]) -> list[str]:
    """Return the functions of expression indexes (`pyhudi.metadata.indexes.expression_index_definition.FUNCTIONS`) that
    the session overrides: a temporary function hides Spark's function of the same name."""
    names = sorted({_SPARK_NAMES.get(name, name) for name in functions} - {"identity"})
    return [name for name in names if not _is_own(spark, name)]


def overridden_in_filter(spark: SparkSession, config: TableConfig, row_filter: RowFilter | None) -> tuple[str, ...]:
    """Return the functions in an SQL filter that expression indexes may be built on and that the session overrides.
    Spark is queried only if the table has such indexes."""
    if row_filter is None or row_filter.sql is None or not any(map(is_expression, config.metadata_partitions)):
        return ()
    called = {name.lower() for name in re.findall(r"(\w+)`?\s*\(", row_filter.sql)}
    return tuple(name for name in sorted(called & {*FUNCTIONS, *ALIASES}) if not _is_own(spark, name))


def _is_own(spark: SparkSession, name: str) -> bool:
    return bool(spark.catalog.getFunction(name).className.startswith(_OWN))
