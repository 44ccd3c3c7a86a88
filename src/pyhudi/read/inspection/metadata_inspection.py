"""Partitions of the metadata table with the numbers and sizes of their files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.table.table_snapshot import TableSnapshot

METADATA_PARTITIONS_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("file_groups", pa.int64()),
        ("base_files", pa.int64()),
        ("log_files", pa.int64()),
        ("base_size", pa.int64()),
        ("log_size", pa.int64()),
    ]
)
"""One row per partition of the metadata table; sizes in bytes."""


def metadata_partitions(table: TableSnapshot) -> pa.Table:
    """Return the partitions of the metadata table (`METADATA_PARTITIONS_SCHEMA`); none without a metadata table.

    Raises:
        MetadataTableError: The metadata table must not be used.
    """
    if FILES not in table.config.metadata_partitions:
        return METADATA_PARTITIONS_SCHEMA.empty_table()
    metadata = MetadataTable.open_now(table.storage, table.config)
    return pa.Table.from_pylist(
        [_row(partition, metadata.groups(partition)) for partition in metadata.partitions],
        schema=METADATA_PARTITIONS_SCHEMA,
    )


def _row(partition: str, slices: pa.Table) -> dict[str, object]:
    return {
        "partition": partition,
        "file_groups": slices.num_rows,
        "base_files": slices.num_rows - slices["base_path"].null_count,
        "log_files": pc.sum(pc.list_value_length(slices["log_paths"])).as_py() or 0,
        "base_size": pc.sum(slices["base_size"]).as_py() or 0,
        "log_size": pc.sum(pc.list_flatten(slices["log_sizes"])).as_py() or 0,
    }
