"""Procedure that drops expired partitions."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.config import options
from pyhudi.errors import OptionWithoutEffectWarning, warn
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.write.operations.partition_expiry import delete_expired_partitions

_TTL = {"ttl_policy": options.TTL_STRATEGY.key, "retain_days": options.TTL_DAYS.key}


def run_ttl(spark: SparkSession, arguments: Arguments) -> Rows:
    """Drop the expired partitions; without a number of days none expires.

    Warns OptionWithoutEffectWarning if no number of days is set.
    """
    client, opts = arguments.opened(spark, arguments.as_options(_TTL))
    days = opts.get_typed(options.TTL_DAYS)
    if days <= 0:
        warn(
            f"run_ttl drops nothing: {options.TTL_DAYS.key}={days} lets no partition expire; pass retain_days => 30, "
            "for example, or SET the option",
            OptionWithoutEffectWarning,
        )
        return []
    return [(path,) for path in delete_expired_partitions(spark, client, opts).partitions]


PROCEDURES: dict[str, Procedure] = {"run_ttl": run_ttl}
