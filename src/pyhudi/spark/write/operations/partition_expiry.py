"""Deletion of the partitions whose time to live is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.read.selection.table_files import load_view
from pyhudi.spark.execution.local_relations import empty_frame
from pyhudi.spark.spark_types import spark_schema
from pyhudi.spark.write.operations.delete_partition import delete_selected_partitions
from pyhudi.spark.write.write_preparation import prepare_write
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.partition_ttl import PartitionTtl, TtlResult
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.transaction.single_writer_locks import in_process_writer_lock


def delete_expired_partitions(
    spark: SparkSession, client: TableMetaClient, write_options: Mapping[str, object]
) -> TtlResult:
    """Drop the partitions whose time to live is over, in one commit of the operation delete_partition.

    Raises:
        ConfigError: No time to live is set.
        ConflictError: Another writer was faster.
        UnsupportedTableError: The table cannot be written, or has consistent hashing.
    """
    opts = client.config.validate_against(Options.parse(write_options))
    ttl = PartitionTtl.from_options(opts)
    with in_process_writer_lock(client.storage, opts):
        client = client.reload()
        pinned = TableSnapshot.load(client)
        expired = ttl.expired(pinned, load_view(pinned, opts))
        if not expired:
            return TtlResult(reason=f"no partition has expired: {ttl}")
        columns = resolve_table_schema(pinned)
        assert columns is not None  # there are files
        nothing = empty_frame(spark, spark_schema(columns.schema))
        settings = {
            options.PARTITIONS_TO_DELETE.key: ",".join(expired),
            options.TABLE_SERVICES_ENABLED.key: "false",  # None follows, so their options are not checked.
        }
        delete_opts = Options.parse({**opts, **settings})
        job = prepare_write(nothing, client, Operation.DELETE_PARTITION, delete_opts)

        def choose(table: TableSnapshot, view: FileSystemView) -> Sequence[str]:
            expired[:] = ttl.expired(table, view)
            return expired

        result = delete_selected_partitions(job, choose)
        return TtlResult(tuple(expired), result.instant)
