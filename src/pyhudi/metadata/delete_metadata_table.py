"""Disabling of the metadata table, required before a write that does not maintain it.

After a commit that is missing in the metadata table, Apache Hudi silently returns wrong rows. If
``hoodie.table.metadata.partitions`` is empty, every reader lists files instead, and the next write of Apache Hudi
rebuilds the metadata table with the indexes in ``.hoodie/.index_defs/index.json``. The steps are ordered so that
leftovers after a crash are never misread:

1. The properties (one atomic file): from now on nobody reads the metadata table.
2. Its data: a rebuild deletes the partition folders anyway.
3. Its archived timeline, then its active timeline, which belong to unused data.
4. Its own ``hoodie.properties``: until then the folder is a table, afterwards an empty folder.
"""

from __future__ import annotations

from pyhudi.config.property_keys import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import META_FOLDER, METADATA_FOLDER, METADATA_META_FOLDER
from pyhudi.table.config.table_config import TableConfig


def has_metadata_table(config: TableConfig) -> bool:
    """Return True if the table declares metadata partitions, complete or being built."""
    return any(config.properties.get(key, "").strip() for key in (METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT))


def delete_metadata_table(storage: Storage, config: TableConfig) -> TableConfig:
    """Disable the metadata table and delete it. Return the new configuration of the table.

    Does nothing for a table without one. Completes an earlier interrupted call. If there are concurrent writers, the
    caller holds the lock of the table.
    """
    if has_metadata_table(config):
        config = config.updated(storage, remove=(METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT))
    _delete_folder(storage)
    return config


def _delete_folder(storage: Storage) -> None:
    names = storage.list_dirs(METADATA_FOLDER)
    if not names:
        return
    for name in names:
        if name != META_FOLDER:
            storage.delete_tree(f"{METADATA_FOLDER}/{name}")
    for history in (f"{METADATA_META_FOLDER}/timeline/history", f"{METADATA_META_FOLDER}/archived"):
        storage.delete(f"{history}/_version_")
        storage.delete_tree(history)
    # If completed files were deleted before the pending ones of the same instant, these would look like failed writes
    # to be rolled back. The reverse order of names is: requested, inflight and completed file of one instant.
    timeline_files = storage.list(METADATA_META_FOLDER, recursive=True)["path"].to_pylist()
    paths = [p for p in timeline_files if not p.endswith("/hoodie.properties")]
    for batch in (
        [p for p in paths if p.endswith(".requested")],
        [p for p in paths if p.endswith("inflight")],
        [p for p in paths if not p.endswith((".requested", "inflight"))],
    ):
        storage.delete_many(batch)
    storage.delete_tree(METADATA_FOLDER)
