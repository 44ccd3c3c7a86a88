"""Updates by a commit of indexes other than the record index: secondary indexes, which require the record index;
expression indexes, whose values
Spark computes; and indexes that are being built, or were built, during the write."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.indexes.secondary_index_definition import secondary_indexes
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.spark.indexes.expression_index import expression_delta
from pyhudi.spark.indexes.record_index.record_index_catch_up import catch_up_delta
from pyhudi.spark.indexes.secondary_index import secondary_delta
from pyhudi.transaction.action_start import current_config

if TYPE_CHECKING:
    from pyhudi.table.config.table_config import TableConfig
    from pyhudi.table.meta_client import TableMetaClient
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.transaction.transaction import Transaction


def with_other_indexes(
    spark: SparkSession,
    client: TableMetaClient,
    opts: Options,
    tx: Transaction,
    metadata: CommitMetadata,
    index: IndexDelta | None,
    *,
    rows_stay: bool = False,
) -> IndexDelta:
    """Update expression indexes, and secondary indexes if the record index, which they require, is up to date; and,
    before the write is committed, the indexes that are being built or were built during the write. May run Spark jobs.

    ``index`` is the update of the record index. ``rows_stay``: records only move between files, which does not affect
    secondary indexes, as these refer to record keys.
    """
    before = index or IndexDelta()

    def delta(config: TableConfig, only: Collection[str] | None = None) -> IndexDelta:
        found = IndexDelta()
        if RECORD_INDEX in before.partitions:
            found = found.merge(secondary(config, only))
        return found.merge(expression_delta(spark, client, config, tx.instant, metadata, only))

    def secondary(config: TableConfig, only: Collection[str] | None) -> IndexDelta | None:
        if not rows_stay:
            return secondary_delta(spark, client, config, opts, tx.timeline, tx.instant, metadata, only)
        kept = frozenset(index.partition for index in secondary_indexes(client.storage, config, kept=True))
        return IndexDelta(kept if only is None else kept & frozenset(only))

    def keys(config: TableConfig) -> IndexDelta | None:
        """Return an update of a record index whose build began or completed after the write began."""
        known = {*config.metadata_partitions, *config.metadata_partitions_inflight}
        lost = RECORD_INDEX in tx.config.metadata_partitions and RECORD_INDEX not in before.partitions
        if lost or RECORD_INDEX not in known:
            return None
        return catch_up_delta(spark, client, config, opts, tx.timeline, tx.instant, metadata)

    def catch_up(config: TableConfig, only: Collection[str]) -> IndexDelta:
        update = delta(config, only) if set(only) - {RECORD_INDEX} else IndexDelta()
        return update.merge(keys(config) if RECORD_INDEX in only else None)

    now = before.merge(delta(tx.config))
    if RECORD_INDEX not in now.partitions:
        # computed before the lock is taken, so that other writers do not wait for it
        now = now.merge(keys(current_config(client.storage, tx.config)))
    return replace(now, catch_up=catch_up)
