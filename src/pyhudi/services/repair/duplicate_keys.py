"""Duplicate record keys within a partition: which rows are kept, and which tables are supported."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import BusyError, QueryError, UnsupportedTableError
from pyhudi.index.consistent_hashing import partitions_with_buckets
from pyhudi.read.schema.table_columns import stored_columns
from pyhudi.services.repair.active_writer_check import check_not_in_use
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.pending_file_groups import pending_clustering_groups, pending_compaction_groups
from pyhudi.transaction.conflicts.changed_groups import common_group

DUPLICATES_SCHEMA = pa.schema([("partition", pa.string()), ("file_id", pa.string()), ("keys", pa.int64())])
"""One row per file group with duplicates: the number of its record keys that occur more than once in the partition."""


class DedupeType(Enum):
    """Cause of duplicates, which determines the row to keep; the values are Apache Hudi's names."""

    INSERT = "insert_type"
    """Inserts that were never updated: the row of the last commit is kept. Two rows of one commit are an error."""
    UPDATE = "update_type"
    """All rows were updated together: one of them is kept."""
    UPSERT = "upsert_type"
    """Some rows were updated: one of the most recent ones is kept."""

    @classmethod
    def from_text(cls, text: str) -> DedupeType:
        """Return the type with a name, with or without its suffix.

        Raises:
            QueryError: There is no such type.
        """
        name = text.lower()
        for one in cls:
            if name in (one.value, one.value.removesuffix("_type")):
                return one
        raise QueryError(f"unknown dedupe type {text!r}; there are {', '.join(one.value for one in cls)}")


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Duplicates of a partition, and their removal.

    ``groups`` are the file groups that contain them (`DUPLICATES_SCHEMA`), ``num_keys`` is the number of duplicate
    keys, ``num_surplus`` the number of surplus rows, ``instant`` the write that removed them (None: none).
    """

    partition: str
    groups: pa.Table
    num_keys: int
    num_surplus: int
    instant: str | None = None

    def __repr__(self) -> str:
        if not self.num_keys:
            return f"Deduplication(no duplicates in partition {self.partition!r})"
        done = "not taken out" if self.instant is None else f"removed by {self.instant}"
        return (
            f"Deduplication({self.num_keys:,} keys are in partition {self.partition!r} more than once; "
            f"{self.num_surplus:,} surplus rows in {self.groups.num_rows:,} file groups, {done})"
        )


def check_deduplicable(table: TableSnapshot) -> None:
    """Refuse tables whose duplicates cannot be detected or removed.

    Raises:
        UnsupportedTableError: The table stores no record keys, or has consistent hashing buckets.
    """
    table.config.check_writable()
    if not table.config.populate_meta_fields:
        raise UnsupportedTableError(
            f"the table {table.config.name!r} stores no record keys (hoodie.populate.meta.fields=false), so its "
            "rows have no duplicates"
        )
    if partitions_with_buckets(table.storage):
        raise UnsupportedTableError(
            f"the table {table.config.name!r} has consistent hashing buckets, whose file groups cannot be "
            "replaced individually; write the rows to keep with insert_overwrite_table"
        )
    stored_columns(table, "deduplicate", None)


def refuse_planned(table: TableSnapshot, groups: pa.Table, opts: Options) -> None:
    """Refuse to rewrite file groups (partition, file_id) during other writes or services.

    Raises:
        BusyError: A write or a service is running, or has planned to rewrite one of them.
    """
    check_not_in_use(table.active, opts)
    group_ids = groups.select(["partition", "file_id"])
    for planned, cure in (
        (pending_compaction_groups(table.active), "run_compaction"),
        (pending_clustering_groups(table.active), "run_clustering"),
    ):
        common = common_group(planned, group_ids)
        if common is not None:
            raise BusyError(f"a pending plan is going to rewrite {common}; execute it first: services.{cure}()")
