"""A table whose lock is held, for changes to its metadata table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyhudi.config import Options
from pyhudi.metadata.metadata_layout import load_metadata_timeline
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.time_generator import ReservedTime


@dataclass(frozen=True, slots=True)
class LockedTable:
    """A table whose lock is held, with its configuration and timeline.

    A change of the partitions of the metadata table changes the configuration, too. It returns the new one, for
    `with_config`.

    Attributes:
        snapshot: Current configuration and timeline of the table.
        opts: Options of the writer or service.
        reserved: Instant time that was read under the lock.
        stats_reader: Reads files of the table to build indexes.
        metadata_timeline: Timeline of its metadata table, if it has been loaded under the lock, which all other
            processes that change it need, too.
    """

    snapshot: TableSnapshot
    opts: Options
    reserved: ReservedTime
    stats_reader: FileStatsReader
    metadata_timeline: ActiveTimeline | None = None

    @property
    def storage(self) -> Storage:
        """Storage of the table."""
        return self.snapshot.storage

    @property
    def config(self) -> TableConfig:
        """Current content of hoodie.properties."""
        return self.snapshot.config

    @property
    def active(self) -> ActiveTimeline:
        """Current timeline of the table."""
        return self.snapshot.active

    def with_config(self, config: TableConfig) -> LockedTable:
        """Return the table with a new configuration. The timeline of its metadata table, of which partitions may have
        been built or deleted, is loaded again then."""
        if config is self.config:
            return self
        return replace(self, snapshot=replace(self.snapshot, config=config), metadata_timeline=None)

    def with_metadata_timeline(self, active: ActiveTimeline) -> LockedTable:
        """Return the table with the timeline of its metadata table. Further changes of that are made through it."""
        return replace(self, metadata_timeline=active)

    def with_options(self, opts: Options) -> LockedTable:
        """Return the table with other options."""
        return replace(self, opts=opts)

    def new_time(self) -> str:
        """Return a new time, later than all known ones."""
        return self.reserved.take(self.active.latest_time)

    def completed_at(self, version: int) -> str | None:
        """Return a new completion time for a timeline with completion times, otherwise None."""
        return self.new_time() if version >= 8 else None

    def load_metadata_timeline(self) -> ActiveTimeline:
        """Return the metadata table's timeline, loaded by one listing unless it is known."""
        return self.metadata_timeline or load_metadata_timeline(self.storage, self.config.version)
