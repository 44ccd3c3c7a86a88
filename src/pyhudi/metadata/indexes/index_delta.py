"""Index changes written by the writer itself: those of indexes with one record per row of the table, and of values
computed by Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pyhudi.format.file_names import file_name_of
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.metadata.metadata_layout import RECORD_INDEX, names_by_partition
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig


@dataclass(frozen=True, slots=True)
class IndexDelta:
    """Changes to partitions of the metadata table that the writer has written itself: their names, and the write stats
    of their files (`pyhudi.metadata.file_groups.delta_commit_writer.GroupFiles`).

    ``catch_up`` computes the changes, under the lock of the table, for the indexes passed to it, which were built or
    begun in the meantime. ``find_key_conflict``, also under the lock, says how the keys of the write conflict with what
    other writers have added in the meantime; None: they do not.
    """

    partitions: frozenset[str] = frozenset()
    stats: Sequence[dict[str, Any]] = field(default_factory=tuple)
    catch_up: Callable[[TableConfig, Collection[str]], IndexDelta | None] | None = None
    find_key_conflict: Callable[[], str | None] | None = None

    def merge(self, other: IndexDelta | None) -> IndexDelta:
        """Return the union of both."""
        if other is None:
            return self
        return IndexDelta(
            self.partitions | other.partitions,
            (*self.stats, *other.stats),
            other.catch_up or self.catch_up,
            other.find_key_conflict or self.find_key_conflict,
        )


def delta_of_current_indexes(
    storage: Storage, config: TableConfig, index: IndexDelta
) -> tuple[IndexDelta, dict[str, pa.Array]]:
    """Return the current delta, under the lock of the table, and the names of the files in its partitions, except those
    that had to catch up.

    It omits indexes that were dropped in the meantime (and possibly rebuilt, which has deleted the files written for
    them), and includes those that were built in the meantime.
    """
    changes, used = index, config.metadata_partitions_kept
    listed = names_by_partition(storage, sorted(index.partitions.intersection(used)))
    for partition in index.partitions:
        written_names = {file_name_of(stat["path"]) for stat in index.stats if stat["partitionPath"] == partition}
        if partition not in listed or not written_names.issubset(
            listed[partition].to_pylist() if written_names else ()
        ):
            listed.pop(partition, None)
            left = [stat for stat in changes.stats if stat["partitionPath"] != partition]
            changes = IndexDelta(changes.partitions - {partition}, left, changes.catch_up)
    has_keys = RECORD_INDEX in changes.partitions
    new = {p for p in used if p == RECORD_INDEX or is_expression(p) or (is_secondary(p) and has_keys)}
    new -= changes.partitions
    if new and changes.catch_up is not None:
        changes = changes.merge(changes.catch_up(config, new))
    return changes, listed
