"""Whether a partition of the metadata table has gone along with all writes that the list of files has gone along with.

Writers may keep up the list of files alone; statistics of partitions, which are those of the latest state, would then
leave out what was added since.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pyhudi.errors import HudiError
from pyhudi.metadata.completeness import written_by
from pyhudi.timeline.instants import WRITE_ACTIONS, Action

if TYPE_CHECKING:
    from pyhudi.metadata.table import MetadataTable
    from pyhudi.timeline.instants import Instant

FILES = "files"
_READ_THREADS = 16


def statistics_are_current(table: MetadataTable, partition: str) -> str | None:
    """Why a partition that holds the latest state cannot be relied on; None if it can."""
    writes = {i.requested for i in table.timeline.table.completed() if i.action in WRITE_ACTIONS}
    done = [i for i in table.timeline.counted.completed() if i.action == Action.DELTA_COMMIT]
    done.sort(key=lambda i: i.order_time, reverse=True)
    try:
        with ThreadPoolExecutor(_READ_THREADS) as pool:
            found = list(pool.map(lambda instant: _touched(table, instant), done))
    except HudiError as e:
        return str(e)
    for instant, touched in zip(done, found, strict=True):
        if touched == {partition}:
            # it was built here, from all that was there
            return None
        if instant.requested in writes and FILES in touched and partition not in touched:
            return f"{instant.requested} has added files, but nothing to it"
    return None


def _touched(table: MetadataTable, instant: Instant) -> set[str]:
    """The partitions of the metadata table that an instant has written to."""
    written = written_by(table.storage, table.timeline.active, instant)
    folders = pc.replace_substring_regex(written["path"], "/[^/]*$", "")
    return {folder for folder in pc.unique(folders).to_pylist() if folder is not None}
