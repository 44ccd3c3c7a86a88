"""Procedure of archival."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.config import options
from pyhudi.services.archival.archival_runner import archive_table
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows

_ARCHIVAL = {
    "min_commits": options.KEEP_MIN_COMMITS.key,
    "max_commits": options.KEEP_MAX_COMMITS.key,
    "retain_commits": options.CLEAN_COMMITS_RETAINED.key,
    "enable_metadata": options.METADATA_ENABLE.key,
}


def archive_commits(spark: SparkSession, arguments: Arguments) -> Rows:
    """Move old instants into the history, if there are more commits than ``max_commits``."""
    client, opts = arguments.opened(spark, arguments.as_options(_ARCHIVAL))
    archive_table(client, opts, SparkFileStatsReader(spark), only_if_due=True)
    return [(0,)]


PROCEDURES: dict[str, Procedure] = {"archive_commits": archive_commits}
