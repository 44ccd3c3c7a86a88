"""Desired entry of a table in a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.catalog_sync.catalogs.catalog_entries import (
    EXTERNAL_TABLE,
    MANAGED_TABLE,
    VIEW,
    CatalogColumn,
    CatalogEntry,
)
from pyhudi.catalog_sync.entries.hive_columns import hive_columns, hive_type
from pyhudi.catalog_sync.entries.spark_properties import spark_properties, without_spark_schema
from pyhudi.catalog_sync.entries.storage_formats import storage_format
from pyhudi.catalog_sync.sync_settings import SyncedName, TableLayout
from pyhudi.catalog_sync.synced_instants import LAST_COMMIT
from pyhudi.errors import CatalogError
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.table_types import COMMENT

_IS_EXTERNAL = "EXTERNAL"
_AS_READ_OPTIMIZED = "hoodie.query.as.ro.table"
_PROVIDER = "hudi"
_TIMESTAMP = "timestamp"
_INPUT_FORMATS = ("org.apache.hudi.", "com.uber.hoodie.")


class UnchangeableEntryError(CatalogError):
    """An entry cannot be changed as required, unless it is created again."""


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """Content of the entries of a table.

    Attributes:
        schema: Columns of the table.
        location: URI of the table.
        layout: How entries look.
    """

    schema: pa.Schema
    location: str
    layout: TableLayout

    def new_entry(self, database: str, name: SyncedName) -> CatalogEntry:
        """Return the entry of a table that the catalog does not have."""
        has, new = self.layout.has_timestamps, self.layout.new_timestamps
        return self._entry(database, name, timestamps=new if has is None else has)

    def _entry(self, database: str, name: SyncedName, *, timestamps: bool) -> CatalogEntry:
        layout = self.layout
        data, partitioning = hive_columns(
            self._synced_schema(), layout.partition_fields, timestamps=timestamps, comments=layout.has_comments
        )
        return CatalogEntry(
            database,
            name.table,
            data,
            partitioning,
            self.location,
            storage_format(layout.file_format, realtime=name.realtime, pre_apache=layout.pre_apache),
            self._serde_properties(name),
            self._properties() | ({} if layout.is_managed else {_IS_EXTERNAL: "TRUE"}),
            MANAGED_TABLE if layout.is_managed else EXTERNAL_TABLE,
        )

    def changed_entry(self, entry: CatalogEntry, name: SyncedName) -> CatalogEntry:
        """Return an existing entry with the desired content. Its other properties, its comments unless they are synced,
        and whether it is managed stay.

        Raises:
            UnchangeableEntryError: The entry has other partition columns.
        """
        has = self.layout.has_timestamps
        new = self._entry(entry.database, name, timestamps=self._timestamps_of(entry) if has is None else has)
        _check_partition_columns(entry, new)
        others = without_spark_schema(entry.properties) if self.layout.is_datasource else entry.properties
        return replace(
            entry,
            columns=new.columns if self.layout.has_comments else _with_comments(new.columns, entry.columns),
            location=new.location,
            format=new.format,
            serde_properties={**entry.serde_properties, **new.serde_properties},
            properties={**others, **self._properties()},
        )

    def _timestamps_of(self, entry: CatalogEntry) -> bool:
        """Return True if timestamps of an entry are timestamps, not numbers."""
        stored = {column.name: column.type for column in (*entry.columns, *entry.partition_columns)}
        names = (field.name.lower() for field in self.schema if _TIMESTAMP in hive_type(field.type, timestamps=True))
        types = [stored[name] for name in names if name in stored]
        return any(_TIMESTAMP in kind for kind in types) if types else self.layout.new_timestamps

    def _synced_schema(self) -> pa.Schema:
        return self.schema if self.layout.has_meta_columns else remove_meta_columns(self.schema)

    def _properties(self) -> dict[str, str]:
        layout = self.layout
        own = dict(layout.properties or {})
        if not layout.is_datasource:
            return own
        schema = self._synced_schema() if layout.has_comments else _without_comments(self._synced_schema())
        return own | spark_properties(schema, layout.partition_fields, layout.schema_part_length, layout.spark_version)

    def _serde_properties(self, name: SyncedName) -> dict[str, str]:
        own = {"serialization.format": "1", **(self.layout.serde_properties or {})}
        if not self.layout.is_datasource:
            return own
        return {**own, **self.recorded_serde(), _AS_READ_OPTIMIZED: str(name.read_optimized).lower()}

    def recorded_serde(self) -> dict[str, str]:
        """Return the properties of a SerDe that are recorded with the last commit."""
        return {"path": self.location}


def _without_comments(schema: pa.Schema) -> pa.Schema:
    fields = []
    for field in schema:
        kept = {key: value for key, value in (field.metadata or {}).items() if key != COMMENT}
        fields.append(field.with_metadata(kept or None))
    return pa.schema(fields)


def check_is_hudi(entry: CatalogEntry) -> None:
    """Check that an entry is one of a Hudi table, which may be changed.

    Raises:
        CatalogError: It is another one.
    """
    provider = entry.properties.get("spark.sql.sources.provider", "").lower()
    is_hudi = provider == _PROVIDER or entry.format.input.startswith(_INPUT_FORMATS) or LAST_COMMIT in entry.properties
    if is_hudi and entry.type != VIEW:
        return
    kind = "a view" if entry.type == VIEW else f"a table of another format ({provider or entry.format.input})"
    raise CatalogError(
        f"{entry.full_name} in the catalog is {kind}, which is not replaced; sync to another name "
        "(hoodie.datasource.hive_sync.table, hoodie.datasource.hive_sync.database), or drop it"
    )


def _check_partition_columns(entry: CatalogEntry, new: CatalogEntry) -> None:
    stored = [(column.name, column.type) for column in entry.partition_columns]
    wanted = [(column.name, column.type) for column in new.partition_columns]
    if stored != wanted:
        raise UnchangeableEntryError(
            f"{entry.full_name} in the catalog has the partition columns {_listed(stored)}, which cannot be changed to "
            f"{_listed(wanted)}; drop it, or set hoodie.datasource.hive_sync.recreate_table_on_error=true"
        )


def _listed(columns: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns) or "(none)"


def _with_comments(columns: tuple[CatalogColumn, ...], stored: tuple[CatalogColumn, ...]) -> tuple[CatalogColumn, ...]:
    comments: Mapping[str, str] = {column.name: column.comment for column in stored}
    return tuple(replace(column, comment=comments.get(column.name, column.comment)) for column in columns)
