"""Initial build of the record index."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import HudiError
from pyhudi.metadata.indexes.index_declarations import declare_partitions
from pyhudi.metadata.indexes.record_index_definition import record_index_definition
from pyhudi.metadata.metadata_layout import FILES, RECORD_INDEX
from pyhudi.metadata.writer.initialize_partitions import build_partition
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.services.indexing.index_builder import lock_table
from pyhudi.spark.indexes.record_index.initial_keys import InitialKeys, check_no_duplicates
from pyhudi.spark.indexes.record_index.record_index_verify import count_duplicate_keys
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import WriteStat

_log = logging.getLogger(__name__)


def build_record_index(spark: SparkSession, table: LockedTable) -> TableConfig:
    """Build the record index of the table at its timeline, and declare it. Runs a Spark job.

    The caller holds the lock. The index is partitioned unless the options request a global one.

    Raises:
        UnsupportedTableError: The files do not store keys; keys are in more than one file group, but an index has one
            location per key; or tables of that version have no partitioned index.
        LockError: The lock was lost.
    """
    first = InitialKeys.from_table(spark, table.snapshot, table.opts)
    build_partition(table, RECORD_INDEX, first.groups.ids, lambda groups: first.write(groups.files.instant))
    definition = record_index_definition(partitioned=first.groups.partitioned)
    definitions = None if table.config.version < 9 else {RECORD_INDEX: definition}
    return declare_partitions(table.storage, table.config, [RECORD_INDEX], definitions)


def refuse_duplicate_keys(first: InitialKeys, stats: Sequence[WriteStat], active: ActiveTimeline) -> None:
    """Check that no write since the base files of the index were written has added a key to a second file group.

    Raises:
        UnsupportedTableError: A key has two file groups.
    """
    check_no_duplicates(
        count_duplicate_keys(first, [s for s in stats if s["partitionPath"] == RECORD_INDEX], active), first.groups
    )


def ensure_record_index(spark: SparkSession, storage: Storage, opts: Options) -> bool:
    """Build the record index if the options request it and the table has none.

    Returns:
        True if it was built. A failure is logged as a warning, because the preceding write is already committed.
    """
    if not _is_enabled(opts):  # Before the table is opened, which takes a request.
        return False
    client = TableMetaClient.open(storage, opts)
    if not wants_record_index(client.config, opts):
        return False
    try:
        with lock_table(client, opts) as table:
            if not wants_record_index(table.config, opts):
                return False
            build_record_index(spark, table)
    except HudiError as reason:
        _log.warning("the record index of %s was not built: %s", storage.root, reason)
        return False
    return True


def wants_record_index(config: TableConfig, opts: Options) -> bool:
    """Return True if the options request a record index that the table can have and lacks."""
    partitions = (*config.metadata_partitions, *config.metadata_partitions_inflight)
    return _is_enabled(opts) and FILES in config.metadata_partitions and RECORD_INDEX not in partitions


def _is_enabled(opts: Options) -> bool:
    """Return True if the options request a record index."""
    kinds = (options.METADATA_GLOBAL_RECORD_INDEX_ENABLE, options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE)
    return opts.get_typed(options.METADATA_ENABLE) and any(opts.get_typed(kind) for kind in kinds)
