"""Rollback plans of failed writes, from their markers or else from a listing of the table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import contiguous
from pyhudi.errors import CorruptInstantError
from pyhudi.format.file_names import BASE, LOG, file_name_of, file_names_of, parse_names, split_paths
from pyhudi.storage import Storage, join_path
from pyhudi.storage.concurrent_reads import concurrent_map, read_ahead
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.markers import Markers
from pyhudi.timeline.plans.rollback_plan import RollbackPlan, RollbackRequest
from pyhudi.transaction.rollback.rollback_log_blocks import append_requests, planned_logs
from pyhudi.transaction.rollback.upgraded_log_files import log_files_of_slices

_PATHS = pa.schema([("path", pa.string())])


def plan_rollback(active: ActiveTimeline, version: int, target: Instant, *, with_plan: bool = False) -> RollbackPlan:
    """Return the plan to roll back ``target``, a pending write or the last completed one, without changing anything.

    Markers list every file that a write may have created. Without markers (they were lost, or the writer creates none)
    the table is listed for files with the instant in their names; a write that is only requested has created none. Log
    files of version 6 are not deleted, but their blocks rolled back
    (`pyhudi.transaction.rollback.rollback_log_blocks`). ``with_plan``: a compaction of version 6 is removed together
    with its plan, and the slices that it has opened are deleted.
    """
    storage = active.storage
    appended: list[RollbackRequest] = []
    if target.is_completed:
        return _plan_completed(active, version, target)
    if with_plan and version < 8 and target.action == Action.COMPACTION:
        return RollbackPlan(
            target.requested,
            target.action,
            _deletions(storage, target, *split_paths(files_of_instant(storage, target.requested))),
        )
    try:
        paths = Markers(storage, target.requested).list()["data_path"]
    except CorruptInstantError:
        paths = pa.chunked_array([[]], pa.string())
    if not len(paths) and target.state is not State.REQUESTED:
        paths = files_of_instant(storage, target.requested)
        if version < 8:
            appended = append_requests(*planned_logs(active, target))
    partitions, names = split_paths(paths)
    parsed = parse_names(names)
    if target.action in (Action.COMPACTION, Action.CLUSTERING):
        # They create only base files. Log files of others may contain the instant, too: in version 6 those of the slice
        # that a compaction opens, and in all versions those that Apache Hudi writes to the buckets of a pending resize.
        made = pc.equal(parsed["kind"], BASE).combine_chunks()
        partitions, names, parsed = partitions.filter(made), names.filter(made), parsed.filter(made)
    if version < 8:
        is_log = pc.equal(parsed["kind"], LOG).combine_chunks()
        appended += append_requests(partitions.filter(is_log), names.filter(is_log))
        made = pc.invert(is_log)
        partitions, names, parsed = partitions.filter(made), names.filter(made), parsed.filter(made)
    deletions = _deletions(storage, target, partitions, names)
    return RollbackPlan(target.requested, target.action, (*deletions, *appended))


def _plan_completed(active: ActiveTimeline, version: int, target: Instant) -> RollbackPlan:
    """Return the plan to roll back a completed write on which no later one depends: its commit lists the files.

    In version 6 names of log files contain the instant of their slice. Those of slices that the write has opened are
    deleted; its blocks in older ones are rolled back, or deleted with their files after an upgrade.
    """
    metadata = active.commit_metadata(target)
    partitions, names = split_paths(metadata.named_files())
    if version < 8:
        touched = pc.unique(metadata.stats["partitionPath"]).to_pylist()
        listed = [split_paths(listing["path"]) for listing in concurrent_map(active.storage.list, touched)]
        partitions = pa.concat_arrays([partitions, *(parts[0] for parts in listed)])
        names = pa.concat_arrays([names, *(parts[1] for parts in listed)])
    is_of_target = pc.fill_null(pc.equal(parse_names(names)["instant"], target.requested), False)
    files = pa.table([partitions, names], names=["partition", "name"]).filter(is_of_target)
    if version >= 8:
        of_slices = pa.table([*split_paths(log_files_of_slices(active, target))], names=["partition", "name"])
        files = pa.concat_tables([files, of_slices.cast(files.schema)])
    files = files.group_by(["partition", "name"], use_threads=False).aggregate([])
    deletions = _deletions(active.storage, target, files["partition"], files["name"])
    if version >= 8:
        return RollbackPlan(target.requested, target.action, deletions)
    written, logs = split_paths(metadata.stats["path"].drop_null())
    kinds = parse_names(logs)
    appended = pc.and_(pc.equal(kinds["kind"], LOG), pc.not_equal(kinds["instant"], target.requested)).combine_chunks()
    requests = append_requests(written.filter(appended), logs.filter(appended))
    return RollbackPlan(target.requested, target.action, (*deletions, *requests))


def _deletions(storage: Storage, target: Instant, partitions: pa.Array, names: pa.Array) -> tuple[RollbackRequest, ...]:
    """Return a request per partition to delete these files."""
    files = pa.table([contiguous(partitions), contiguous(names)], names=["partition", "name"])
    grouped = files.group_by("partition", use_threads=False).aggregate([("name", "list")])
    requests = []
    for partition, partition_names in zip(
        grouped["partition"].to_pylist(), grouped["name_list"].combine_chunks(), strict=True
    ):
        paths = pc.binary_join_element_wise(storage.uri(partition), partition_names.values, "/")
        requests.append(RollbackRequest(partition, base_instant=target.requested, files=tuple(paths.to_pylist())))
    return tuple(requests)


def unplanned_paths(storage: Storage, version: int, plan: RollbackPlan) -> list[str]:
    """Return files with markers that are missing in a plan, because the writer was still running without holding the
    lock. Files to which others append are kept, as in plans."""
    try:
        paths = Markers(storage, plan.instant).list()["data_path"]
    except CorruptInstantError:
        return []
    names = file_names_of(paths)
    own_paths = paths if version >= 8 else paths.filter(pc.not_equal(parse_names(names)["kind"], LOG))
    planned = {path for files in planned_paths(plan).values() for path in files}
    return [path for path in own_paths.to_pylist() if path not in planned]


def planned_paths(plan: RollbackPlan) -> dict[str, list[str]]:
    """Return the files that a plan deletes, by partition, relative to the root of the table.

    Plans contain absolute paths with the base path at that time, so only the names are used.
    """
    result: dict[str, list[str]] = {}
    for request in plan.requests:
        names = (file_name_of(file) for file in request.files)
        result.setdefault(request.partition, []).extend(join_path(request.partition, name) for name in names if name)
    return result


def files_of_instant(storage: Storage, instant: str) -> pa.ChunkedArray:
    """Return the paths of all data files, of any kind, whose name contains the instant."""
    folders = [folder for folder in storage.list_dirs("") if folder != META_FOLDER]
    below = read_ahead(lambda folder: storage.list(folder, recursive=True).select(["path"]), folders)
    listings = [storage.list("").select(["path"]), *below]
    paths = pa.concat_tables([listing.cast(_PATHS) for listing in listings])["path"]
    names = file_names_of(paths)
    return paths.filter(pc.fill_null(pc.equal(parse_names(names)["instant"], instant), False))
