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
    """The table's configuration as of now; refuses one that was upgraded or downgraded meanwhile or is read-only."""
    config = TableConfig.load(storage)
    config.check_writable()
    if config.version != seen.version:
        raise TransactionError(
            f"the table at {storage.root} was changed from version {seen.version} to {config.version} by another "
            "writer; open it again"
        )
    return config


def new_heartbeat(storage: Storage, instant: str, options: Mapping[str, str]) -> heartbeat.Heartbeat:
    """The signs of life that a writer gives, by its options; not begun yet."""
    policy = heartbeat.HeartbeatPolicy.of(options)
    return heartbeat.Heartbeat(
        storage, instant, interval_ms=policy.interval_ms, tolerable_misses=policy.tolerable_misses
    )
