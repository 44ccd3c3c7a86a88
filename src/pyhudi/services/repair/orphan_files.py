"""Orphan files: data files that belong to no write of the timeline, left by killed writers whose rollback has been
archived.

While such a file's instant is later than the start of the active timeline, readers ignore it. Afterwards every reader
would include it. Deletions are a clean in the timeline, so that the metadata table is updated, and the next clean
continues an interrupted one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options
from pyhudi.errors import BusyError, QueryError
from pyhudi.format.file_names import BASE, CDC, LOG, file_name_of, file_names_of
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.services.cleaning.clean_planner import read_savepoints
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.services.repair.active_writer_check import check_not_in_use
from pyhudi.storage import join_path
from pyhudi.storage.concurrent_reads import read_ahead
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_listing import list_files
from pyhudi.table.view.pending_file_groups import pending_clustering_groups, pending_compaction_groups
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from pyhudi.timeline.plans.clean_plan import EXPIRED_SCHEMA, CleanPlan
from pyhudi.timeline.plans.restore_plan import rollbacks_of

ORPHAN_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("path", pa.string()),
        ("file_id", pa.string()),
        ("instant", pa.string()),
        ("size", pa.int64()),
        ("is_deleted", pa.bool_()),
    ]
)
"""One row per file: its path relative to the root of the table, the instant in its name, bytes, and whether it was
deleted by this call."""
_SLICE = ("partition", "file_id", "instant")
_UNDOING = (Action.ROLLBACK, Action.RESTORE)


def find_orphan_files(table: TableSnapshot, partitions: Sequence[str] | None = None) -> pa.Table:
    """Find the data files that belong to no write.

    These are base files and change data files whose write has completed without recording them, and data files of an
    instant that neither the active nor the archived timeline has, although they have an older one. A log file is an
    orphan only if no write records any log file of its slice, because rollbacks append to those. Files of pending
    instants, of savepoints, and from before the first known instant are no orphans, nor are change data files of
    archived writes that name none: archives of version 6 have no room for them.

    Args:
        table: The table; its timeline is loaded again after the files are listed.
        partitions: Only in these partitions; None for all.

    Returns:
        The files (`ORPHAN_SCHEMA`), sorted by path.

    Raises:
        CorruptInstantError: The timeline cannot be read, so nothing is certain.
        TransactionError: Apache Hudi has changed the version of the table halfway.
    """
    # A file is written after its instant is created, and instants are archived before they are removed.
    files, _ = list_files(table.storage, partitions, (BASE, LOG, CDC))
    active = table.active.reload()
    refuse_moved_instants(active)
    history = read_archived_timeline(table.storage, table.config.layout)
    first, listed, recorded = _instants(active, history)
    named, silent = _recorded_files(files["path"], active, history)
    logs = pc.equal(files["kind"], LOG)
    slices = pc.binary_join_element_wise(*(files[name] for name in _SLICE), "\x00")
    kept = pc.is_in(slices, value_set=slices.filter(pc.and_(logs, named)).combine_chunks())
    younger = pc.greater(files["instant"], pa.scalar(first))
    forgotten = pc.and_(pc.invert(pc.is_in(files["instant"], value_set=listed)), younger)
    unnamed = pc.and_(pc.is_in(files["instant"], value_set=recorded), pc.invert(logs))
    untold = pc.and_(pc.equal(files["kind"], CDC), pc.is_in(files["instant"], value_set=silent))
    unnamed = pc.and_(unnamed, pc.invert(untold))
    orphaned = pc.and_(pc.or_(forgotten, unnamed), pc.invert(pc.or_(named, pc.and_(logs, kept))))
    orphans = files.filter(orphaned)
    for saved in read_savepoints(active).values():
        orphans = orphans.filter(pc.invert(pc.is_in(orphans["path"], value_set=saved)))
    orphans = orphans.append_column("is_deleted", pa.repeat(pa.scalar(False), orphans.num_rows))
    return orphans.select(ORPHAN_SCHEMA.names).cast(ORPHAN_SCHEMA).sort_by("path")


def delete_orphan_files(
    client: TableMetaClient,
    opts: Options,
    *,
    partitions: Sequence[str] | None = None,
    paths: Sequence[str] | None = None,
    dry_run: bool = True,
    stats_reader: FileStatsReader = LOCAL,
) -> pa.Table:
    """Find and delete the data files that belong to no write, continuing an interrupted deletion.

    Args:
        client: The table.
        opts: Options of cleaning, locks and heartbeats.
        partitions: Only in these partitions; None for all.
        paths: Only these files, by their paths relative to the root of the table; None for all.
        dry_run: Delete nothing.
        stats_reader: Reads files if the metadata table has to be rebuilt.

    Returns:
        The files (`ORPHAN_SCHEMA`), sorted by path.

    Raises:
        QueryError: One of ``paths`` is not such a file.
        BusyError: A write is pending, or a planned service is going to read such a file.
        CorruptInstantError: The timeline cannot be read.
        LockError: The lock of the table could not be acquired.
    """
    table = TableSnapshot.load(client)
    if dry_run:
        return _requested_orphans(find_orphan_files(table, partitions), paths)
    table.config.check_writable()
    orphans = ORPHAN_SCHEMA.empty_table()

    def plan(now: TableSnapshot) -> CleanPlan:
        nonlocal orphans
        orphans = _requested_orphans(find_orphan_files(now, partitions), paths)
        if orphans.num_rows:
            _refuse_pending(now.active, orphans, opts)
        columns = [orphans["partition"], file_names_of(orphans["path"]), orphans["size"]]
        return CleanPlan(pa.Table.from_arrays(columns, schema=EXPIRED_SCHEMA), orphans=True)

    Cleaner(client, opts, stats_reader).delete_orphans(plan)
    deleted = pa.repeat(pa.scalar(True), orphans.num_rows)
    return orphans.set_column(orphans.schema.get_field_index("is_deleted"), "is_deleted", deleted)


def _requested_orphans(orphans: pa.Table, paths: Sequence[str] | None) -> pa.Table:
    if paths is None:
        return orphans
    others = sorted(set(paths) - set(orphans["path"].to_pylist()))
    if others:
        raise QueryError(
            f"{others[0]!r} is not an orphan file, so it is not deleted; roll back the write that created it, or "
            "restore the table"
        )
    return orphans.filter(pc.is_in(orphans["path"], value_set=pa.array(paths, pa.string())))


def _instants(active: ActiveTimeline, history: pa.Table) -> tuple[str, pa.Array, pa.Array]:
    """Return the first known instant, all known ones, and the completed writes, whose files are recorded."""
    entries = list(active.timeline)
    archived = history["requested"].to_pylist()
    recorded_instants = {*archived, *(one.requested for one in entries)}
    writes = pc.is_in(history["action"], value_set=pa.array(sorted(WRITE_ACTIONS)))
    has_metadata = pc.and_(writes, pc.is_valid(history["metadata"]))
    recorded = set(history["requested"].filter(has_metadata).to_pylist())
    recorded |= {one.requested for one in entries if one.is_completed and one.is_write}
    recorded -= set(active.timeline.pending().requested_times)
    return (
        min(recorded_instants, default="9"),
        pa.array(sorted(recorded_instants), pa.string()),
        pa.array(sorted(recorded), pa.string()),
    )


def _recorded_files(paths: pa.ChunkedArray, active: ActiveTimeline, history: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return a mask of the files that are recorded by a completed write, or a rollback, and the instants of archived
    writes that record no change data files."""
    listed = paths.combine_chunks().cast(pa.string())
    named = pa.repeat(pa.scalar(False), len(listed))
    silent: list[str] = []
    if not len(listed):
        return named, pa.array(silent, pa.string())
    completed = [i for i in active.timeline.completed() if i.is_write or i.action in _UNDOING]
    for recorded in read_ahead(partial(_files_recorded_by, active), completed):
        named = pc.or_(named, pc.is_in(listed, value_set=recorded))
    instants, actions = history["requested"].to_pylist(), history["action"].to_pylist()
    for instant_time, action, data in zip(instants, actions, history["metadata"], strict=True):
        if not data.is_valid:
            continue
        if action in WRITE_ACTIONS:
            metadata = decode_commit(data.as_py())
            named = pc.or_(named, pc.is_in(listed, value_set=metadata.named_files()))
            if not len(metadata.stats["cdcStats"].drop_null()):
                silent.append(instant_time)
        elif action in _UNDOING:
            record = decode_record(action, State.COMPLETED, data.as_py())
            named = pc.or_(named, pc.is_in(listed, value_set=_appended(record)))
    return named, pa.array(silent, pa.string())


def _files_recorded_by(active: ActiveTimeline, instant: Instant) -> pa.Array:
    """Return the paths of the files that a completed write, rollback or restore has recorded."""
    if instant.is_write:
        return active.commit_metadata(instant).named_files()
    return _appended(active.completed_record(instant))


def _appended(record: Mapping[str, Any]) -> pa.Array:
    """Return paths of the log files that a rollback, or those of a restore, have written to."""
    rollbacks = rollbacks_of(record) if "hoodieRestoreMetadata" in record else [record]
    names = [
        join_path(folder, file_name_of(path))
        for rollback in rollbacks
        for folder, part in rollback["partitionMetadata"].items()
        for path in part["rollbackLogFiles"] or ()
    ]
    return pa.array(names, pa.string())


def _refuse_pending(active: ActiveTimeline, orphans: pa.Table, opts: Options) -> None:
    """Refuse to delete while another process may read the files, or is writing.

    Raises:
        BusyError: The message has the instant.
    """
    check_not_in_use(active, opts)
    services = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)
    for instant in active.timeline.pending():
        if instant.action in WRITE_ACTIONS and instant.action not in services:
            raise BusyError(f"{instant} is pending, and may use these files; wait for it, or roll it back")
    for planned in (pending_compaction_groups(active), pending_clustering_groups(active)):
        hit = orphans.filter(in_groups(orphans, planned.select(["partition", "file_id"])))
        if hit.num_rows:
            raise BusyError(
                f"a pending plan is going to read file group {hit['file_id'][0].as_py()!r} of partition "
                f"{hit['partition'][0].as_py()!r}; execute it first, or roll it back"
            )
