"""Check that a partition of the metadata table includes the same writes as the list of files.

Some writers maintain only the list of files. Partition statistics, which describe the latest state, would then omit
later additions.
"""

from __future__ import annotations

import pyarrow.compute as pc

from pyhudi.errors import HudiError
from pyhudi.format.file_names import BASE
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.reader.file_completeness_check import written_by
from pyhudi.metadata.reader.initial_instants import is_initial_instant
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.view.file_listing import list_files
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant


def statistics_are_current(table: MetadataTable, partition: str) -> str | None:
    """Return the reason why a partition is not current; None if it is.

    The names of its files identify most of the instants that have written to it, and when it was built. Metadata is
    read only of writes whose files no longer exist. For tables of version 8 or later.
    """
    files, _ = list_files(table.storage, [f"{METADATA_FOLDER}/{partition}"])
    named = set(files["instant"].to_pylist())
    bases = set(files.filter(pc.equal(files["kind"], BASE))["instant"].to_pylist())
    writes = {i.requested for i in table.timeline.data_timeline.completed() if i.action in WRITE_ACTIONS}
    done = [i for i in table.timeline.effective.completed() if i.action == Action.DELTA_COMMIT]
    # Base files belong to compactions, which are not delta commits, and to its initialization from all existing data.
    initial = [i.order_time for i in done if is_initial_instant(i) and i.requested in named]
    since = max([*initial, *(i.order_time for i in done if i.requested in bases)], default="")
    instants = [
        i
        for i in done
        if i.order_time > since and i.requested not in named and (i.requested in writes or is_initial_instant(i))
    ]
    instants.sort(key=lambda i: i.order_time, reverse=True)
    try:
        if initial and (undone := _undone_since(table, max(initial))):
            return f"it was built from files of {undone}, which was rolled back later"
        updated = concurrent_map(lambda instant: _touched(table, instant), instants)
    except HudiError as error:
        return str(error)
    for instant, touched in zip(instants, updated, strict=True):
        if touched == {partition}:
            # The partition was built by this instant.
            return None
        if instant.requested in writes and FILES in touched and partition not in touched:
            return f"{instant.requested} has added files, but has not updated it"
    return None


def _undone_since(table: MetadataTable, built: str) -> str | None:
    """Return a write that was rolled back after ``built``, and began before it. Such a write of Apache Hudi may have
    completed before: `rollback_to_instant` builds statistics that are missing from the files that it then deletes."""
    active = table.timeline.active
    for rollback in active.timeline.of_actions(Action.ROLLBACK).completed():
        if rollback.order_time > built:
            undone = [instant for instant in active.completed_record(rollback)["commitsRollback"] if instant < built]
            if undone:
                return str(undone[0])
    return None


def _touched(table: MetadataTable, instant: Instant) -> set[str]:
    """Return the partitions of the metadata table that an instant has updated."""
    written = written_by(table.timeline.active, instant)
    folders = pc.replace_substring_regex(written["path"], "/[^/]*$", "")
    return {folder for folder in pc.unique(folders).to_pylist() if folder is not None}
