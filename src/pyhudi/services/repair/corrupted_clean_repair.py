"""Repair of pending cleans with unreadable plans, which make every later clean fail, because cleans continue pending
ones first."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import FormatError
from pyhudi.services.repair.active_writer_check import check_not_in_use
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.transaction.locks.lock_factory import make_lock_provider

CLEAN_FILES_SCHEMA = pa.schema([("instant", pa.string()), ("file", pa.string()), ("is_repaired", pa.bool_())])
"""One row per timeline file of a pending clean without a plan: its path relative to the root of the table, and whether
it was deleted by this call."""


def repair_clean_files(client: TableMetaClient, opts: Options, *, dry_run: bool = True) -> pa.Table:
    """Find the pending cleans with unreadable plans, and delete their timeline files. The next clean plans the
    remaining files again.

    Args:
        client: The table.
        opts: Options of locks and heartbeats.
        dry_run: Delete nothing.

    Returns:
        The files (`CLEAN_FILES_SCHEMA`), oldest first.

    Raises:
        BusyError: A write or service is running on the table.
        LockError: The lock of the table could not be acquired.
    """
    if dry_run:
        return _table(_damaged(client.active_timeline()), client, is_repaired=False)
    with make_lock_provider(client.storage, opts):
        active = client.active_timeline()
        check_not_in_use(active, opts)
        damaged = _damaged(active)
        for instant in damaged:
            active.delete(instant)
        return _table(damaged, client, is_repaired=True)


def _damaged(active: ActiveTimeline) -> list[Instant]:
    """Return the pending files of cleans without a plan, those of each instant in the required order of deletion."""
    files: list[Instant] = []
    for instant in active.timeline.pending().of_actions(Action.CLEAN):
        if not _has_plan(active, instant):
            files.extend(sorted(active.states(instant), key=lambda one: one.state is not State.INFLIGHT))
    return files


def _has_plan(active: ActiveTimeline, instant: Instant) -> bool:
    requested = active.in_state(instant, State.REQUESTED)
    if requested is None:
        return False
    try:
        decode_record(Action.CLEAN, State.REQUESTED, active.read(requested))
    except FormatError:
        return False
    return True


def _table(instants: list[Instant], client: TableMetaClient, *, is_repaired: bool) -> pa.Table:
    active = client.active_timeline()
    rows = [{"instant": i.requested, "file": active.path(i), "is_repaired": is_repaired} for i in instants]
    return pa.Table.from_pylist(rows, schema=CLEAN_FILES_SCHEMA)
