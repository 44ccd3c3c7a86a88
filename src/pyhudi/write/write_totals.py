"""Counts of written files, for results of writes and of table services."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.timeline.commit_metadata import total


class WriteTotals:
    """Base class of results with write statistics. ``stats`` has one row per written file (WRITE_STAT_SCHEMA)."""

    __slots__ = ()
    stats: pa.Table

    @property
    def num_files(self) -> int:
        """Number of files written."""
        return int(self.stats.num_rows)

    @property
    def num_rows(self) -> int:
        """Number of records in the written files, including unchanged ones."""
        return total(self.stats, "numWrites")

    @property
    def bytes_written(self) -> int:
        """Size of the written files, in bytes."""
        return total(self.stats, "totalWriteBytes")
