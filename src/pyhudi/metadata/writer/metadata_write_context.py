"""Context of updates of the metadata table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.metadata.metadata_layout import metadata_timeline
from pyhudi.metadata.writer.file_stats_reader import LOCAL, FileStatsReader

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline


@dataclass(frozen=True, slots=True)
class MetadataWriteContext:
    """A table whose lock is held, to change its metadata table.

    ``data`` is the table's timeline as it is now; ``completion`` gives a new completion time, later than all that are
    known (asked for from version 8 on). ``stats_reader`` reads the files of the table where indexes are built of them.
    The table's configuration is changed by the work, so it is passed along.
    """

    storage: Storage
    opts: Options
    data: ActiveTimeline
    completion: Callable[[], str]
    stats_reader: FileStatsReader = LOCAL

    def completed_at(self, version: int) -> str | None:
        """A new completion time for a timeline that has such times."""
        return self.completion() if version >= 8 else None

    def own_timeline(self, config: TableConfig) -> ActiveTimeline:
        """The metadata table's timeline as it is now: one listing."""
        return metadata_timeline(self.storage, config.version)
