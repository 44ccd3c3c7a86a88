"""Helpers of the tests of compaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.services.compaction.compaction_runner import ThreadCompactionRunner
from pyhudi.table.view.file_system_view import FileSystemView
from tests.unit.services.merge_on_read_table import MorTable

VERSIONS = (6, 8, 9)
SMALL = {"hoodie.index.bloom.num_entries": "10", "hoodie.bloom.index.filter.dynamic.max.entries": "10"}
IN_THREADS = ThreadCompactionRunner()


@dataclass(frozen=True)
class RunnerOf(ThreadCompactionRunner):
    """Runner whose work is a function."""

    work: Callable[[CompactionJob], pa.Table] = IN_THREADS.run

    def run(self, job: CompactionJob) -> pa.Table:
        return self.work(job)


def slices(table: MorTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = FileSystemView.load(table.client).latest_slices().to_pylist()
    return found
