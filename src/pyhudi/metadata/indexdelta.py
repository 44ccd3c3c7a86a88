"""What a writer has done by itself for indexes of the metadata table: those with as many records as the table, and
those of values that Spark computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyhudi.metadata.detach import METADATA_FOLDER
from pyhudi.metadata.expressions import is_expression
from pyhudi.metadata.secondary import is_secondary

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig

RECORD_INDEX = "record_index"
"""The record index, which all secondary indexes need."""


@dataclass(frozen=True, slots=True)
class IndexDelta:
    """What the writer has done by itself for partitions of the metadata table that are not maintained there: their
    names, and the stats of the files that were written for them (`pyhudi.metadata.deltas.GroupFiles`).

    ``late`` does the same for indexes that were built, or begun, meanwhile, and are named to it; while the table's lock
    is held.
    """

    partitions: frozenset[str] = frozenset()
    stats: Sequence[dict[str, Any]] = field(default_factory=tuple)
    late: Callable[[TableConfig, Collection[str]], IndexDelta | None] | None = None

    def and_(self, other: IndexDelta | None) -> IndexDelta:
        """Both together."""
        if other is None:
            return self
        return IndexDelta(self.partitions | other.partitions, (*self.stats, *other.stats), other.late or self.late)


def of_indexes_in_use(storage: Storage, config: TableConfig, index: IndexDelta) -> IndexDelta:
    """The delta as of now, when the table's lock is held: without indexes that were dropped since, and maybe built
    anew, which has taken the files along that were written for them; with those that were built since."""
    found, used = index, config.metadata_partitions_kept
    for partition in index.partitions:
        mine = {stat["path"] for stat in index.stats if stat["partitionPath"] == partition}
        if partition not in used or not mine <= _paths(storage, partition):
            left = [stat for stat in found.stats if stat["partitionPath"] != partition]
            found = IndexDelta(found.partitions - {partition}, left, found.late)
    has_keys = RECORD_INDEX in found.partitions
    new = {p for p in used if p == RECORD_INDEX or is_expression(p) or (is_secondary(p) and has_keys)}
    new -= found.partitions
    if new and found.late is not None:
        found = found.and_(found.late(config, new))
    return found


def _paths(storage: Storage, partition: str) -> set[str]:
    """The files of a partition, as write stats have them."""
    paths: list[str] = storage.list(f"{METADATA_FOLDER}/{partition}")["path"].to_pylist()
    return {path.removeprefix(f"{METADATA_FOLDER}/") for path in paths}
