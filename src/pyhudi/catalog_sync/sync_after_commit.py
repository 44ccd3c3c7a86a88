"""Sync of a table to a catalog after a commit."""

from __future__ import annotations

import logging

from pyhudi.catalog_sync.catalogs.catalog_kinds import catalog_kinds
from pyhudi.catalog_sync.catalogs.open_catalog import make_catalog
from pyhudi.catalog_sync.sync_settings import check_options, is_sync_enabled
from pyhudi.catalog_sync.table_sync import sync_table
from pyhudi.config import Options, options
from pyhudi.errors import ServiceAfterCommitError
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient

_log = logging.getLogger(__name__)


def check_sync_after_commit(opts: Options) -> None:
    """Check, before a write, that its commit can be synced if the options request it. Catalogs are not asked.

    Raises:
        ConfigError: Options are invalid or not supported, or the catalog is not known.
        SetupError: The package of a client is not installed.
    """
    if is_sync_enabled(opts):
        check_options(opts)
        for kind in catalog_kinds(opts):
            make_catalog(kind, opts).close()


def sync_after_commit(storage: Storage, opts: Options) -> str | None:
    """Sync a table after a commit if the options request it. The commit stays in any case.

    Args:
        storage: Storage of the table.
        opts: Options of the write, and settings of Hive by name.

    Returns:
        The error of a sync that failed, which has been logged; None: it did not fail.

    Raises:
        ServiceAfterCommitError: The sync failed, and ``hoodie.datasource.hive_sync.ignore_exceptions`` is false.
    """
    if not is_sync_enabled(opts):
        return None
    try:
        sync_table(TableMetaClient.open(storage, opts), opts)
    except Exception as error:
        text = f"the write is committed, do not run it again; the sync to the catalog after it failed: {error}"
        if not opts.get_typed(options.HIVE_SYNC_IGNORE_EXCEPTIONS):
            raise ServiceAfterCommitError(
                f"{text}; the next write, or services.sync_catalog(), syncs the table"
            ) from error
        _log.warning("%s", text)
        return text
    return None
