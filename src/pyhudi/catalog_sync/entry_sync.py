"""Sync of one entry of a catalog: its columns, properties and partitions, and the last commit that it has."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from pyhudi.catalog_sync.catalogs.catalog import Catalog
from pyhudi.catalog_sync.catalogs.catalog_entries import CatalogEntry, CatalogPartition
from pyhudi.catalog_sync.entries.planned_entry import EntryPlan, UnchangeableEntryError, check_is_hudi
from pyhudi.catalog_sync.partitions.partition_changes import (
    PartitionChanges,
    Values,
    partitions_of_paths,
    plan_changes,
    same_place,
)
from pyhudi.catalog_sync.partitions.partition_extractors import decoded
from pyhudi.catalog_sync.partitions.table_partitions import ChangedPartitions, TablePartitions
from pyhudi.catalog_sync.sync_result import TableSyncResult
from pyhudi.catalog_sync.sync_settings import SyncedName, SyncSettings
from pyhudi.catalog_sync.synced_instants import LAST_COMPLETION, SyncedInstants
from pyhudi.config import Options, options
from pyhudi.errors import AlreadyInCatalogError, NotInCatalogError, RefusedByCatalogError, UnsupportedTableError
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.instant import Instant

_TRIAL = "_pyhudi_trial"
"""End of the name of an entry that is created and dropped to see whether the catalog takes it. The name is always the
same, so that a sync finds what a killed one has left."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableToSync:
    """A table to be synced, at one point in time.

    Attributes:
        table: Snapshot.
        partitions: Partitions of the snapshot.
        schema: Columns.
        now: Last commit.
    """

    table: TableSnapshot
    partitions: TablePartitions
    schema: pa.Schema
    now: SyncedInstants

    @classmethod
    def load(cls, client: TableMetaClient, opts: Options) -> Self:
        """Return the table as it is now.

        Raises:
            UnsupportedTableError: It has no commit yet.
        """
        table = TableSnapshot.load(client)
        refuse_moved_instants(table.active)
        now = SyncedInstants.of_timeline(table.active.timeline)
        schema = resolve_table_schema(table)
        if schema is None or now is None:
            raise UnsupportedTableError(
                f"the table at {table.storage.uri()} has no commit yet, so there is nothing to sync"
            )
        return cls(table, TablePartitions(table, opts), schema.schema, now)


class OvertakenError(Exception):
    """Another process has recorded a commit during a sync of an entry.

    Attributes:
        synced: Commit up to which the entry was synced before; None: none.
        result: What was changed.
    """

    def __init__(self, synced: SyncedInstants | None, result: TableSyncResult) -> None:
        super().__init__(f"{result.database}.{result.table} was synced by another process meanwhile")
        self.synced, self.result = synced, result


@dataclass(frozen=True, slots=True)
class EntrySync:
    """Sync of a table by one name.

    Attributes:
        catalog: The catalog.
        state: The table.
        settings: Settings of the sync.
        name: The name.
        earlier: The attempt before, which was overtaken by another sync.
        is_last: The commit is recorded whatever another sync has recorded meanwhile. If it is older than that, the next
            sync begins at it.
    """

    catalog: Catalog
    state: TableToSync
    settings: SyncSettings
    name: SyncedName
    earlier: OvertakenError | None
    is_last: bool

    @property
    def plan(self) -> EntryPlan:
        """Content of the entry."""
        location = self.catalog.location(self.state.table.storage.uri())
        return EntryPlan(self.state.schema, location, self.settings.layout)

    def run(self) -> TableSyncResult:
        """Sync the entry.

        Raises:
            OvertakenError: Another process has synced it meanwhile.
        """
        entry = self.catalog.table(self.settings.database, self.name.table)
        if entry is None:
            return self._create()
        check_is_hudi(entry)
        if same_place(entry.location) != same_place(self.plan.location):
            _log.info("%s was at %s, and is created again", entry.full_name, entry.location)
            return self._recreate(entry)
        synced = self._synced(entry)
        if self.earlier is None and synced is not None and synced.is_at(self.state.now):
            return TableSyncResult(entry.database, entry.name)
        try:
            wanted = self._change(entry)
        except UnchangeableEntryError as error:
            if not self.settings.recreates_on_error:
                raise
            _log.warning("%s could not be changed, and is created again: %s", entry.full_name, error)
            return self._recreate(entry)
        return self._complete(wanted, synced, TableSyncResult(entry.database, entry.name, is_altered=wanted != entry))

    def _synced(self, entry: CatalogEntry) -> SyncedInstants | None:
        """Return the commit from which changes of partitions are taken; None: all partitions are compared."""
        if not self.settings.is_incremental:
            return None
        return SyncedInstants.of_properties(entry.properties) if self.earlier is None else self.earlier.synced

    def _create(self) -> TableSyncResult:
        new = self.plan.new_entry(self.settings.database, self.name)
        try:
            self.catalog.create_table(new)
        except AlreadyInCatalogError:  # by another writer, at the same time
            return self.run()
        created = self.catalog.table(new.database, new.name) or new  # with what the metastore adds
        return self._complete(created, None, TableSyncResult(created.database, created.name, is_created=True))

    def _recreate(self, entry: CatalogEntry) -> TableSyncResult:
        """Drop an entry and create it again, if the catalog takes the new one: under another name it is tried first."""
        trial = self.plan.new_entry(self.settings.database, SyncedName(f"{self.name.table}{_TRIAL}"))
        left = self.catalog.table(trial.database, trial.name)
        if left is not None:  # by a sync that was killed
            check_is_hudi(left)
            self._drop(left)
        with suppress(AlreadyInCatalogError):  # tried by another writer, at the same time
            self.catalog.create_table(trial)
        self._drop(trial)
        self._drop(entry)
        return self._create()

    def _drop(self, entry: CatalogEntry) -> None:
        """Drop an entry, unless another writer has just dropped it."""
        with suppress(NotInCatalogError):
            self.catalog.drop_table(entry.database, entry.name)

    def _change(self, entry: CatalogEntry) -> CatalogEntry:
        wanted = self.plan.changed_entry(entry, self.name)
        if wanted != entry:
            columns = wanted.columns != entry.columns
            try:
                self.catalog.alter_table(wanted, cascade=columns and bool(wanted.partition_columns))
            except RefusedByCatalogError as error:
                raise UnchangeableEntryError(
                    f"{entry.full_name} cannot be changed: {error}; {options.HIVE_SYNC_RECREATE_ON_ERROR.key}=true "
                    "drops the entry, not the files, and creates it again"
                ) from error
        return wanted

    def _complete(self, entry: CatalogEntry, synced: SyncedInstants | None, result: TableSyncResult) -> TableSyncResult:
        """Sync the partitions, and record the last commit, after which the sync counts as done."""
        if entry.partition_columns and self.settings.layout.adds_partitions:
            changes = self._partition_changes(entry, synced)
            self._apply(entry, changes, synced)
            result = replace(
                result,
                partitions_added=len(changes.add),
                partitions_moved=len(changes.move),
                partitions_dropped=len(changes.drop),
            )
        if self.earlier is not None:
            result = result.after(self.earlier.result)
        if result.is_changed or not self.settings.is_conditional:
            self._record(entry, synced, result)
        return result

    def _record(self, entry: CatalogEntry, synced: SyncedInstants | None, result: TableSyncResult) -> None:
        """Record the last commit in the entry as it is now: another process may have changed it meanwhile."""
        stored = self.catalog.table(entry.database, entry.name)
        before = SyncedInstants.of_properties(entry.properties)
        is_overtaken = stored is None or SyncedInstants.of_properties(stored.properties) != before
        if is_overtaken and not self.is_last:
            raise OvertakenError(synced, result)
        stored = stored or entry
        others = {key: value for key, value in stored.properties.items() if key != LAST_COMPLETION}
        recorded = replace(
            stored,
            properties={**others, **self.state.now.as_properties()},
            serde_properties={**stored.serde_properties, **self.plan.recorded_serde()},
        )
        if recorded != stored:
            self.catalog.alter_table(recorded)

    def _partition_changes(self, entry: CatalogEntry, synced: SyncedInstants | None) -> PartitionChanges:
        commits = None if synced is None else self._commits_after(synced)
        if commits is None:
            wanted = self._partitions(self.state.partitions.all)
            return plan_changes(wanted, self.catalog.partitions(entry))
        changed = self.state.partitions.changed(commits)
        wanted, gone = self._partitions(changed.present), self._partitions(changed.gone).keys()
        encoded = self._encoded(changed)
        others = (gone | encoded.keys()) - wanted.keys()
        stored = list(self.catalog.partitions_of(entry, [*wanted, *sorted(others)]))
        # Others may have the same text as their decoded value: `a%2Fb` is also that of the path `a%252Fb`.
        twice = {one.values for one in stored if one.values in encoded and _is_at(one, encoded[one.values])}
        return plan_changes(wanted, stored, gone | twice)

    def _commits_after(self, synced: SyncedInstants) -> list[Instant] | None:
        """Return the commits after a sync; None if the timeline does not have all of them."""
        timeline = self.state.table.active.timeline
        return synced.later(timeline) if synced.is_in(timeline) else None  # archived, or undone by a restore

    def _partitions(self, paths: Iterable[str]) -> dict[Values, CatalogPartition]:
        layout = self.settings.layout
        extractor = decoded(layout.extractor) if layout.decodes_paths else layout.extractor
        return partitions_of_paths(paths, extractor, self.plan.location, layout.partition_fields)

    def _encoded(self, changed: ChangedPartitions) -> dict[Values, CatalogPartition]:
        """Return the partitions by the values as in their URL-encoded paths, by which Apache Hudi adds them: beside the
        decoded ones, their rows would be there twice."""
        layout = self.settings.layout
        paths = [path for path in (*changed.present, *changed.gone) if layout.decodes_paths and "%" in path]
        return partitions_of_paths(paths, layout.extractor, self.plan.location, layout.partition_fields)

    def _apply(self, entry: CatalogEntry, changes: PartitionChanges, synced: SyncedInstants | None) -> None:
        if changes.add:
            self.catalog.add_partitions(entry, changes.add)
        if changes.move:
            self.catalog.move_partitions(entry, changes.move)
        if changes.drop:
            self.catalog.drop_partitions(entry, changes.drop)
        if self.settings.touches_partitions and synced is not None and changes.keep:
            self.catalog.touch_partitions(entry, [one.values for one in changes.keep])


def _is_at(partition: CatalogPartition, other: CatalogPartition) -> bool:
    return same_place(partition.location) == same_place(other.location)
