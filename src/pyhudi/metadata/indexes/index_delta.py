"""Index changes that a writer makes itself: those of indexes with as many records as the table, and of values that
Spark computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyhudi.metadata.disable_metadata import METADATA_FOLDER
from pyhudi.metadata.indexes.expression_index_definition import is_expression
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.metadata.metadata_layout import RECORD_INDEX

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig


@dataclass(frozen=True, slots=True)
class IndexDelta:
    """Changes that the writer has made itself to partitions of the metadata table: their names, and the stats of the
    files that were written for them (`pyhudi.metadata.file_groups.delta_files.GroupFiles`).

    ``late`` does the same for indexes that were built, or begun, meanwhile, and are named to it; while the table's lock
    is held. So does ``taken``, which counts the keys added by the write that others have added meanwhile.
    """

    partitions: frozenset[str] = frozenset()
    stats: Sequence[dict[str, Any]] = field(default_factory=tuple)
    late: Callable[[TableConfig, Collection[str]], IndexDelta | None] | None = None
    taken: Callable[[], int] | None = None

    def and_(self, other: IndexDelta | None) -> IndexDelta:
        """Return the union of both."""
        if other is None:
            return self
        return IndexDelta(
            self.partitions | other.partitions,
            (*self.stats, *other.stats),
            other.late or self.late,
            other.taken or self.taken,
        )


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
