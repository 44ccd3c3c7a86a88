"""Removal of a table: one that was created for a failed write, or any with its rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pyarrow.compute as pc

from pyhudi.errors import HudiError
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import META_FOLDER, PARTITION_METADATA
from pyhudi.table.config.properties_file import BACKUP_PATH, PATH
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.locks.lock_factory import make_lock_provider

_log = logging.getLogger(__name__)

_LOCKS = (join_path(META_FOLDER, "lock"), join_path(META_FOLDER, ".locks"))
"""Files and folders of the table's lock."""


def remove_table(storage: Storage) -> None:
    """Remove a table with all its files.

    Raises:
        StorageError: Files were not removed.
    """
    storage.delete(BACKUP_PATH)  # Of a rewrite that was interrupted.
    storage.delete(PATH)  # Without its properties the rest is no table, regardless of interruptions.
    storage.delete_tree("")


def remove_after_failure(storage: Storage, options: Mapping[str, str]) -> None:
    """Remove a table that was created in an empty folder for a write that failed, unless it has any write.

    Only a warning is logged if that is not possible, because the error of the write is the one to report.
    """
    try:
        remove_empty_table(storage, options, folder_was_empty=True)
    except HudiError as failure:
        _log.warning("the empty table at %s was not removed: %s", storage.uri(), failure)


def remove_empty_table(storage: Storage, options: Mapping[str, str], *, folder_was_empty: bool = False) -> None:
    """Remove a table without any commits or running writes. No write can start in the meantime, because the lock of the
    table is held.

    The properties are deleted second to last: until then there is an empty table, afterwards none, regardless of
    interruptions.

    Args:
        storage: Storage of the table.
        options: Options of the lock.
        folder_was_empty: There were no files before the table was created, so the metadata files of partitions, which
            a rollback keeps, are its own and are deleted, too.

    Raises:
        LockError: The lock of the table could not be acquired.
        StorageError, TableError: The table was not removed.
    """
    with make_lock_provider(storage, options) as lock:
        client = TableMetaClient.open(storage)
        if client.active_timeline().timeline.writes():
            return
        lock.ensure_held()
        if folder_was_empty:
            paths = storage.list(recursive=True)["path"]
            storage.delete_many(paths.filter(pc.match_substring(paths, PARTITION_METADATA)).to_pylist())
        for name in storage.list_dirs(META_FOLDER):
            if (folder := join_path(META_FOLDER, name)) not in _LOCKS:
                storage.delete_tree(folder)
        files = storage.list(META_FOLDER)["path"].to_pylist()
        lock.ensure_held()
        storage.delete_many(path for path in files if path not in (PATH, *_LOCKS))
        storage.delete(PATH)
        if not storage.list(META_FOLDER, recursive=True).num_rows:
            storage.delete_tree(META_FOLDER)
