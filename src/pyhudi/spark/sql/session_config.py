"""``hoodie.*`` configuration of a session: ``SET hoodie.…``, ``spark.conf.set``."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.spark.sql.passthrough_statements import fetched

_PREFIX = "hoodie."


def session_options(spark: SparkSession) -> dict[str, str]:
    """Return the session's settings that are Apache Hudi's."""
    return {key: value for key, value in fetched(spark, "SET") if key.startswith(_PREFIX)}
