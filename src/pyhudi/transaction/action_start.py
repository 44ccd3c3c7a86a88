"""First steps of every action on a table: reload its configuration and start a heartbeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.errors import TransactionError
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline import heartbeat

if TYPE_CHECKING:
    from pyhudi.storage import Storage


def current_config(storage: Storage, seen: TableConfig) -> TableConfig:
    """Return the current configuration of the table.

    Raises an error if the table was upgraded or downgraded in the meantime, or is read-only.
    """
    config = TableConfig.load(storage)
    config.check_writable()
    if config.version != seen.version:
        raise TransactionError(
            f"another writer changed the table at {storage.root} from version {seen.version} to {config.version}; "
            "open it again"
        )
    return config


def new_heartbeat(storage: Storage, instant: str, options: Mapping[str, str]) -> heartbeat.Heartbeat:
    """Return the heartbeat of a writer according to its options, not started yet."""
    policy = heartbeat.HeartbeatPolicy.of(options)
    return heartbeat.Heartbeat(
        storage, instant, interval_ms=policy.interval_ms, tolerable_misses=policy.tolerable_misses
    )
