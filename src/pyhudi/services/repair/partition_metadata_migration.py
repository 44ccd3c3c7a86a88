"""Migration of partition metadata files from text to base files, for storages where queries must find only base files
in a table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi.config import Options, property_keys
from pyhudi.config.enums import FileFormat
from pyhudi.errors import CorruptTableError, UnsupportedTableError
from pyhudi.services.repair.active_writer_check import check_not_in_use
from pyhudi.storage import join_path
from pyhudi.storage.table_paths import PARTITION_METADATA
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.partition_metadata import list_partitions, read_partition_metadata, write_partition_metadata

MIGRATION_SCHEMA = pa.schema(
    [("partition", pa.string()), ("has_text", pa.bool_()), ("has_base", pa.bool_()), ("is_migrated", pa.bool_())]
)
"""One row per partition: whether it had a metadata file of either form, and whether it has one as a base file now."""


def migrate_partition_metadata(client: TableMetaClient, opts: Options, *, dry_run: bool = True) -> pa.Table:
    """Write the metadata files of all partitions as base files, record this in the table's properties, and delete the
    text files. After an interruption every partition has at least one form, and the next call continues.

    Args:
        client: The table.
        opts: Options of heartbeats.
        dry_run: Change nothing.

    Returns:
        The partitions (`MIGRATION_SCHEMA`), sorted by path.

    Raises:
        UnsupportedTableError: The table's base files are not Parquet.
        CorruptTableError: A metadata file is corrupt, and the active timeline has no completed write.
        BusyError: A write or service is running on the table.
    """
    storage, config = client.storage, client.config
    if config.base_file_format is not FileFormat.PARQUET:
        raise UnsupportedTableError(
            "metadata files of partitions can be text or Parquet files, but the base files of table "
            f"{config.name!r} are {config.base_file_format}; keep the text files"
        )
    if not dry_run:
        check_not_in_use(client.active_timeline(), opts)
    rows: list[dict[str, Any]] = []
    for partition in list_partitions(storage):
        text, base = join_path(partition, PARTITION_METADATA), join_path(partition, f"{PARTITION_METADATA}.parquet")
        row: dict[str, Any] = {
            "partition": partition,
            "has_text": storage.exists(text),
            "has_base": storage.exists(base),
        }
        rows.append({**row, "is_migrated": not dry_run})
        if not dry_run and not row["has_base"]:
            write_partition_metadata(
                storage, partition, _creating_instant(client, partition), base_format=FileFormat.PARQUET
            )
    if not dry_run:
        config.updated(storage, set={property_keys.PARTITION_METAFILE_USE_BASE_FORMAT: "true"})
        storage.delete_many(join_path(row["partition"], PARTITION_METADATA) for row in rows if row["has_text"])
    return pa.Table.from_pylist(rows, schema=MIGRATION_SCHEMA)


def _creating_instant(client: TableMetaClient, partition: str) -> str:
    """Return the write that created a partition; the table's last one if the partition's file is corrupt.

    Raises:
        CorruptTableError: It is corrupt, and the active timeline has no completed write.
    """
    last = client.active_timeline().timeline.completed().writes().last
    try:
        metadata = read_partition_metadata(client.storage, partition)
    except CorruptTableError:
        if last is None:
            raise
        return last.requested
    assert metadata is not None  # It was listed.
    return metadata.commit_time
