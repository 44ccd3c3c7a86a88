"""What a failed write left behind, as a rollback plan: from its markers, else from a listing of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import CorruptInstantError
from pyhudi.format.filenames import BASE, LOG, parse_names, split_paths
from pyhudi.storage import join_path
from pyhudi.timeline.instants import Action, Instant, State
from pyhudi.timeline.markers import Markers
from pyhudi.timeline.plans import RollbackPlan, RollbackRequest
from pyhudi.transaction.rollback_logs import append_requests, planned_logs

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.timeline.active import ActiveTimeline

_PATHS = pa.schema([("path", pa.string())])


def plan_rollback(active: ActiveTimeline, version: int, target: Instant) -> RollbackPlan:
    """The plan to undo ``target``, a pending write. Reads only.

    Markers name every file that a write may have made. Without any (they were lost, or the writer makes none) the
    table is listed for files that bear the instant; a write that is only requested cannot have made one. Log files of
    version 6 are not deleted, but their blocks voided (`pyhudi.transaction.rollback_logs`).
    """
    storage = active.storage
    appended: list[RollbackRequest] = []
    try:
        paths = Markers(storage, target.requested).list()["data_path"]
    except CorruptInstantError:
        paths = pa.chunked_array([[]], pa.string())
    if not len(paths) and target.state is not State.REQUESTED:
        paths = _files_of(storage, target.requested)
        if version < 8:
            appended = append_requests(*planned_logs(active, target))
    partitions, names = split_paths(paths)
    parsed = parse_names(names)
    if target.action == Action.COMPACTION:
        # compactions make base files alone; in version 6 the logs of the slice after one bear its instant, too
        made = pc.equal(parsed["kind"], BASE).combine_chunks()
        partitions, names, parsed = partitions.filter(made), names.filter(made), parsed.filter(made)
    if version < 8:
        is_log = pc.equal(parsed["kind"], LOG).combine_chunks()
        appended += append_requests(partitions.filter(is_log), names.filter(is_log))
        made = pc.invert(is_log)
        partitions, names, parsed = partitions.filter(made), names.filter(made), parsed.filter(made)
    deletions = [
        RollbackRequest(
            partition=partition,
            file_id=file_id,
            base_instant=target.requested,
            files=(storage.uri(join_path(partition, name)),),
        )
        for partition, name, file_id in zip(
            partitions.to_pylist(), names.to_pylist(), parsed["file_id"].to_pylist(), strict=True
        )
    ]
    return RollbackPlan(target.requested, target.action, (*deletions, *appended))


def planned_paths(plan: RollbackPlan) -> dict[str, list[str]]:
    """The files that a plan deletes, by partition, relative to the table's root.

    Plans hold absolute paths of the folder where the table lay when they were made, so of each only the name counts.
    """
    result: dict[str, list[str]] = {}
    for request in plan.requests:
        names = (file.rpartition("/")[2] for file in request.files)
        result.setdefault(request.partition, []).extend(join_path(request.partition, name) for name in names if name)
    return result


def _files_of(storage: Storage, instant: str) -> pa.ChunkedArray:
    """Paths of all data files, of whatever kind, whose name bears the instant."""
    listings = [storage.list("").select(["path"])]
    for folder in storage.list_dirs(""):
        if folder != ".hoodie":
            listings.append(storage.list(folder, recursive=True).select(["path"]))
    paths = pa.concat_tables([listing.cast(_PATHS) for listing in listings])["path"]
    _, names = split_paths(paths)
    return paths.filter(pc.fill_null(pc.equal(parse_names(names)["instant"], instant), False))
