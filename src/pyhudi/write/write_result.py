"""Results of writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, WRITE_STAT_SCHEMA, CommitMetadata, total
from pyhudi.transaction.commit_outcome import Committed


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


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """Numbers of the rows that a statement changes, counted while its write was planned.

    Attributes:
        rows: All of them.
        deleted: Rows to delete.
        inserted: New rows; None: only the written files tell them from updates.
    """

    rows: int
    deleted: int = 0
    inserted: int | None = None


@dataclass(frozen=True, slots=True)
class WriteResult(WriteTotals):
    """Result of one write.

    Attributes:
        uri: URI of the table.
        operation: Operation as in commit metadata.
        instant: Requested time; None if nothing was committed: a write with save mode ``ignore`` to an existing table,
            or an empty one that does not commit.
        completion: Completion time; None in tables of version 6.
        created_table: True if the write created the table.
        stats: One row per written file (WRITE_STAT_SCHEMA).
        replaced: File groups that the write replaced (REPLACED_SCHEMA).
        warnings: Failures after the commit, which remains valid.
        millis: Milliseconds by phase: ``write``, ``commit``, ``metadata_services``.
        retries: Number of retries after conflicts.
        planned_changes: Numbers of changed rows, as counted before the write; None: they were not counted.
    """

    uri: str
    operation: str
    instant: str | None = None
    completion: str | None = None
    created_table: bool = False
    stats: pa.Table = field(default_factory=WRITE_STAT_SCHEMA.empty_table)
    replaced: pa.Table = field(default_factory=REPLACED_SCHEMA.empty_table)
    warnings: tuple[str, ...] = ()
    millis: Mapping[str, int] = field(default_factory=dict)
    retries: int = 0
    planned_changes: ChangeCounts | None = None

    @property
    def num_inserts(self) -> int:
        """Number of records that were new to their file groups."""
        return total(self.stats, "numInserts")

    @property
    def num_updates(self) -> int:
        """Number of records that were changed."""
        return total(self.stats, "numUpdateWrites")

    @property
    def num_deletes(self) -> int:
        """Number of records that were deleted individually (without those of replaced file groups)."""
        return total(self.stats, "numDeletes")

    def with_warning(self, text: str | None) -> WriteResult:
        """Return the result with one more warning.

        Args:
            text: The warning; None: there is none.

        Returns:
            The result.
        """
        return self if text is None else replace(self, warnings=(*self.warnings, text))

    def __repr__(self) -> str:
        if self.instant is None:
            return f"WriteResult({self.operation}: nothing committed)"
        replaced = self.replaced.num_rows - self.replaced["file_id"].null_count
        replacement = f"; {replaced:,} file groups replaced" if self.replaced.num_rows else ""
        return (
            f"WriteResult({self.operation} {self.instant}: {self.num_inserts:,} inserts, {self.num_updates:,} updates, "
            f"{self.num_deletes:,} deletes; {self.num_files:,} files, {self.bytes_written:,} bytes{replacement})"
        )


def result_of_commit(
    uri: str, done: Committed, metadata: CommitMetadata, *, created_table: bool = False
) -> WriteResult:
    """Return the result of a committed write.

    Args:
        uri: URI of the table.
        done: The commit.
        metadata: Its metadata.
        created_table: The write created the table.
    """
    return WriteResult(
        uri,
        metadata.operation,
        done.instant.requested,
        done.completion,
        created_table,
        metadata.stats.select(WRITE_STAT_SCHEMA.names),
        REPLACED_SCHEMA.empty_table() if metadata.replaced is None else metadata.replaced,
        done.warnings,
        done.millis,
    )


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """Result of an UPDATE, DELETE or MERGE.

    Attributes:
        write: The commit.
        rows_matched: Rows of the table that matched a clause or the condition. A MERGE that runs as an upsert also
            counts rows that are deleted in log files.
        rows_updated: Rows that got new values; if records are ordered by event time, including those whose stored
            version is newer and was kept.
        rows_inserted: New rows.
        rows_deleted: Deleted rows.
        retries: Number of retries after conflicts.
    """

    write: WriteResult
    rows_matched: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
    rows_deleted: int = 0
    retries: int = 0

    @property
    def instant(self) -> str | None:
        """Requested time of the commit; None if there was nothing to do."""
        return self.write.instant

    @property
    def num_files(self) -> int:
        """Files written."""
        return self.write.num_files

    def __repr__(self) -> str:
        return (
            f"ChangeResult({self.write.operation} {self.instant}: {self.rows_matched:,} matched, {self.rows_updated:,} "
            f"updated, {self.rows_inserted:,} inserted, {self.rows_deleted:,} deleted; {self.num_files:,} files)"
        )
