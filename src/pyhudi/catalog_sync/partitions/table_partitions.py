"""Partitions of a table: all of them, or those that commits changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.read.selection.table_files import TableFiles
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.lazy_property import lazy_property
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class ChangedPartitions:
    """Paths of partitions that commits changed.

    Attributes:
        present: Those that the table has.
        gone: Those that it has no longer.
    """

    present: tuple[str, ...]
    gone: tuple[str, ...] = ()


class TablePartitions:
    """Partitions of a table at one point in time. Several entries are synced with one listing.

    Args:
        table: The table.
        opts: Options of the metadata table.
    """

    def __init__(self, table: TableSnapshot, opts: Options) -> None:
        self._table = table
        in_metadata = opts.get_typed(options.META_SYNC_METADATA_FILE_LISTING)
        self._opts = opts if in_metadata is None else opts.merged({options.METADATA_ENABLE.key: in_metadata})
        self._changed: dict[tuple[Instant, ...], ChangedPartitions] = {}

    @lazy_property
    def all(self) -> list[str]:
        """Paths of the partitions that have rows or had them deleted one by one: those with file groups that no later
        write replaced."""
        return self._with_files(None)

    def changed(self, commits: Sequence[Instant]) -> ChangedPartitions:
        """Return the partitions that some commits of the active timeline wrote or replaced."""
        key = tuple(commits)
        if key not in self._changed:
            self._changed[key] = self._find_changed(key)
        return self._changed[key]

    def _find_changed(self, commits: Sequence[Instant]) -> ChangedPartitions:
        written: set[str] = set()
        replaced: set[str] = set()
        for metadata in concurrent_map(self._table.active.commit_metadata, commits):
            written |= set(pc.unique(metadata.stats["partitionPath"]).to_pylist())
            if metadata.replaced is not None:
                replaced |= set(pc.unique(metadata.replaced["partition"]).to_pylist())
        if not replaced:
            return ChangedPartitions(tuple(sorted(written)))
        kept = set(self._with_files(sorted(replaced)))
        return ChangedPartitions(tuple(sorted((written - replaced) | kept)), tuple(sorted(replaced - kept)))

    def _with_files(self, partitions: list[str] | None) -> list[str]:
        files = TableFiles(self._table, self._opts, may_reload=False)
        view = FileSystemView.load(self._table, partitions=partitions, lister=files.list)
        found = set(pc.unique(view.latest_slices()["partition"]).to_pylist())
        return sorted(found if partitions is None else found & set(partitions))
