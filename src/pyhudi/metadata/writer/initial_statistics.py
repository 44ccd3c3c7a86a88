"""Readers of a table's files for the initial build of statistics or bloom filters, and the conversion of their results
to base files of the metadata table.

Files are read on threads of this process, or by tasks of an engine, to which `FileRecords` and `InitialFileGroups` are
sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles
from pyhudi.metadata.records.file_group_hash import file_group_index_of
from pyhudi.metadata.records.metadata_keys import bloom_filter_keys
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.writer.file_records import FileRecords
from pyhudi.metadata.writer.file_statistics import BOUNDS
from pyhudi.timeline.commit_metadata import WriteStat

PARTITION = "partition"
FILE_FIELDS = (PARTITION, "name", "path", "kind")
"""Columns of the tables of files."""
FILTERS_TOGETHER = 64
"""Number of bloom filters in memory at a time; one may take about 100 kB."""

Entries = Iterable[tuple[pa.Array, pa.Array]]
"""Batches of keys and values in HFile order."""


@dataclass(frozen=True, slots=True)
class InitialFileGroups:
    """File groups (``ids``) of a partition of the metadata table that gets its first base files."""

    files: GroupFiles
    ids: Sequence[str]

    def write(self, records: RecordChanges) -> list[WriteStat]:
        """Write base files of these records. Return their write stats."""
        parts = records.by_group(len(self.ids))
        return [self.files.write_base(self.ids[n], part) for n, part in sorted(parts.items())]

    def write_sorted(self, number: int, entries: Entries) -> WriteStat | None:
        """Write the base file of one group. Return its write stat; None if there are no entries and thus no file."""
        some = (one for one in entries if len(one[0]))
        first = next(some, None)
        if first is None:
            return None
        return self.files.write_sorted(self.ids[number], chain([first], some))


class FileStatsReader(Protocol):
    """Reads files for an initial build, and writes the resulting records. Files have the columns FILE_FIELDS."""

    def statistics(
        self, records: FileRecords, files: pa.Table, groups: InitialFileGroups | None
    ) -> tuple[list[WriteStat], pa.Table]:
        """Write the records of ``column_stats`` (without ``groups``: none).

        Returns:
            The write stats, and partial results for the partitions of the files: columns PARTITION and BOUNDS, with the
            bounds of some or all files of a partition in each row.
        """

    def blooms(self, records: FileRecords, files: pa.Table, groups: InitialFileGroups) -> list[WriteStat]:
        """Write the records of ``bloom_filters`` of base files. Return the write stats.

        Raises:
            NotFoundError: A file no longer exists.
            FormatError: A file is corrupt, or a file group exceeds the size limit of HFiles.
        """


@dataclass(frozen=True, slots=True)
class LocalFileStatsReader:
    """Reads files on threads of this process. Memory: the bounds of all files; some bloom filters."""

    def statistics(
        self, records: FileRecords, files: pa.Table, groups: InitialFileGroups | None
    ) -> tuple[list[WriteStat], pa.Table]:
        bounds = records.bounds(files)
        stats = [] if groups is None else groups.write(records.column_stats(files, bounds))
        return stats, pa.table([files[PARTITION], bounds], names=[PARTITION, BOUNDS])

    def blooms(self, records: FileRecords, files: pa.Table, groups: InitialFileGroups) -> list[WriteStat]:
        keys = bloom_filter_keys(contiguous(files[PARTITION]), contiguous(files["name"]))
        order = pc.sort_indices(keys.cast(pa.binary())).to_numpy()
        of_group = file_group_index_of(keys, len(groups.ids))[order]
        parts = (files.take(pa.array(order[of_group == n])) for n in range(len(groups.ids)))
        stats = (groups.write_sorted(n, _filters(records, part)) for n, part in enumerate(parts))
        return [stat for stat in stats if stat is not None]


LOCAL = LocalFileStatsReader()


def _filters(records: FileRecords, files: pa.Table) -> Iterator[tuple[pa.Array, pa.Array]]:
    for start in range(0, files.num_rows, FILTERS_TOGETHER):
        filters = records.blooms(files.slice(start, FILTERS_TOGETHER))
        yield filters.keys, filters.values
