"""Compaction of the metadata table as seen by its tasks: created once, sent to every task, immutable."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pyhudi.merge.logs.valid_log_blocks import BlockView
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles, compaction_tokens
from pyhudi.metadata.file_groups.hfile_sources import NO_CACHE, MetadataSlice, slice_sources
from pyhudi.metadata.file_groups.sorted_merge import merge_sorted
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.storage import Storage
from pyhudi.timeline.commit_metadata import WriteStat

MAX_THREADS = 4
"""Number of file groups that are compacted concurrently in this process; each takes the memory of some windows."""
PAYS_ON_ENGINE = 256 * 1024 * 1024
"""Bytes of files from which several file groups are compacted on an engine's executors, if there is one: about ten
seconds of work on one core."""


@dataclass(frozen=True, slots=True)
class MetadataCompactionJob:
    """A compaction at an instant of the metadata table: its slices, the largest first, one task each, and the valid log
    blocks (``view``). ``storage`` and ``version`` are those of the data table."""

    storage: Storage
    version: int
    instant: str
    view: BlockView
    slices: tuple[MetadataSlice, ...]

    @property
    def num_bytes(self) -> int:
        """Total size of the files that are read."""
        return sum(one.num_bytes for one in self.slices)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions with compacted slices, sorted."""
        return tuple(sorted({one.partition for one in self.slices}))

    def run(self, one: MetadataSlice, attempt: int = 0) -> WriteStat:
        """Merge one of the slices into the next base file. Return its write stats. Memory: some windows of its files.

        ``attempt`` counts attempts at the task from 0; two of them may run concurrently.

        Raises:
            FormatError: A file is corrupt.
            FileSizeError: The base file would exceed the size limit of HFiles.
            NotFoundError: A file no longer exists.
        """
        sources = list(slice_sources(self.storage, one, self.view, NO_CACHE))
        files = GroupFiles(self.storage, one.partition, self.instant, self.version)
        entries = merge_sorted(one.partition, sources, self.version)
        tokens = compaction_tokens(one.file_id, self.instant)
        token = tokens[attempt] if attempt < len(tokens) else None
        return files.write_sorted(one.file_id, entries, token=token, previous=one.base_instant)


@runtime_checkable
class MetadataCompactor(Protocol):
    """Engine that runs the tasks of a large job elsewhere. A
    `pyhudi.metadata.writer.initial_statistics.FileStatsReader` may implement it."""

    def compact_metadata(self, job: MetadataCompactionJob) -> list[WriteStat]:
        """Run `MetadataCompactionJob.run` for each slice. Return the write stats."""
        ...


def run_job(job: MetadataCompactionJob, stats_reader: FileStatsReader = LOCAL) -> list[WriteStat]:
    """Run all tasks of a job. Return the write stats.

    They run on the engine of ``stats_reader`` if it is a `MetadataCompactor` and the job is large enough, otherwise on
    threads of this process.
    """
    if isinstance(stats_reader, MetadataCompactor) and len(job.slices) > 1 and job.num_bytes >= PAYS_ON_ENGINE:
        return stats_reader.compact_metadata(job)
    threads = min(MAX_THREADS, os.cpu_count() or 1, max(1, len(job.slices)))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(job.run, job.slices))
