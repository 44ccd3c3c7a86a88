"""Record index used by a write for key lookups, instead of the table's files.

It is a partition of the metadata table that maps every key to its file group; the tasks that merge base files find the
rows by key (`pyhudi.write.rows.keyed_rows`). `pyhudi.spark.indexes.record_index.record_index_build` builds it, and
`pyhudi.spark.indexes.record_index.record_index_update` updates it in each write.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyhudi.errors import MetadataTableError
from pyhudi.metadata.indexes.record_index_definition import has_partitioned_record_index
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.records.record_index_file_groups import RecordIndexFileGroups
from pyhudi.table.meta_client import TableMetaClient

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Record index of a table, with its file groups."""

    table: MetadataTable
    groups: RecordIndexFileGroups

    @property
    def partitioned(self) -> bool:
        """True if keys are distinguished by partition."""
        return self.groups.partitioned

    @classmethod
    def open(cls, client: TableMetaClient, *, partitioned: bool) -> RecordIndex | None:
        """Return the record index; None unless the table has a valid one of that kind and its files store keys."""
        config = client.config
        if RECORD_INDEX not in config.metadata_partitions or not config.populate_meta_fields:
            return None
        if has_partitioned_record_index(client.storage, config) != partitioned:
            return None
        try:
            table = MetadataTable.open_now(client.storage, config)
            ids = table.groups(RECORD_INDEX)["file_id"].to_pylist()
        except MetadataTableError as reason:
            _log.warning("the record index is not used, keys are looked for in the files: %s", reason)
            return None
        return cls(table, RecordIndexFileGroups.from_ids(ids, partitioned=partitioned))
