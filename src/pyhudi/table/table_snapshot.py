"""A table as it is at one moment, for those who have its parts at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline


@dataclass(frozen=True, slots=True)
class TableSnapshot:
    """Table as a file-system view needs it (`pyhudi.table.view.file_system_view.OpenTable`), with a timeline that was
    read before."""

    storage: Storage
    config: TableConfig
    active: ActiveTimeline

    def active_timeline(self) -> ActiveTimeline:
        """The timeline as it was read."""
        return self.active
