"""Conditions of the errors of statements, for which a script may have handlers."""

from __future__ import annotations

import re

from pyspark.errors import ParseException, PySparkException

from pyhudi.errors import HudiError
from pyhudi.sql.scripts.script_conditions import ErrorCondition
from pyhudi.sql.scripts.script_nodes import Node, Run

_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\].*?SQLSTATE: (?P<sqlstate>[0-9A-Z]{5})", re.DOTALL)
"""An error of Spark as text."""


def handled_condition(node: Node, error: Exception) -> ErrorCondition | None:
    """Return the condition of an error of a part of a script; None for errors that have no handlers."""
    return None if _is_invalid(node, error) else _condition_of(error)


def _is_invalid(node: Node, error: Exception) -> bool:
    """Return True for an error of the script's own syntax, which Spark would have found before it runs a script."""
    is_text = isinstance(node, Run) and node.text[:7].upper() == "EXECUTE"
    return isinstance(error, ParseException) and not is_text


def _condition_of(error: Exception) -> ErrorCondition | None:
    """Return the condition of an error of a statement; None for others."""
    if isinstance(error, PySparkException):
        name = getattr(error, "getCondition", error.getErrorClass)()
        sqlstate = error.getSqlState()
        if name and sqlstate:
            return ErrorCondition(name.upper(), sqlstate.upper())
    match = _CONDITION.search(str(error))  # PySpark does not translate all errors of Spark
    if match:
        return ErrorCondition(match["name"], match["sqlstate"])
    return ErrorCondition() if isinstance(error, HudiError | PySparkException) else None
