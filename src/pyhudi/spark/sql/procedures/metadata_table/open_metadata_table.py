"""Access of procedures to the metadata table."""

from __future__ import annotations

from pyhudi.errors import NotFoundError
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.table.meta_client import TableMetaClient


def open_metadata_table(client: TableMetaClient) -> MetadataTable:
    """Open the metadata table.

    Raises:
        NotFoundError: There is none.
        MetadataTableError: It must not be used.
    """
    if FILES not in client.config.metadata_partitions:
        raise NotFoundError(f"the table at {client.storage.uri()} has no metadata table")
    return MetadataTable.open_now(client.storage, client.config)
