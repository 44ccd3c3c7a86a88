"""Procedures that create, open and delete the metadata table."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from pyhudi.errors import NotFoundError
from pyhudi.metadata.metadata_layout import FILES
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.writer.enabled_partitions import build_enabled_partitions
from pyhudi.services.indexing import metadata_table_build
from pyhudi.services.indexing.index_builder import lock_table
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.table_snapshot import TableSnapshot


def create_metadata_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Build the metadata table, with the indexes enabled by the session's options.

    Raises:
        AlreadyExistsError: There is one.
    """
    client, opts = arguments.opened(spark)
    begun = time.monotonic()
    metadata_table_build.create_metadata_table(client, opts, SparkFileStatsReader(spark))
    folder = client.storage.uri(METADATA_FOLDER)
    return [(f"Created Metadata Table in {folder} (duration={time.monotonic() - begun:.3f}secs)",)]


def delete_metadata_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Disable the metadata table and delete it."""
    client, opts = arguments.opened(spark)
    metadata_table_build.delete_metadata_table(client, opts)
    return [(f"Deleted Metadata Table at '{client.storage.uri(METADATA_FOLDER)}'",)]


def init_metadata_table(spark: SparkSession, arguments: Arguments) -> Rows:
    """Open the metadata table; unless ``read_only``, also build the missing partitions enabled by the session's
    options.

    Raises:
        NotFoundError: There is none.
    """
    client, opts = arguments.opened(spark)
    folder = client.storage.uri(METADATA_FOLDER)
    if FILES not in client.config.metadata_partitions:
        raise NotFoundError(f"there is no metadata table in {folder}; CALL create_metadata_table builds one")
    begun = time.monotonic()
    if arguments.flag("read_only"):
        MetadataTable.open(TableSnapshot.load(client))
        return [(f"Opened Metadata Table in {folder} (duration={time.monotonic() - begun:.3f}sec)",)]
    with lock_table(client, opts, SparkFileStatsReader(spark)) as table:
        build_enabled_partitions(table)
    return [(f"Initialized Metadata Table in {folder} (duration={time.monotonic() - begun:.3f}sec)",)]


PROCEDURES: dict[str, Procedure] = {
    "create_metadata_table": create_metadata_table,
    "delete_metadata_table": delete_metadata_table,
    "init_metadata_table": init_metadata_table,
}
