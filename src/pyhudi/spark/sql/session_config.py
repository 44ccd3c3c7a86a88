"""``hoodie.*`` configuration of a session: ``SET hoodie.…``, ``spark.conf.set``, ``--conf spark.hoodie.…``."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from pyhudi.spark.sql.passthrough_statements import REDACTED, fetched

_PREFIX = "hoodie."
_SPARK_PREFIX = "spark."
"""Spark takes no other settings on its command line and from its defaults file."""


def session_options(spark: SparkSession) -> dict[str, str]:
    """Return the session's settings that are Apache Hudi's. ``spark.hoodie.x`` means ``hoodie.x``, which wins."""
    settings = _settings(spark)
    return _prefixed(settings) | {key: value for key, value in settings.items() if key.startswith(_PREFIX)}


def _settings(spark: SparkSession) -> dict[str, str]:
    """Return the session's settings, and of Apache Hudi's also the values that SET does not show."""
    settings = dict(fetched(spark, "SET"))
    starts = (_PREFIX, _SPARK_PREFIX + _PREFIX)
    redacted = [key for key, value in settings.items() if value == REDACTED and key.startswith(starts)]
    return settings | {key: str(spark.conf.get(key)) for key in redacted}


def _prefixed(settings: Mapping[str, str]) -> dict[str, str]:
    start = _SPARK_PREFIX + _PREFIX
    return {key.removeprefix(_SPARK_PREFIX): value for key, value in settings.items() if key.startswith(start)}
