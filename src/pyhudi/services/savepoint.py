"""Savepoints: snapshots whose files cleaning leaves alone, to which the table can be restored."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options
from pyhudi.errors import AlreadyExistsError, InstantNotFoundError, TransactionError
from pyhudi.services.cleaning.clean_planner import LastClean, pending_cleans
from pyhudi.services.retained_history import check_not_cleaned, slices_at
from pyhudi.services.service_result import Phases, ServiceResult
from pyhudi.table.clean_policy import EXPIRED_SCHEMA, files_of
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.action_metadata import encode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archiver import archive, can_archive
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.instant_generator import InstantGenerator
from pyhudi.transaction.action_start import current_config
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.rollback.rollback_failed import newest, refuse_pending_restore

if TYPE_CHECKING:
    from pyhudi.table.meta_client import TableMetaClient

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
"""One row for each savepoint, oldest first; ``instant`` is the write that it keeps, ``created_ms`` epoch ms."""


def completed_write(active: ActiveTimeline, instant: str | None, root: str) -> Instant:
    """Return the completed write of an instant, the last one of the timeline if none is named.

    Raises:
        InstantNotFoundError: there is no such write on the active timeline.
    """
    done = active.timeline.completed().writes()
    found = done.last if instant is None else done.find(instant)
    if found is None:
        named = "no completed write" if instant is None else f"no completed write {instant!r}"
        first = active.timeline.start
        why = f"; older ones than {first} have been archived" if instant and first and instant < first else ""
        raise InstantNotFoundError(f"there is {named} on the active timeline of the table at {root}{why}")
    return found


def create_savepoint(
    client: TableMetaClient, opts: Options, instant: str | None = None, *, user: str = "", comment: str = ""
) -> ServiceResult:
    """Keep the files of the snapshot that a completed write has left.

    Args:
        client: the table.
        opts: options of locks.
        instant: the write; the last one if not given.
        user: who wants it, kept with the savepoint.
        comment: what for, kept with the savepoint.

    Raises:
        InstantNotFoundError: there is no such completed write on the active timeline.
        TransactionError: cleaning has deleted files of that snapshot; or a restore is pending.
        LockError: the table's lock could not be taken.
    """
    storage, phases = client.storage, Phases()
    lock = make_lock_provider(storage, opts)
    with InstantGenerator(storage, opts, client.config.timezone, lock=lock).reserve() as slot, phases("create"):
        config = current_config(storage, client.config)
        active = ActiveTimeline.load(storage, config.layout)
        refuse_pending_restore(active)
        target = completed_write(active, instant, storage.uri())
        known = active.timeline.find(target.requested, Action.SAVEPOINT)
        if known is not None and known.is_completed:
            reason = f"there is a savepoint at {target.requested} already"
            return ServiceResult(SERVICE, storage.uri(), reason=reason).published(opts)
        table = PinnedTable(storage, config, active)
        _check_retained(active, target)
        check_not_cleaned(table, target, f"a savepoint at {target.requested} cannot be created")
        files = _files(table, target)
        entry = known or _to_inflight(active, target)
        grouped = files.group_by("partition", use_threads=False).aggregate([("name", "list")])
        record = {
            "savepointedBy": user,
            "savepointedAt": int(time.time() * 1000),
            "comments": comment,
            "partitionMetadata": {
                row["partition"]: {"partitionPath": row["partition"], "savepointDataFile": row["name_list"]}
                for row in grouped.to_pylist()
            },
            "version": 1,
        }
        content = encode_record(Action.SAVEPOINT, State.COMPLETED, record, config.version)
        active.complete(entry, content, slot.take(newest(active)) if config.version >= 8 else None)
    counts, size = {"files": files.num_rows}, int(pc.sum(files["size"]).as_py() or 0)
    return ServiceResult(SERVICE, storage.uri(), (target.requested,), counts, size, phases.millis).published(opts)


def delete_savepoint(client: TableMetaClient, opts: Options, instant: str) -> ServiceResult:
    """Let cleaning have the files of a savepoint.

    Raises:
        InstantNotFoundError: there is no savepoint at that instant.
        LockError: the table's lock could not be taken.
    """
    storage, phases = client.storage, Phases()
    lock = make_lock_provider(storage, opts)
    with InstantGenerator(storage, opts, client.config.timezone, lock=lock).lock, phases("delete"):
        config = current_config(storage, client.config)
        active = ActiveTimeline.load(storage, config.layout)
        refuse_pending_restore(active)
        entry = active.timeline.find(instant, Action.SAVEPOINT)
        if entry is None:
            there = ", ".join(i.requested for i in active.timeline.of_actions(Action.SAVEPOINT)) or "none"
            raise InstantNotFoundError(f"there is no savepoint {instant!r} of the table at {storage.uri()}; of {there}")
        saved = active.timeline.find(instant)
        start = active.timeline.start
        if saved is not None and start is not None and instant < start and can_archive(active.layout, saved):
            # archival has passed it; alone on the timeline it would look like the first write
            archive(storage, active, [saved], timezone=config.timezone)
        for state in active.states(entry):
            active.delete(state)
    return ServiceResult(SERVICE, storage.uri(), (instant,), {"deleted": 1}, millis=phases.millis).published(opts)


def list_savepoints(client: TableMetaClient) -> pa.Table:
    """Return the savepoints of a table (`SAVEPOINT_SCHEMA`).

    Raises:
        CorruptInstantError: one cannot be read.
    """
    active = client.active_timeline()
    rows = []
    for instant in active.timeline.completed().of_actions(Action.SAVEPOINT):
        record = active.completed_record(instant)
        found = (
            instant.requested,
            record["savepointedBy"],
            record["comments"],
            record["savepointedAt"],
            sum(len(part["savepointDataFile"]) for part in record["partitionMetadata"].values()),
        )
        rows.append(dict(zip(SAVEPOINT_SCHEMA.names, found, strict=True)))
    return pa.Table.from_pylist(rows, schema=SAVEPOINT_SCHEMA)


def _check_retained(active: ActiveTimeline, target: Instant) -> None:
    """Refuse a write before the earliest one that the last clean, or a pending one, keeps all of."""
    last = LastClean.of(active)
    kept = max(
        [plan.earliest_instant for plan in pending_cleans(active)] + ([last.earliest] if last else []), default=""
    )
    if target.requested < kept:
        raise TransactionError(
            f"a savepoint at {target.requested} cannot be created: cleaning keeps only what is read from {kept} on. "
            "Choose a later instant"
        )


def _files(table: PinnedTable, target: Instant) -> pa.Table:
    """Return the files of the snapshot (`EXPIRED_SCHEMA`), as time travel and as a restore have it."""
    view = FileSystemView.load(table)
    slices = [slices_at(view, target), view.latest_slices(target.requested)]
    found = pa.concat_tables([EXPIRED_SCHEMA.empty_table(), *map(files_of, slices)])
    return found.group_by(EXPIRED_SCHEMA.names, use_threads=False).aggregate([]).sort_by("partition")


def _to_inflight(active: ActiveTimeline, target: Instant) -> Instant:
    probe = Instant(target.requested, Action.SAVEPOINT, State.REQUESTED, None, "")
    try:
        return active.to_inflight(probe)
    except AlreadyExistsError:
        return probe
