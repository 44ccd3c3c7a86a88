"""Time zones in the settings of the timestamp key generator."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.errors import ConfigError
from pyhudi.keygen.key_spec import KeySpec

_OFFSET = re.compile(r"[+-]\d\d:\d\d|Z")
_KEYS = (options.TIMESTAMP_TIMEZONE, options.TIMESTAMP_INPUT_TIMEZONE, options.TIMESTAMP_OUTPUT_TIMEZONE)


def check_time_zones(spark: SparkSession, spec: KeySpec) -> None:
    """Check the time zones of the timestamp key generator. Runs a small Spark job for those that Python does not know.

    Raises:
        ConfigError: Java does not know a zone. Apache Hudi takes it for UTC without a word (1.2.0).
    """
    configured = () if spec.timestamp is None else (spec.timestamp.input_zone, spec.timestamp.output_zone)
    for zone in filter(None, configured):
        if not (_OFFSET.fullmatch(zone) or _is_known_to_python(zone) or _is_known_to_java(spark, zone)):
            raise ConfigError(
                f"{zone!r} in {' or '.join(option.key for option in _KEYS)} is no time zone of Java, and so UTC in "
                "Apache Hudi; write UTC, a name such as Europe/Oslo, or an offset such as GMT+05:30"
            )


def _is_known_to_python(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _is_known_to_java(spark: SparkSession, zone: str) -> bool:
    """Return True if Java knows a zone; others are GMT to it."""
    found = F.java_method(F.lit("java.util.TimeZone"), F.lit("getTimeZone"), F.lit(zone))
    row = spark.range(1).select(found.contains('id="GMT"')).first()
    return row is not None and not row[0]
