"""Totals of commits, computed from their write statistics."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata, total
from pyhudi.timeline.instant import Instant

_NO_COMMIT = "null"
"""The previous commit of a new file group."""
FILE_COLUMNS = [
    "partitionPath",
    "fileId",
    "prevCommit",
    "numWrites",
    "numInserts",
    "numDeletes",
    "numUpdateWrites",
    "totalWriteErrors",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "totalLogRecords",
    "totalUpdatedRecordsCompacted",
    "totalWriteBytes",
]
"""Write statistics that listings of files show."""
_TOTALS = ("numWrites", "numUpdateWrites", "totalWriteErrors")


def completed_writes(active: ActiveTimeline) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Yield completed writes of the active timeline, newest first, with their metadata."""
    for instant in reversed(list(active.timeline.completed().writes())):
        yield instant, active.commit_metadata(instant)


def creates_file_group(stats: pa.Table) -> pa.ChunkedArray:
    """Return a mask of the files that are the first of their file groups."""
    return pc.equal(pc.fill_null(stats["prevCommit"], _NO_COMMIT), _NO_COMMIT)


def commit_totals(stats: pa.Table) -> list[int]:
    """Return bytes, added files, updated files, partitions, records, updated records and errors of a commit."""
    added = pc.sum(creates_file_group(stats)).as_py() or 0
    partitions = len(pc.unique(stats["partitionPath"]))
    sums = [total(stats, name) for name in _TOTALS]
    return [total(stats, "totalWriteBytes"), added, stats.num_rows - added, partitions, *sums]
