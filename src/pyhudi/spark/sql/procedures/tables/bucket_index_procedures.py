"""Procedure that changes the numbers of buckets of partitions."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from pyhudi.errors import InstantNotFoundError, QueryError
from pyhudi.index.bucket_counts import FIRST_INSTANT, counted_instants, read_counts
from pyhudi.services.rollback import roll_back
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.write.operations.bucket_rescaling import (
    BucketRescaling,
    NewCounts,
    added_counts,
    overwritten_counts,
    rescale_buckets,
)

_ACTIONS = ("show_config", "rollback", "overwrite", "add")


def partition_bucket_index_manager(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the numbers of buckets of partitions (``show_config``), change them by rewriting partitions (``overwrite``,
    ``add``; with ``dry_run``, the default, only tell which ones), or undo such a change (``rollback``).

    Raises:
        QueryError: The call names none of these actions.
    """
    if arguments.flag("show_config"):
        return [("SUCCESS", "SHOW_CONFIG", _configurations(spark, arguments))]
    instant = arguments.text("rollback")
    if instant is not None:
        return [("SUCCESS", "ROLLBACK", _roll_back(spark, arguments, instant))]
    rules = arguments.text("overwrite")
    if rules is not None:
        number = arguments.number("bucket_number")
        default = None if number is None or number == -1 else number
        return [_changed(spark, arguments, overwritten_counts(rules, _rule_type(arguments), default))]
    rules = arguments.text("add")
    if rules is not None:
        return [_changed(spark, arguments, added_counts(rules, _rule_type(arguments)))]
    raise QueryError(f"partition_bucket_index_manager needs one of {', '.join(_ACTIONS)}")


def _rule_type(arguments: Arguments) -> str:
    return str(arguments.text("rule"))


def _configurations(spark: SparkSession, arguments: Arguments) -> str:
    """Return all stored numbers of buckets as JSON, the oldest first, with semicolons between."""
    storage = arguments.client(spark).storage
    stored = (json.loads(read_counts(storage, instant)) for instant in counted_instants(storage))
    return ";".join(json.dumps(configuration) for configuration in stored)


def _roll_back(spark: SparkSession, arguments: Arguments, instant: str) -> str:
    """Undo the change of an instant, which must be the last write.

    Raises:
        InstantNotFoundError: The instant did not change numbers of buckets.
    """
    client, opts = arguments.opened(spark)
    changes = [other for other in counted_instants(client.storage) if other != FIRST_INSTANT]
    if instant not in changes:
        raise InstantNotFoundError(
            f"{instant!r} did not change the numbers of buckets of the table at {client.storage.uri()}; instants that "
            f"did: {', '.join(changes) or 'none'}"
        )
    roll_back(client, opts, SparkFileStatsReader(spark), instant)
    return f"rolled back {instant}"


def _changed(spark: SparkSession, arguments: Arguments, new_counts: NewCounts) -> tuple[str, str, str]:
    """Change the numbers, or tell which partitions would be rewritten; return the row of the result."""
    client, opts = arguments.opened(spark)
    if arguments.flag("dry_run"):
        partitions = BucketRescaling.plan(client, new_counts).partitions
        return "SUCCESS", "DRY_RUN_OVERWRITE", ";".join(f"{path} => {count}" for path, count in partitions.items())
    result = rescale_buckets(spark, client, opts, new_counts)
    return "SUCCESS", "OVERWRITE", f"instant {result.instant}, {result.num_inserts} rows rewritten"


PROCEDURES: dict[str, Procedure] = {"partition_bucket_index_manager": partition_bucket_index_manager}
