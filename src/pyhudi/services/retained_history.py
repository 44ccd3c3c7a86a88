"""Retained history of a table: earlier snapshots whose files all exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import TransactionError
from pyhudi.format.file_names import BASE, LOG, file_name_of, parse_names
from pyhudi.services.cleaning.clean_planner import pending_cleans
from pyhudi.storage import join_path
from pyhudi.table.clean_plan import paths_of
from pyhudi.table.clean_policy import files_of, slices_with_files
from pyhudi.table.view.file_listing import FILE_SCHEMA, list_files
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.instant import Action

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.pinned_table import PinnedTable
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.instant import Instant


def slices_at(view: FileSystemView, instant: Instant) -> pa.Table:
    """Return the file slices (`SLICE_SCHEMA`) of the snapshot after a completed write."""
    if instant.completion is not None:
        return view.latest_slices(completed_by=instant.completion)
    return view.latest_slices(instant.requested)


def check_not_cleaned(table: PinnedTable, instant: Instant, what: str) -> None:
    """Raise an error if cleans have deleted files of an earlier snapshot, or are going to.

    Args:
        table: The table with its current timeline.
        instant: The completed write whose snapshot is needed.
        what: Start of the error message.

    Raises:
        TransactionError: Files of the snapshot no longer exist.
    """
    gone = deleted_since(table.active, instant)
    if not gone.num_rows:
        return

    def lister(storage: Storage, partitions: Sequence[str] | None) -> tuple[pa.Table, list[str]]:
        files, partition_paths = list_files(storage, partitions)
        back = gone.filter(pc.invert(pc.is_in(gone["path"], value_set=files["path"].combine_chunks())))
        return pa.concat_tables([files, back]), partition_paths

    view = FileSystemView.load(table, partitions=pc.unique(gone["partition"]).to_pylist(), lister=lister)
    paths = gone["path"].combine_chunks()
    slices = slices_at(view, instant)
    needed = paths_of(files_of(slices.filter(pa.array(slices_with_files(slices, paths)))))
    lost = needed.filter(pc.is_in(needed, value_set=paths)).to_pylist()
    if lost:
        raise TransactionError(
            f"{what}: cleaning has deleted {len(lost)} files of the snapshot of {instant.requested}, such as "
            f"{lost[0]!r}, or is going to. Choose a later instant; to retain snapshots, set savepoints, or retain "
            "more commits with hoodie.clean.commits.retained"
        )


def deleted_since(active: ActiveTimeline, instant: Instant) -> pa.Table:
    """Return the files (`FILE_SCHEMA`) that cleans later than an instant have deleted, or are going to delete."""
    names: list[tuple[str, str]] = []
    for clean in active.timeline.completed().of_actions(Action.CLEAN).after(instant.requested):
        for partition, part in active.completed_record(clean)["partitionMetadata"].items():
            names += [(partition, file_name_of(text)) for text in part["deletePathPatterns"]]
    for plan in pending_cleans(active):
        names += [(p, name) for p, file_names in plan.names_by_partition().items() for name in file_names]
    parsed = parse_names(pa.array([name for _, name in names], pa.string()))
    columns = {
        "partition": pa.array([p for p, _ in names], pa.string()),
        "path": pa.array([join_path(p, name) for p, name in names], pa.string()),
        "size": pa.array([0] * len(names), pa.int64()),
        **{name: parsed[name] for name in ("kind", "file_id", "token", "instant", "log_version")},
    }
    files = pa.Table.from_arrays([columns[f.name] for f in FILE_SCHEMA], schema=FILE_SCHEMA)
    return files.filter(pc.is_in(files["kind"], value_set=pa.array([BASE, LOG]))).combine_chunks()
