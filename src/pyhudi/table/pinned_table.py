"""One snapshot of a table, so that all parts of a plan see the same timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.storage.storage_protocol import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.table.meta_client import TableMetaClient
    from pyhudi.timeline.active_timeline import ActiveTimeline


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """Snapshot of a table: its configuration, and the timeline it had when it was pinned.

    File-system views, plans and services that share one see the same commits, whatever others publish meanwhile.

    Attributes:
        storage: Where the table is.
        config: The table's hoodie.properties.
        active: The timeline as it was listed.
    """

    storage: Storage
    config: TableConfig
    active: ActiveTimeline

    @classmethod
    def of(cls, client: TableMetaClient) -> PinnedTable:
        """The table as it is now: one listing of the timeline."""
        return cls(client.storage, client.config, client.active_timeline())

    def again(self) -> PinnedTable:
        """The same table as it is now."""
        return PinnedTable(self.storage, self.config, self.active.reload())

    def active_timeline(self) -> ActiveTimeline:
        """The timeline of that moment."""
        return self.active
