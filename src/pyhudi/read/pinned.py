"""A table at one moment, so that all parts of a plan see the same timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.storage.base import Storage
    from pyhudi.table.config import TableConfig
    from pyhudi.table.metaclient import TableMetaClient
    from pyhudi.timeline.active import ActiveTimeline


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A table with the timeline it had when it was pinned."""

    storage: Storage
    config: TableConfig
    active: ActiveTimeline

    @classmethod
    def of(cls, client: TableMetaClient) -> PinnedTable:
        """The table as it is now: one listing of the timeline."""
        return cls(client.storage, client.config, client.active_timeline())

    def active_timeline(self) -> ActiveTimeline:
        """The timeline of that moment."""
        return self.active
