"""Commit of an UPDATE, DELETE or MERGE: the files that the statement has read, and the additional columns of its
rows."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.spark.lookup.key_constraint import KeyConstraint
from pyhudi.transaction.conflicts.serializable_reads import ReadSet


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Differences of the rows of an UPDATE, DELETE or MERGE from those of other writes (`pyhudi.spark.dml`).

    Attributes:
        located: Rows of the table have their file group.
        keys_assigned: Columns of the record key may be assigned, so keys have to be compared.
        partition_assigned: Partition fields may be assigned, so rows may move to another partition.
        new_keys: The keys of new records are known not to be in the table.
        distinct_keys: These keys are known to be unique, too.
        adds: There may be new records.
        bases: Base files (partition, file_id, base_path) to which the positions of rows refer; None: rows have no
            positions.
        cached: The rows are cached, so evaluating them twice is cheap.
        scanned: The rows are those of one scan of the table, without joins and subqueries.
        deletes: Some of the rows may be deletes.
        unassigned: Columns of the table that no update assigns. Rows with positions have null there, and keep the
            stored values.
        replaces_deleted: New records have keys of records that the same write deletes in their partitions. They go to
            new file groups, where no file has both.
    """

    located: bool
    keys_assigned: bool = False
    partition_assigned: bool = False
    new_keys: bool = False
    distinct_keys: bool = False
    adds: bool = True
    bases: pa.Table | None = None
    cached: bool = False
    scanned: bool = False
    deletes: bool = True
    unassigned: frozenset[str] = frozenset()
    replaces_deleted: bool = False

    @property
    def only_updates(self) -> bool:
        """True if all rows are updates of rows at known positions."""
        return self.bases is not None and not (self.adds or self.deletes or self.partition_assigned)


@dataclass(slots=True)
class ChangeCounts:
    """Numbers of the updated, deleted and new rows of the last plan of a statement."""

    updated: int = 0
    deleted: int = 0
    inserted: int = 0


@dataclass(frozen=True, slots=True)
class DmlCommit:
    """Commit of an UPDATE, DELETE or MERGE.

    Attributes:
        reads: Files that the statement has read.
        changes: Differences from the rows of other writes; None: keys are looked up as in an upsert.
        key_constraint: Constraint on the keys of the rows.
        counts: Where the numbers of rows are put, if the write counts them (`RowChanges.adds`); None: not needed.
    """

    reads: ReadSet
    changes: RowChanges | None = None
    key_constraint: KeyConstraint | None = None
    counts: ChangeCounts | None = None
