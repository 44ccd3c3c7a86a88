"""Variables in the texts of statements (``${name}``), which Spark replaces before it parses a statement."""

from __future__ import annotations

import re
from functools import partial

from pyspark.sql import SparkSession

from pyhudi.errors import SqlSyntaxError

_ENABLED = "spark.sql.variable.substitute"
_REFERENCE = re.compile(r"\$\{(?:(\w+?):)?(\S+?)\}")
_OF_SESSION = frozenset({None, "spark", "sparkconf", "hivevar", "hiveconf"})
"""Prefixes of the session's settings. Those of the environment and of Java (``${env:…}``) are for Spark."""


def with_variables(spark: SparkSession, text: str) -> str:
    """Return the text of a statement with the values of the session's settings in place of its variables, those that
    are not set being empty. Their values may have variables, too.

    Raises:
        SqlSyntaxError: A variable refers to itself.
    """
    if "${" not in text or str(spark.conf.get(_ENABLED, "true")).lower() == "false":
        return text
    return _substituted(spark, text, ())


def _substituted(spark: SparkSession, text: str, within: tuple[str, ...]) -> str:
    return _REFERENCE.sub(partial(_value, spark, within), text)


def _value(spark: SparkSession, within: tuple[str, ...], reference: re.Match[str]) -> str:
    prefix, name = reference.groups()
    if prefix not in _OF_SESSION:
        return reference[0]
    if name in within:
        raise SqlSyntaxError(f"the variable ${{{name}}} refers to itself: {' → '.join((*within, name))}")
    return _substituted(spark, str(spark.conf.get(name, "")), (*within, name))
