"""Record keys that a partition has more than once: which rows stay, and which tables can be mended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import BusyError, QueryError, UnsupportedTableError
from pyhudi.index.consistent_hashing import known_partitions
from pyhudi.services.compaction.compaction_job import stored_columns
from pyhudi.services.repair.table_use import refuse_in_use
from pyhudi.transaction.conflicts.conflict_resolution import (
    common_group,
    pending_clustering_groups,
    pending_compaction_groups,
)

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.table.pinned_table import PinnedTable

DUPLICATES_SCHEMA = pa.schema([("partition", pa.string()), ("file_id", pa.string()), ("keys", pa.int64())])
"""One row for each file group with duplicates: how many record keys it has that the partition has more than once."""


class DedupeType(Enum):
    """How duplicates came about, which tells the row that stays; the values are Apache Hudi's names."""

    INSERT = "insert_type"
    """By inserts that were never updated: the row of the last commit stays. Two of one commit are an error."""
    UPDATE = "update_type"
    """All were updated, together: one of them stays."""
    UPSERT = "upsert_type"
    """Some were updated: one of those that were written last stays."""

    @classmethod
    def of(cls, text: str) -> DedupeType:
        """The type of a name, with or without its ending.

        Raises:
            QueryError: There is none of that name.
        """
        found = text.lower()
        for one in cls:
            if found in (one.value, one.value.removesuffix("_type")):
                return one
        raise QueryError(f"there is no dedupe type {text!r}; there are {', '.join(one.value for one in cls)}")


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Duplicates of a partition, and what was done about them.

    ``groups`` are the file groups that have them (`DUPLICATES_SCHEMA`), ``num_keys`` the keys that are there more than
    once, ``num_surplus`` the rows that are too many, ``instant`` the write that took them out (None: there was none).
    """

    partition: str
    groups: pa.Table = field(default_factory=DUPLICATES_SCHEMA.empty_table)
    num_keys: int = 0
    num_surplus: int = 0
    instant: str | None = None

    def __repr__(self) -> str:
        if not self.num_keys:
            return f"Deduplication(no duplicates in partition {self.partition!r})"
        done = "not taken out" if self.instant is None else f"taken out by {self.instant}"
        return (
            f"Deduplication({self.num_keys:,} keys are in partition {self.partition!r} more than once; "
            f"{self.num_surplus:,} surplus rows in {self.groups.num_rows:,} file groups, {done})"
        )


def check_deduplicable(table: PinnedTable) -> None:
    """Refuse tables whose duplicates cannot be told or taken out.

    Raises:
        UnsupportedTableError: the table keeps no record keys, or has buckets of consistent hashing.
    """
    table.config.check_writable()
    if not table.config.populate_meta_fields:
        raise UnsupportedTableError(
            f"the table {table.config.name!r} keeps no record keys (hoodie.populate.meta.fields=false), so its rows "
            "have no duplicates"
        )
    if known_partitions(table.storage):
        raise UnsupportedTableError(
            f"the table {table.config.name!r} has buckets of consistent hashing, whose file groups are not replaced "
            "one by one; write the rows that are to stay by insert_overwrite_table"
        )
    stored_columns(table, "deduplicate")


def refuse_planned(table: PinnedTable, groups: pa.Table, opts: Options) -> None:
    """Refuse to rewrite file groups (partition, file_id) while others are at work.

    Raises:
        BusyError: a write or a service is alive, or has planned to rewrite one of them.
    """
    refuse_in_use(table.active, opts)
    mine = groups.select(["partition", "file_id"])
    for planned, cure in (
        (pending_compaction_groups(table.active), "run_compaction"),
        (pending_clustering_groups(table.active), "run_clustering"),
    ):
        both = common_group(planned, mine)
        if both is not None:
            raise BusyError(f"a pending plan is going to rewrite {both}; carry it out first: services.{cure}()")
