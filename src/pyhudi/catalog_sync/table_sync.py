"""Sync of a table to catalogs, by each of its names."""

from __future__ import annotations

from dataclasses import replace

from pyhudi.catalog_sync.catalogs.catalog import Catalog
from pyhudi.catalog_sync.catalogs.catalog_kinds import catalog_kinds
from pyhudi.catalog_sync.catalogs.open_catalog import open_catalog
from pyhudi.catalog_sync.entry_sync import EntrySync, OvertakenError, TableToSync
from pyhudi.catalog_sync.sync_result import CatalogSyncResult, TableSyncResult
from pyhudi.catalog_sync.sync_settings import SyncedName, SyncSettings
from pyhudi.config import Options
from pyhudi.errors import CatalogError
from pyhudi.table.meta_client import TableMetaClient

_DATABASE_COMMENT = "automatically created by hoodie"
_ATTEMPTS = 3
"""Number of times that an entry is synced while other processes sync it."""


def sync_table(client: TableMetaClient, opts: Options, *, new_timestamps: bool = False) -> CatalogSyncResult:
    """Sync a table to the catalogs of the options: create or change its entries, and record the last commit.

    Entries that are at the last commit of the table are left as they are, unless the sync is not incremental.

    Args:
        client: The table.
        opts: Options of the sync, and settings of Hive by name.
        new_timestamps: Timestamps of new entries are timestamps, not numbers, unless options say.

    Returns:
        What was changed.

    Raises:
        ConfigError: Options are invalid or not supported, or the metastore is not known.
        SetupError: The package of a client is not installed.
        UnsupportedTableError: The table has no columns yet.
        CatalogError: A catalog does not answer or refused a request, or an entry belongs to something else.
    """
    kinds = catalog_kinds(opts)
    settings = {kind: SyncSettings.from_options(opts, client.config, kind) for kind in kinds}
    state, synced = TableToSync.load(client, opts), []
    for kind in kinds:
        of_kind = settings[kind]
        of_kind = replace(of_kind, layout=replace(of_kind.layout, new_timestamps=new_timestamps))
        with open_catalog(kind, opts) as catalog:
            _ensure_database(catalog, of_kind)
            for name in of_kind.names:
                result, state = _sync_name(catalog, client, opts, state=state, settings=of_kind, name=name)
                synced.append(result)
    return CatalogSyncResult(tuple(synced))


def _sync_name(
    catalog: Catalog,
    client: TableMetaClient,
    opts: Options,
    *,
    state: TableToSync,
    settings: SyncSettings,
    name: SyncedName,
) -> tuple[TableSyncResult, TableToSync]:
    """Sync a table by one name, again if another process has synced the entry meanwhile: each may have undone what the
    other has done, with another state of the table. Return the result, and the last state."""
    overtaken: OvertakenError | None = None
    for attempt in range(1, _ATTEMPTS + 1):
        sync = EntrySync(catalog, state, settings, name, overtaken, is_last=attempt == _ATTEMPTS)
        try:
            return sync.run(), state
        except OvertakenError as error:
            overtaken, state = error, TableToSync.load(client, opts)
    raise AssertionError("the last attempt is never overtaken")


def _ensure_database(catalog: Catalog, settings: SyncSettings) -> None:
    if catalog.has_database(settings.database):
        return
    if not settings.creates_database:
        raise CatalogError(
            f"{catalog} has no database {settings.database!r}; create it, or set "
            "hoodie.datasource.hive_sync.auto_create_database=true"
        )
    catalog.create_database(settings.database, _DATABASE_COMMENT)
