"""Checks at the start of every action on a table."""

from __future__ import annotations

from pyhudi.config.property_keys import BOOTSTRAP_UNFINISHED
from pyhudi.errors import TransactionError
from pyhudi.storage import Storage
from pyhudi.table.bootstrap_index import BOOTSTRAP_INSTANTS
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.moved_instants import load_whole_timeline
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action


def current_config(storage: Storage, expected: TableConfig) -> TableConfig:
    """Return the current configuration of the table.

    Raises an error if the table was upgraded or downgraded in the meantime, or is read-only.
    """
    config = TableConfig.load(storage)
    config.check_writable()
    if config.version != expected.version:
        raise TransactionError(
            f"another writer changed the table at {storage.root} from version {expected.version} to {config.version}; "
            "open it again"
        )
    return config


def current_snapshot(storage: Storage, expected: TableConfig) -> TableSnapshot:
    """Return the current configuration and timeline of the table, to be changed under its lock.

    Args:
        storage: Storage of the table.
        expected: Configuration with which it was opened.

    Raises:
        TransactionError: A restore is pending, the table was upgraded or downgraded in the meantime, or Apache Hudi has
            changed its version halfway.
        UnsupportedTableError: The table is read-only.
    """
    config = current_config(storage, expected)
    active = load_whole_timeline(storage, config.layout)
    refuse_pending_restore(active)
    return TableSnapshot(storage, config, active)


def refuse_pending_restore(active: ActiveTimeline) -> None:
    """Refuse to write to a table with an unfinished restore."""
    pending = active.timeline.pending().of_actions(Action.RESTORE).first
    if pending is not None:
        raise TransactionError(
            f"a restore (instant {pending.requested}) was started but not completed; run the restore again before "
            "writing"
        )


def refuse_pending_bootstrap(active: ActiveTimeline, config: TableConfig) -> None:
    """Refuse to write to a table with an unfinished bootstrap: after another write it could not be finished."""
    pending = next((i for i in active.timeline.pending() if i.requested in BOOTSTRAP_INSTANTS), None)
    if pending is not None:
        raise TransactionError(
            f"the bootstrap of the table at {active.storage.uri()} (instant {pending.requested}) was begun but not "
            "completed, so rows of its source are missing; run the same bootstrap again before writing, or roll the "
            "instant back to go on without them"
        )
    others = (i for i in active.timeline.writes().completed() if i.requested not in BOOTSTRAP_INSTANTS)
    if BOOTSTRAP_UNFINISHED in config.properties and next(others, None) is None:
        raise TransactionError(
            f"the bootstrap of the table at {active.storage.uri()} was interrupted before it had begun to write all "
            "rows of its source; run the same bootstrap again before writing, or remove the property "
            f"{BOOTSTRAP_UNFINISHED} to go on without them "
            f"(HudiTable.services.change_properties(remove=[{BOOTSTRAP_UNFINISHED!r}]))"
        )
