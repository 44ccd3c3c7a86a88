"""Snapshot of a table, so that all parts of a plan use the same timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pyhudi.errors import InstantNotFoundError
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """Snapshot of a table: its configuration and timeline at the time it was pinned.

    File-system views, plans and services that share a snapshot see the same commits, regardless of later ones.

    Attributes:
        storage: Storage of the table.
        config: Content of hoodie.properties.
        active: Timeline at that time.
    """

    storage: Storage
    config: TableConfig
    active: ActiveTimeline

    @classmethod
    def load(cls, client: TableMetaClient) -> TableSnapshot:
        """Pin the current state of the table, with one listing of the timeline."""
        return cls(client.storage, client.config, client.active_timeline())

    def reload(self) -> TableSnapshot:
        """Return a new snapshot of the same table."""
        return TableSnapshot(self.storage, self.config, self.active.reload())

    def active_timeline(self) -> ActiveTimeline:
        """Return the pinned timeline."""
        return self.active


def with_snapshot(
    pin: Callable[[], TableSnapshot], read: Callable[[TableSnapshot], _Result]
) -> tuple[TableSnapshot, _Result]:
    """Pin a table and read its timeline, again if another process has archived or rolled back what is read meanwhile.

    Returns:
        The snapshot and what was read.

    Raises:
        InstantNotFoundError: It happened twice.
    """
    table = pin()
    try:
        return table, read(table)
    except InstantNotFoundError:
        table = pin()
        return table, read(table)
