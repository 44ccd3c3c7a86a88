"""What whoever keeps the metadata table up to date has at hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.metadata.filefacts import LOCAL, FileFacts
from pyhudi.metadata.home import metadata_timeline

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.storage import Storage
    from pyhudi.table.config import TableConfig
    from pyhudi.timeline.active import ActiveTimeline


@dataclass(frozen=True, slots=True)
class Upkeep:
    """A table whose lock is held, to change its metadata table.

    ``data`` is the table's timeline as it is now; ``completion`` gives a new completion time, later than all that are
    known (asked for from version 8 on). ``facts`` reads the files of the table where indexes are built of them. The
    table's configuration is changed by the work, so it is passed along.
    """

    storage: Storage
    opts: Options
    data: ActiveTimeline
    completion: Callable[[], str]
    facts: FileFacts = LOCAL

    def completed_at(self, version: int) -> str | None:
        """A new completion time for a timeline that has such times."""
        return self.completion() if version >= 8 else None

    def own_timeline(self, config: TableConfig) -> ActiveTimeline:
        """The metadata table's timeline as it is now: one listing."""
        return metadata_timeline(self.storage, config.version)
