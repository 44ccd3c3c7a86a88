"""Procedures that show the sizes of written files, and write amplification."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.errors import QueryError
from pyhudi.read.inspection.write_statistics import file_sizes
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.procedures.timeline.commit_statistics import completed_writes
from pyhudi.timeline.commit_metadata import total
from pyhudi.timeline.instant import Action


def stats_file_sizes(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show how large the files of each write are, and of all; ``partition_path``: only those in these partitions.

    Raises:
        QueryError: No write has files in such a partition.
    """
    pattern = arguments.text("partition_path") or None
    sizes = file_sizes(arguments.client(spark).active_timeline(), pattern)
    if pattern is not None and not sizes.num_rows:
        raise QueryError(
            f"partition_path => {pattern!r}: no write has files in such a partition; * stands for any part of the name "
            "of one folder, as in 2024/*"
        )
    return arguments.limited(zip(*(column.to_pylist() for column in sizes.columns), strict=True))


def stats_wa(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show how many records each commit has written for each that it changed, and all of them together."""
    active = arguments.client(spark).active_timeline()
    rows, changed, written = [], 0, 0
    for instant, metadata in reversed(
        [write for write in completed_writes(active) if write[0].action == Action.COMMIT]
    ):
        counts = total(metadata.stats, "numUpdateWrites"), total(metadata.stats, "numWrites")
        rows.append((instant.requested, *counts, _factor(*counts)))
        changed, written = changed + counts[0], written + counts[1]
    return [*arguments.limited(rows), ("Total", changed, written, _factor(changed, written))]


def _factor(changed: int, written: int) -> str:
    return f"{written / changed:.2f}" if changed else "0"


PROCEDURES: dict[str, Procedure] = {"stats_file_sizes": stats_file_sizes, "stats_wa": stats_wa}
