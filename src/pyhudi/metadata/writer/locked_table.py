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

    A change to the metadata table changes the configuration, too. It returns the new one, for `with_config`.

    Attributes:
        snapshot: Current configuration and timeline of the table.
        opts: Options of the writer or service.
        reserved: Instant time that was read under the lock.
        stats_reader: Reads files of the table to build indexes.
    """

    snapshot: TableSnapshot
    opts: Options
    reserved: ReservedTime
    stats_reader: FileStatsReader

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
        """Return the table with a new configuration."""
        return replace(self, snapshot=replace(self.snapshot, config=config))

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
        """Load the metadata table's timeline by one listing."""
        return load_metadata_timeline(self.storage, self.config.version)
