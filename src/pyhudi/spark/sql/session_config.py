"""``hoodie.*`` configuration of a session: ``SET hoodie.…``, ``spark.conf.set``, ``--conf spark.hoodie.…``."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from pyhudi.config import options
from pyhudi.config.option_registry import canonical
from pyhudi.spark.sql.spark_statements import REDACTED, collect_statement

SNAPSHOT_OPTIONS = frozenset(
    option.key
    for option in (
        options.QUERY_TYPE,
        options.INCREMENTAL_FORMAT,
        options.AS_OF_INSTANT,
        options.BEGIN_INSTANTTIME,
        options.END_INSTANTTIME,
    )
)
"""Options of queries that choose the rows of a table."""
_PREFIX = "hoodie."
_SPARK_PREFIX = "spark."
"""Spark takes no other settings on its command line and from its defaults file."""


def session_options(spark: SparkSession) -> dict[str, str]:
    """Return the session's settings of Apache Hudi. ``spark.hoodie.x`` is an alias of ``hoodie.x``, which takes
    precedence."""
    settings = _settings(spark)
    return _prefixed(settings) | {key: value for key, value in settings.items() if key.startswith(_PREFIX)}


def stream_options(spark: SparkSession) -> dict[str, str]:
    """Return the session's settings of Apache Hudi that apply to streams. Settings that select the rows of queries do
    not, as in Apache Hudi, where streams take them from their own options only."""
    return {key: value for key, value in session_options(spark).items() if canonical(key) not in SNAPSHOT_OPTIONS}


def _settings(spark: SparkSession) -> dict[str, str]:
    """Return the session's settings, and of Apache Hudi's also the values that SET does not show."""
    settings = dict(collect_statement(spark, "SET"))
    starts = (_PREFIX, _SPARK_PREFIX + _PREFIX)
    redacted = [key for key, value in settings.items() if value == REDACTED and key.startswith(starts)]
    return settings | {key: str(spark.conf.get(key)) for key in redacted}


def _prefixed(settings: Mapping[str, str]) -> dict[str, str]:
    start = _SPARK_PREFIX + _PREFIX
    return {key.removeprefix(_SPARK_PREFIX): value for key, value in settings.items() if key.startswith(start)}
