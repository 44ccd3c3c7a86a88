"""Cleaning of the metadata table, by the rules of any table (`pyhudi.table.clean_retention`)."""

from __future__ import annotations

import time

import pyarrow as pa

from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.clean_retention import CleanRetention, expired_files
from pyhudi.table.view.file_group_state import completions_of_archived
from pyhudi.table.view.file_listing import list_files
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.table.view.file_system_view import FileInstants, FileSystemView
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action
from pyhudi.timeline.plans.clean_plan import EXPIRED_SCHEMA, ActionInstant, CleanPlan, clean_metadata

CLEAN_SUFFIX = "002"
"""Suffix of clean instants in metadata tables of version 6."""
RETAINED = 20
"""Number of delta commits whose slices are retained, as in Apache Hudi."""


def clean_metadata_table(table: LockedTable, active: ActiveTimeline) -> None:
    """Delete the files of slices of the metadata table that ended before the last `RETAINED` delta commits.

    ``active`` is the timeline of the metadata table.
    """
    storage, config, version = table.storage, table.config, table.config.version
    deltas = [i for i in active.timeline.completed().by_completion() if i.action == Action.DELTA_COMMIT]
    if len(deltas) <= RETAINED:
        return
    earliest, last = deltas[-RETAINED], deltas[-1]
    partitions = sorted({*config.metadata_partitions, *config.metadata_partitions_inflight})
    retention = CleanRetention()
    files = pa.concat_tables(
        [
            EXPIRED_SCHEMA.empty_table(),
            *(
                _expired(storage, p, active, earliest=earliest.order_time, retention=retention, version=version)
                for p in partitions
            ),
        ]
    )
    if not files.num_rows:
        return
    instant = table.new_time() if version >= 8 else f"{last.requested[:17]}{CLEAN_SUFFIX}"
    if instant in active.timeline:
        return
    started = time.monotonic()
    plan = CleanPlan(
        files,
        retention.policy.value,
        ActionInstant.from_instant(earliest),
        last.requested,
    )
    content = plan.encode(version, storage.uri(METADATA_FOLDER))
    clean = active.create_requested(Action.CLEAN, instant, content)
    clean = active.to_inflight(clean, content)
    storage.delete_many(join_path(METADATA_FOLDER, path) for path in plan.paths().to_pylist())
    millis = int((time.monotonic() - started) * 1000)
    done = clean_metadata(plan, instant, millis, version=version, dropped=(), extra=plan.extra_metadata())
    active.complete(clean, done, table.completed_at(version))


def _expired(
    storage: Storage, partition: str, active: ActiveTimeline, *, earliest: str, retention: CleanRetention, version: int
) -> pa.Table:
    """Return the files of a partition that nobody reads from ``earliest`` on, with partition paths relative to the
    metadata table."""
    files, _ = list_files(storage, [join_path(METADATA_FOLDER, partition)])
    by_completion = version >= 8
    archived = completions_of_archived(active, files, active.timeline) if by_completion else {}
    view = FileSystemView(files, FileInstants(active.timeline, by_completion=by_completion, archived=archived))
    expired = expired_files(view.all_slices(), SLICE_SCHEMA.empty_table(), retention, earliest)
    return expired.set_column(0, "partition", pa.array([partition] * expired.num_rows, pa.string()))
