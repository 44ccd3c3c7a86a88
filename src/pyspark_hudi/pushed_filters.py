"""Filters that Spark passes to a Python data source (``pyspark.sql.datasource.Filter``), converted to conditions of a
scan."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

_COMPARISONS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "in",
}
_CERTAIN = (bool, int, str, dt.date, decimal.Decimal)
"""Types of values with the same meaning in Spark and in pyhudi. Times depend on the session's time zone, and
floating-point numbers on NaN; only Spark evaluates other filters."""


def term_of(condition: Any) -> tuple[str, str, Any] | None:
    """Return the ``(column, op, value)`` of a scan's filter; None if there is no exact one."""
    op = _COMPARISONS.get(type(condition).__name__)
    if op is None or len(condition.attribute) != 1 or "." in condition.attribute[0]:
        return None
    values = condition.value if op == "in" else (condition.value,)
    if not values or not all(isinstance(value, _CERTAIN) and not isinstance(value, dt.datetime) for value in values):
        return None
    return condition.attribute[0], op, list(values) if op == "in" else values[0]
