"""What a write did."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from pyhudi.timeline.metadata import REPLACED_SCHEMA, WRITE_STAT_SCHEMA, total


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The outcome of one write.

    ``operation`` is the operation as commit metadata names it, ``instant`` the write's requested time and
    ``completion`` its completion time (None in tables of version 6). ``instant`` is None when nothing was committed:
    a write with save mode ``ignore`` to a table that exists, or an empty one that was told not to commit.
    ``stats`` has one row per written file (WRITE_STAT_SCHEMA), ``replaced`` the file groups that went out of view.
    """

    uri: str
    operation: str
    instant: str | None = None
    completion: str | None = None
    created_table: bool = False
    stats: pa.Table = field(default_factory=WRITE_STAT_SCHEMA.empty_table)
    replaced: pa.Table = field(default_factory=REPLACED_SCHEMA.empty_table)

    @property
    def num_files(self) -> int:
        """Files written."""
        return int(self.stats.num_rows)

    @property
    def num_inserts(self) -> int:
        """Records that were new to their file groups."""
        return total(self.stats, "numInserts")

    @property
    def num_updates(self) -> int:
        """Records that were changed."""
        return total(self.stats, "numUpdateWrites")

    @property
    def num_deletes(self) -> int:
        """Records that were deleted one by one (those of replaced file groups are not counted)."""
        return total(self.stats, "numDeletes")

    @property
    def num_rows(self) -> int:
        """Records in the written files, unchanged ones included."""
        return total(self.stats, "numWrites")

    @property
    def bytes_written(self) -> int:
        """Bytes of the written files."""
        return total(self.stats, "totalWriteBytes")

    def __repr__(self) -> str:
        if self.instant is None:
            return f"WriteResult({self.operation}: nothing committed)"
        return (
            f"WriteResult({self.operation} {self.instant}: {self.num_inserts:,} inserts, {self.num_updates:,} updates, "
            f"{self.num_deletes:,} deletes; {self.num_files:,} files, {self.bytes_written:,} bytes)"
        )
