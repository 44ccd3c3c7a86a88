"""Settings of Hive in a Spark session, which syncs to catalogs take."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.hive_metastore.metastore_address import SETTINGS

_PREFIXES = ("", "spark.hadoop.", "spark.")
"""Forms of Hive's settings in a session, in order of precedence: `SET`, of Hadoop, and `spark.hive.…`."""
_PART_LENGTH = "spark.sql.sources.schemaStringLengthThreshold"


def with_hive_settings(spark: SparkSession, opts: Options) -> Options:
    """Return the options of a sync with the session's settings of Hive, and its version, where options do not say."""
    settings: dict[str, object] = {options.META_SYNC_SPARK_VERSION.key: spark.version}
    part_length = spark.conf.get(_PART_LENGTH, None)
    if part_length:
        settings[options.HIVE_SYNC_SCHEMA_STRING_LENGTH.key] = part_length
    for key in SETTINGS:
        values = (spark.conf.get(prefix + key, None) for prefix in _PREFIXES)
        value = next((value for value in values if value), None)
        if value is not None:
            settings[key] = value
    return Options.parse({**settings, **opts})
