"""Savepoints: snapshots whose files cleaning retains, to which the table can be restored."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options
from pyhudi.errors import AlreadyExistsError, InstantNotFoundError, TransactionError
from pyhudi.services.archival.archival_plan import without_uncleaned
from pyhudi.services.cleaning.clean_planner import pending_cleans
from pyhudi.services.cleaning.clean_progress import LastClean
from pyhudi.services.service_result import PhaseTimer, ServiceResult
from pyhudi.services.snapshot_availability import check_not_cleaned, slices_at
from pyhudi.storage.clock import now_ms
from pyhudi.storage.concurrent_reads import read_each
from pyhudi.table.clean_retention import base_and_log_files
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.action_avro import encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archived_timeline import has_archived_after
from pyhudi.timeline.archive.archiver import ArchiveOptions, archive, can_archive, finish_archival
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.plans.clean_plan import EXPIRED_SCHEMA
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction.locks.lock_factory import make_time_generator
from pyhudi.transaction.rollback.late_data_files import delete_files_passed_by_start
from pyhudi.transaction.table_checks import current_snapshot

SERVICE = "savepoint"

SAVEPOINT_SCHEMA = pa.schema(
    [
        ("instant", pa.string()),
        ("user", pa.string()),
        ("comment", pa.string()),
        ("created_ms", pa.int64()),
        ("files", pa.int64()),
    ]
)
"""One row per savepoint, oldest first; ``instant`` is the write with the savepoint, ``created_ms`` epoch
milliseconds."""


def completed_write(active: ActiveTimeline, instant: str | None, root: str) -> Instant:
    """Return the completed write of an instant, by default the last one of the timeline.

    Raises:
        InstantNotFoundError: The active timeline has no such write.
    """
    done = active.timeline.completed().writes()
    write = done.last if instant is None else done.find(instant)
    if write is None:
        named = "no completed write" if instant is None else f"no completed write {instant!r}"
        first = active.timeline.start
        why = f", which begins at {first}; older instants are archived" if instant and first and instant < first else ""
        raise InstantNotFoundError(f"there is {named} in the active timeline of the table at {root}{why}")
    return write


def create_savepoint(
    client: TableMetaClient, opts: Options, instant: str | None, *, user: str = "", comment: str = ""
) -> ServiceResult:
    """Retain the files of the snapshot after a completed write.

    Args:
        client: The table.
        opts: Options of locks.
        instant: The write; default: the last one.
        user: User, stored with the savepoint.
        comment: Comment, stored with the savepoint.

    Raises:
        InstantNotFoundError: The active timeline has no such completed write.
        TransactionError: Cleaning has deleted files of that snapshot, or a restore is pending.
        LockError: The lock of the table could not be acquired, or was lost; there is no savepoint then.
    """
    storage, phases = client.storage, PhaseTimer()
    generator = make_time_generator(storage, opts, client.config.timezone)
    with generator.reserve() as reserved, phases("create"):
        table = current_snapshot(storage, client.config)
        if finish_archival(table.active):  # Which would otherwise remove the write from under its savepoint.
            table = table.reload()
        config, active = table.config, table.active
        target = completed_write(active, instant, storage.uri())
        existing = active.timeline.find(target.requested, Action.SAVEPOINT)
        if existing is not None and existing.is_completed:
            reason = f"there is already a savepoint at {target.requested}"
            return ServiceResult(SERVICE, storage.uri(), reason=reason).published(opts)
        _check_retained(active, target)
        check_not_cleaned(table, target, f"cannot create a savepoint at {target.requested}")
        files = _files(table, target)
        generator.lock.ensure_held()
        _delete_late_files(active, target)
        inflight = existing or _to_inflight(active, target)
        grouped = files.group_by("partition", use_threads=False).aggregate([("name", "list")])
        record = {
            "savepointedBy": user,
            "savepointedAt": now_ms(),
            "comments": comment,
            "partitionMetadata": {
                row["partition"]: {"partitionPath": row["partition"], "savepointDataFile": row["name_list"]}
                for row in grouped.to_pylist()
            },
            "version": 1,
        }
        content = encode_record(Action.SAVEPOINT, State.COMPLETED, record, config.version)
        completion = reserved.take(active.latest_time) if config.version >= 8 else None
        generator.lock.ensure_held()  # A clean may have been planned since, which deletes its files.
        active.complete(inflight, content, completion)
    counts, size = {"files": files.num_rows}, int(pc.sum(files["size"]).as_py() or 0)
    return ServiceResult(SERVICE, storage.uri(), (target.requested,), counts, size, phases.millis).published(opts)


def delete_savepoint(client: TableMetaClient, opts: Options, instant: str) -> ServiceResult:
    """Delete a savepoint, so that cleaning may delete its files.

    Raises:
        InstantNotFoundError: There is no savepoint at that instant.
        TransactionError: Archival has passed the savepoint, and files that its write has replaced still exist; or a
            restore is pending.
        LockError: The lock of the table could not be acquired.
    """
    storage, phases = client.storage, PhaseTimer()
    lock = make_time_generator(storage, opts, client.config.timezone).lock
    with lock, phases("delete"):
        table = current_snapshot(storage, client.config)
        active = table.active
        savepoint = active.timeline.find(instant, Action.SAVEPOINT)
        if savepoint is None:
            names = ", ".join(i.requested for i in active.timeline.of_actions(Action.SAVEPOINT)) or "none"
            raise InstantNotFoundError(
                f"the table at {storage.uri()} has no savepoint {instant!r}; its savepoints: {names}"
            )
        saved = active.timeline.find(instant)
        if saved is not None and can_archive(active.layout, saved) and has_archived_after(active, instant):
            # Archival has passed it; alone in the timeline it would look like the first write.
            if not without_uncleaned(table, [saved]):
                raise TransactionError(
                    f"cannot delete the savepoint {instant}: later writes have been archived, so the {saved.action} of "
                    "that instant would be archived, too, while files that it has replaced still exist and would come "
                    "back. Clean the table first (HudiTable.services.clean()); if the files remain, an earlier "
                    "savepoint or the cleaner's options retain them"
                )
            archive(active, [saved], ArchiveOptions(table.config.timezone), lock)
        lock.ensure_held()
        for state in active.states(savepoint):
            active.delete(state)
    return ServiceResult(SERVICE, storage.uri(), (instant,), {"deleted": 1}, millis=phases.millis).published(opts)


def list_savepoints(client: TableMetaClient) -> pa.Table:
    """Return the savepoints of a table (`SAVEPOINT_SCHEMA`).

    Raises:
        CorruptInstantError: A savepoint cannot be parsed.
    """
    active = client.active_timeline()
    rows = []
    savepoints = active.timeline.completed().of_actions(Action.SAVEPOINT).instants
    for instant, record in read_each(active.completed_record, savepoints):
        savepoint = (
            instant.requested,
            record["savepointedBy"],
            record["comments"],
            record["savepointedAt"],
            sum(len(part["savepointDataFile"]) for part in record["partitionMetadata"].values()),
        )
        rows.append(dict(zip(SAVEPOINT_SCHEMA.names, savepoint, strict=True)))
    return pa.Table.from_pylist(rows, schema=SAVEPOINT_SCHEMA)


def _check_retained(active: ActiveTimeline, target: Instant) -> None:
    """Refuse a write before the earliest one retained completely by the last clean, or a pending one."""
    last = LastClean.load(active)
    retained = max(
        [plan.earliest_instant for plan in pending_cleans(active)] + ([last.earliest] if last else []), default=""
    )
    if target.requested < retained:
        raise TransactionError(
            f"cannot create a savepoint at {target.requested}: cleaning retains only snapshots from {retained} on. "
            "Choose a later instant"
        )


def _files(table: TableSnapshot, target: Instant) -> pa.Table:
    """Return the files of the snapshot (`EXPIRED_SCHEMA`), for time travel and for a restore."""
    view = FileSystemView.load(table)
    slices = [slices_at(view, target), view.latest_slices(target.requested)]
    files = pa.concat_tables([EXPIRED_SCHEMA.empty_table(), *map(base_and_log_files, slices)])
    return files.group_by(EXPIRED_SCHEMA.names, use_threads=False).aggregate([]).sort_by("partition")


def _delete_late_files(active: ActiveTimeline, target: Instant) -> None:
    """Delete the files of rolled-back writes that would become visible, because a write with a savepoint is not the
    start of the timeline. The caller holds the lock of the table."""
    savepoint = Instant(target.requested, Action.SAVEPOINT, State.INFLIGHT, None, "")
    start = Timeline([*active.timeline, savepoint]).start
    assert start is not None
    delete_files_passed_by_start(active, start)


def _to_inflight(active: ActiveTimeline, target: Instant) -> Instant:
    probe = Instant(target.requested, Action.SAVEPOINT, State.REQUESTED, None, "")
    try:
        return active.to_inflight(probe)
    except AlreadyExistsError:
        return probe
