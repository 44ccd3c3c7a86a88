"""Creation and deletion of a metadata table, under the lock of its table."""

from __future__ import annotations

from pyhudi.config import Options
from pyhudi.errors import AlreadyExistsError
from pyhudi.metadata import delete_metadata_table as deletion
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.writer.enabled_partitions import build_enabled_partitions
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.services.indexing.index_builder import lock_table
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.meta_client import TableMetaClient


def create_metadata_table(client: TableMetaClient, opts: Options, stats_reader: FileStatsReader) -> tuple[str, ...]:
    """Build the metadata table with the indexes that the options enable. Return its partitions.

    Raises:
        AlreadyExistsError: There is one.
        LockError: The lock could not be acquired.
        TransactionError: A restore is pending.
    """
    with lock_table(client, opts, stats_reader) as table:
        if FILES in table.config.metadata_partitions:
            raise AlreadyExistsError(
                f"the metadata table already exists in {client.storage.uri(METADATA_FOLDER)}; "
                "`services.delete_metadata_table()`, or CALL delete_metadata_table, deletes it"
            )
        built = build_enabled_partitions(table)
    return tuple(built.metadata_partitions)


def delete_metadata_table(client: TableMetaClient, opts: Options) -> tuple[str, ...]:
    """Disable the metadata table and delete it. Return the partitions that it had.

    Raises:
        LockError: The lock could not be acquired.
        TransactionError: A restore is pending.
    """
    with lock_table(client, opts) as table:
        partitions = tuple(table.config.metadata_partitions)
        deletion.delete_metadata_table(table.storage, table.config)
    return partitions
