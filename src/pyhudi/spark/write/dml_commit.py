"""Commit of an UPDATE, DELETE, MERGE or INSERT … REPLACE WHERE: the files that the statement has read, and known
properties of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import pyarrow as pa
from pyspark.sql import DataFrame

from pyhudi.spark.lookup.key_constraint import KeyConstraint
from pyhudi.transaction.conflicts.serializable_reads import ReadSet


class RowPositions(Enum):
    """Positions that rows have kept from the base files of the table."""

    NONE = auto()
    """They have none."""
    KNOWN = auto()
    """Rows have them or `UNKNOWN_POSITION`, so they are found by their keys. Log blocks record the positions."""
    ALL = auto()
    """All have them, and base files are rewritten by position."""


@dataclass(frozen=True, slots=True)
class RowLocations:
    """Locations that rows have kept from the table: their file groups, and possibly their positions.

    Attributes:
        groups: The file groups (partition, file_id, base_path) that were read, with their base files.
        positions: Positions of rows in these base files.
    """

    groups: pa.Table
    positions: RowPositions


class NewRecords(Enum):
    """Records that a statement adds to partitions, by known properties of their keys."""

    NONE = auto()
    """There are none: each row is a change of a stored row, in its partition."""
    ANY = auto()
    """The table may have their keys, so they are looked up."""
    NEW_KEYS = auto()
    """The table has none of their keys."""
    DISTINCT_NEW_KEYS = auto()
    """The table has none of their keys, and each key occurs once."""
    REPLACING_DELETED = auto()
    """As `DISTINCT_NEW_KEYS`, except for keys of records that the same write deletes in their partitions. The new
    records go to new file groups, so that no file has both."""

    @property
    def have_new_keys(self) -> bool:
        """True if they need not be looked up."""
        return self not in (NewRecords.NONE, NewRecords.ANY)

    @property
    def have_distinct_keys(self) -> bool:
        """True if they need not be compared with each other."""
        return self in (NewRecords.DISTINCT_NEW_KEYS, NewRecords.REPLACING_DELETED)


@dataclass(frozen=True, slots=True)
class ColumnAssignments:
    """Columns that updates of a statement assign.

    Attributes:
        record_key: Columns of the record key may be assigned, so keys have to be compared.
        partition_path: Partition fields may be assigned, so rows may move to another partition, where they are new
            records.
        unassigned: Columns of the table that no update assigns. Rows with positions have null there, and keep the
            stored values.
    """

    record_key: bool = False
    partition_path: bool = False
    unassigned: frozenset[str] = frozenset()


class RowOrigin(Enum):
    """Evaluation of the rows of a statement, which determines whether they are cached and how the write is planned."""

    CACHED = auto()
    """The rows are cached, so evaluating them twice is cheap."""
    SCAN = auto()
    """The rows are those of one scan of the table, without joins and subqueries."""
    QUERY = auto()
    """The rows are those of any query."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Differences of the rows of an UPDATE, DELETE or MERGE from those of other writes (`pyhudi.spark.dml`).

    Attributes:
        locations: Locations of the rows of the table; None: they have only their keys and partition paths.
        new_records: New records among the rows.
        assigned: Columns that updates assign.
        deletes: Some of the rows may be deletes.
        origin: Evaluation of the rows.
        ordered_deletes: Deletes by the operation delete have the ordering values of the rows that they delete.
    """

    locations: RowLocations | None
    new_records: NewRecords
    assigned: ColumnAssignments = ColumnAssignments()
    deletes: bool = True
    origin: RowOrigin = RowOrigin.QUERY
    ordered_deletes: bool = False

    @property
    def located(self) -> bool:
        """True if rows of the table have their file groups."""
        return self.locations is not None

    @property
    def bases(self) -> pa.Table | None:
        """Base files (partition, file_id, base_path) in which rows are found by position; None: they are found by
        key."""
        located = self.locations
        return located.groups if located is not None and located.positions is RowPositions.ALL else None

    @property
    def only_updates(self) -> bool:
        """True if all rows are updates of rows at known positions."""
        return self.bases is not None and self.new_records is NewRecords.NONE and not self.deletes

    @property
    def keeps_keys(self) -> bool:
        """True if all rows are changes of located rows, with the keys and partition paths of these."""
        keys_change = self.assigned.record_key or self.assigned.partition_path
        return self.located and self.new_records is NewRecords.NONE and not keys_change


@dataclass(frozen=True, slots=True)
class DmlCommit:
    """Commit of an UPDATE, DELETE, MERGE or INSERT … REPLACE WHERE.

    Attributes:
        reads: Files that the statement has read.
        changes: Differences from the rows of other writes; None: keys are treated as by the operation.
        key_constraint: Constraint on the keys of the rows.
        ordering_values: Returns the partition paths, columns of record keys, and ordering values of the records of some
            partitions; deletes among checked rows (``key_constraint``) get these values. None: they have none.
        counts_changes: Count the updated, deleted and new rows (`WriteResult.planned_changes`), which the write can if
            there are new records.
    """

    reads: ReadSet
    changes: RowChanges | None = None
    key_constraint: KeyConstraint | None = None
    ordering_values: Callable[[Sequence[str]], DataFrame] | None = None
    counts_changes: bool = False
