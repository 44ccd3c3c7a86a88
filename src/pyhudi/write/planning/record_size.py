"""Average size of a record in base files, estimated from the newest commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import total
from pyhudi.write.planning.small_files import Sizing

_SIZE_HISTORY = 5
"""Number of commits of which the size of records is taken, as in Apache Hudi."""


def write_history(active: ActiveTimeline) -> Iterator[pa.Table]:
    """Yield the write stats (WRITE_STAT_SCHEMA) of the base files of the newest commits, newest first."""
    for instant in list(reversed(list(active.timeline.writes().completed())))[:_SIZE_HISTORY]:
        stats = active.commit_metadata(instant).stats
        yield stats.filter(pc.is_null(stats["logFiles"]))


def average_record_size(history: Iterable[pa.Table], sizing: Sizing) -> int:
    """Return the average bytes per record in the newest commit that is large enough for an estimate.

    ``history`` yields write stats (WRITE_STAT_SCHEMA), newest commit first; it is read only as far as needed.
    """
    enough = sizing.estimation_threshold * sizing.small_file_limit
    for stats in history:
        size = total(stats, "totalWriteBytes")
        rows = total(stats, "numWrites")
        if size > enough and rows > 0:
            return -(-size // rows)
    return sizing.default_record_size
