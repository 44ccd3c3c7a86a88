"""Check that a partition of the metadata table has the same writes as the list of files.

Writers may keep up the list of files alone; statistics of partitions, which are those of the latest state, would then
leave out what was added since.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pyhudi.errors import HudiError
from pyhudi.format.file_names import BASE
from pyhudi.metadata.disable_metadata import METADATA_FOLDER
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.reader.completeness import written_by
from pyhudi.metadata.reader.initial_instants import is_initial_instant
from pyhudi.table.view.file_listing import list_files
from pyhudi.timeline.instant import WRITE_ACTIONS, Action

if TYPE_CHECKING:
    from pyhudi.metadata.reader.metadata_table import MetadataTable
    from pyhudi.timeline.instant import Instant

_READ_THREADS = 16


def statistics_are_current(table: MetadataTable, partition: str) -> str | None:
    """Return the reason why an up-to-date partition cannot be relied on; None if it can.

    The names of its files tell most of the instants that have written to it, and when it was built. What is read is
    the metadata of writes whose files are not there any more. Tables of version 8 or later.
    """
    files, _ = list_files(table.storage, [f"{METADATA_FOLDER}/{partition}"])
    named = set(files["instant"].to_pylist())
    bases = set(files.filter(pc.equal(files["kind"], BASE))["instant"].to_pylist())
    writes = {i.requested for i in table.timeline.table.completed() if i.action in WRITE_ACTIONS}
    done = [i for i in table.timeline.counted.completed() if i.action == Action.DELTA_COMMIT]
    # base files are of compactions, which are no delta commits, and of what has built it, from all that was there
    built = [i.order_time for i in done if i.requested in bases or (is_initial_instant(i) and i.requested in named)]
    since = max(built, default="")
    asked = [
        i
        for i in done
        if i.order_time > since and i.requested not in named and (i.requested in writes or is_initial_instant(i))
    ]
    asked.sort(key=lambda i: i.order_time, reverse=True)
    try:
        with ThreadPoolExecutor(_READ_THREADS) as pool:
            found = list(pool.map(lambda instant: _touched(table, instant), asked))
    except HudiError as e:
        return str(e)
    for instant, touched in zip(asked, found, strict=True):
        if touched == {partition}:
            # it was built here
            return None
        if instant.requested in writes and FILES in touched and partition not in touched:
            return f"{instant.requested} has added files, but nothing to it"
    return None


def _touched(table: MetadataTable, instant: Instant) -> set[str]:
    """The partitions of the metadata table that an instant has written to."""
    written = written_by(table.storage, table.timeline.active, instant)
    folders = pc.replace_substring_regex(written["path"], "/[^/]*$", "")
    return {folder for folder in pc.unique(folders).to_pylist() if folder is not None}
