"""Context of updates of the metadata table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyhudi.metadata.metadata_layout import metadata_timeline
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.timeline.active_timeline import ActiveTimeline
    from pyhudi.timeline.time_generator import ReservedTime


@dataclass(frozen=True, slots=True)
class MetadataWriteContext:
    """A table whose lock is held, for changes to its metadata table.

    ``data`` is the current timeline of the table, ``reserved`` the time that was read under the lock. ``stats_reader``
    reads the files of the table to build indexes. The configuration of the table changes meanwhile, so it is a separate
    argument.
    """

    storage: Storage
    opts: Options
    data: ActiveTimeline
    reserved: ReservedTime
    stats_reader: FileStatsReader

    def snapshot(self, config: TableConfig) -> TableSnapshot:
        """Return the table with its current configuration."""
        return TableSnapshot(self.storage, config, self.data)

    def new_time(self) -> str:
        """Return a new time, later than all known ones."""
        return self.reserved.take(self.data.latest_time)

    def completed_at(self, version: int) -> str | None:
        """Return a new completion time for a timeline with completion times, otherwise None."""
        return self.new_time() if version >= 8 else None

    def own_timeline(self, config: TableConfig) -> ActiveTimeline:
        """Load the metadata table's timeline by one listing."""
        return metadata_timeline(self.storage, config.version)
