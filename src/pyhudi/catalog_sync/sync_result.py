"""Result of a sync."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class TableSyncResult:
    """What a sync changed in one table of a catalog.

    Attributes:
        database: Its database.
        table: Its name.
        is_created: It was created, or created again.
        is_altered: Columns, properties, format or location were changed.
        partitions_added: Number of partitions that were added.
        partitions_moved: Number of partitions whose location was changed.
        partitions_dropped: Number of partitions that were dropped.
    """

    database: str
    table: str
    is_created: bool = False
    is_altered: bool = False
    partitions_added: int = 0
    partitions_moved: int = 0
    partitions_dropped: int = 0

    @property
    def is_changed(self) -> bool:
        """True if anything but the time of the last synced commit was changed."""
        partitions = self.partitions_added + self.partitions_moved + self.partitions_dropped
        return self.is_created or self.is_altered or partitions > 0

    def after(self, earlier: TableSyncResult) -> Self:
        """Return the result of two attempts, of which this is the later one."""
        return replace(
            self,
            is_created=self.is_created or earlier.is_created,
            is_altered=self.is_altered or earlier.is_altered,
            partitions_added=self.partitions_added + earlier.partitions_added,
            partitions_moved=self.partitions_moved + earlier.partitions_moved,
            partitions_dropped=self.partitions_dropped + earlier.partitions_dropped,
        )


@dataclass(frozen=True, slots=True)
class CatalogSyncResult:
    """Result of a sync: one entry per table of the catalog, in the order in which they were synced."""

    tables: tuple[TableSyncResult, ...] = ()

    @property
    def is_changed(self) -> bool:
        """True if anything but the time of the last synced commit was changed in one of them."""
        return any(table.is_changed for table in self.tables)
