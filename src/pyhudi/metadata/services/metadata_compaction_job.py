"""Work of a compaction of the metadata table, as its tasks see it: made once, sent to every task, never changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pyhudi.metadata.file_groups.delta_files import GroupFiles, Stat, compaction_tokens
from pyhudi.metadata.file_groups.hfile_sources import NO_CACHE, slice_sources
from pyhudi.metadata.file_groups.sorted_merge import merge_sorted

if TYPE_CHECKING:
    from pyhudi.merge.logs.valid_log_blocks import BlockView
    from pyhudi.storage import Storage

MOST_THREADS = 4
"""File groups that are compacted at a time in this process; each takes the memory of some windows."""
PAYS_ON_ENGINE = 256 * 1024 * 1024
"""Bytes of files from which on several file groups are compacted on an engine's executors, if there is one: some ten
seconds of work on one core."""


@dataclass(frozen=True, slots=True)
class MetadataSlice:
    """A slice (a row of `pyhudi.table.view.file_slicing.SLICE_SCHEMA`) of a partition of the metadata table."""

    partition: str
    row: Mapping[str, Any]

    @property
    def num_bytes(self) -> int:
        """Bytes of all its files."""
        return (self.row["base_size"] or 0) + sum(self.row["log_sizes"] or ())

    @property
    def paths(self) -> tuple[str, ...]:
        """All its files."""
        base = self.row["base_path"]
        return (*(() if base is None else (base,)), *(self.row["log_paths"] or ()))


@dataclass(frozen=True, slots=True)
class MetadataCompactionJob:
    """A compaction at an instant of the metadata table: its slices, the largest first, each one task, and the log
    blocks that count (``view``). ``storage`` and ``version`` are those of the table described."""

    storage: Storage
    version: int
    instant: str
    view: BlockView
    slices: tuple[MetadataSlice, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes of all files that are read."""
        return sum(one.num_bytes for one in self.slices)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions with slices that are compacted, sorted."""
        return tuple(sorted({one.partition for one in self.slices}))

    def run(self, number: int, attempt: int = 0) -> Stat:
        """Merge one slice into the next base file; returns its write stats. Memory: some windows of its files.

        ``attempt`` counts attempts at the task from 0 on; two of them may run at a time.

        Raises:
            FormatError: a file is damaged.
            FileSizeError: the base file would get larger than HFiles can be.
            NotFoundError: a file is gone.
        """
        one = self.slices[number]
        sources = list(slice_sources(self.storage, one.row, self.view, NO_CACHE))
        files = GroupFiles(self.storage, one.partition, self.instant, self.version)
        entries = merge_sorted(one.partition, sources, self.version)
        file_id = one.row["file_id"]
        tokens = compaction_tokens(file_id, self.instant)
        token = tokens[attempt] if attempt < len(tokens) else None
        return files.write_sorted(file_id, entries, token=token, previous=one.row["base_instant"])


@runtime_checkable
class MetadataCompactor(Protocol):
    """An engine that runs the tasks of a large job elsewhere; readers of files
    (`pyhudi.metadata.writer.file_stats_reader.FileStatsReader`) may be one."""

    def compact_metadata(self, job: MetadataCompactionJob) -> list[Stat]:
        """Run `MetadataCompactionJob.run` for each slice; returns the write stats."""
        ...


def run_job(job: MetadataCompactionJob, engine: object = None) -> list[Stat]:
    """Run all tasks of a job; returns the write stats. They run on the ``engine``, if it is a `MetadataCompactor` and
    there is enough to do, else on threads of this process."""
    if isinstance(engine, MetadataCompactor) and len(job.slices) > 1 and job.num_bytes >= PAYS_ON_ENGINE:
        return engine.compact_metadata(job)
    threads = min(MOST_THREADS, os.cpu_count() or 1, max(1, len(job.slices)))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(job.run, range(len(job.slices))))
