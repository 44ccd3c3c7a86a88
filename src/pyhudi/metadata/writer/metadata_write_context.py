"""Context of updates of the metadata table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.metadata.metadata_layout import metadata_timeline
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline


@dataclass(frozen=True, slots=True)
class MetadataWriteContext:
    """A table whose lock is held, for changes to its metadata table.

    ``data`` is the current timeline of the table. ``completion`` returns a new completion time, later than all known
    ones (used from version 8 on). ``stats_reader`` reads the files of the table to build indexes. ``ensure_held``
    raises LockError if the lock was lost during the work, which may be long. The configuration of the table changes
    meanwhile, so it is a separate argument.
    """

    storage: Storage
    opts: Options
    data: ActiveTimeline
    completion: Callable[[], str]
    stats_reader: FileStatsReader = LOCAL
    ensure_held: Callable[[], None] = lambda: None

    def completed_at(self, version: int) -> str | None:
        """Return a new completion time for a timeline with completion times, otherwise None."""
        return self.completion() if version >= 8 else None

    def own_timeline(self, config: TableConfig) -> ActiveTimeline:
        """Load the metadata table's timeline by one listing."""
        return metadata_timeline(self.storage, config.version)
