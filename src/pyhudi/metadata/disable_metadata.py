"""The least a writer must do that does not maintain the metadata table: take it out of use before it writes.

A commit that the metadata table does not know of makes Apache Hudi return wrong rows without a word. When
``hoodie.table.metadata.partitions`` is empty, every reader lists files instead, and Apache Hudi builds the metadata
table anew at its next write, with the indexes that ``.hoodie/.index_defs/index.json`` still names. So: first the
property, then the folder, in an order in which what is left over after a kill never misleads anybody:

1. the properties (one atomic file): from here on nobody reads the metadata table;
2. its data: whoever builds it anew wipes the partition folders anyway;
3. its history, then its timeline: fewer instants of a table whose data nobody uses;
4. its own ``hoodie.properties``: until then the folder is a table, after it an empty folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.config.table_config import TableConfig

METADATA_FOLDER = ".hoodie/metadata"
PARTITIONS = "hoodie.table.metadata.partitions"
PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"


def is_attached(config: TableConfig) -> bool:
    """Return True if the table declares metadata partitions, complete or being built."""
    return any(config.properties.get(key, "").strip() for key in (PARTITIONS, PARTITIONS_INFLIGHT))


def detach_metadata_table(storage: Storage, config: TableConfig) -> TableConfig:
    """Take the metadata table out of use and delete it; returns the table's configuration from then on.

    Does nothing for a table without one. Finishes what an earlier call left when it was killed. The caller holds the
    table lock where several writers are about.
    """
    if is_attached(config):
        config = config.updated(storage, remove=(PARTITIONS, PARTITIONS_INFLIGHT))
    _delete_folder(storage)
    return config


def _delete_folder(storage: Storage) -> None:
    names = storage.list_dirs(METADATA_FOLDER)
    if not names:
        return
    for name in names:
        if name != ".hoodie":
            storage.delete_tree(f"{METADATA_FOLDER}/{name}")
    own = f"{METADATA_FOLDER}/.hoodie"
    for history in (f"{own}/timeline/history", f"{own}/archived"):
        storage.delete(f"{history}/_version_")
        storage.delete_tree(history)
    # completed files before the pending ones of the same instant would show them as failed writes to be rolled back;
    # names sort the other way round: requested, inflight and completed file of one instant go in this order
    paths = [p for p in storage.list(own, recursive=True)["path"].to_pylist() if not p.endswith("/hoodie.properties")]
    for batch in (
        [p for p in paths if p.endswith(".requested")],
        [p for p in paths if p.endswith("inflight")],
        [p for p in paths if not p.endswith((".requested", "inflight"))],
    ):
        storage.delete_many(batch)
    storage.delete_tree(METADATA_FOLDER)
