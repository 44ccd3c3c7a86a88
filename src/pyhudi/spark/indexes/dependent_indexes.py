"""Updates of indexes other than the record index by a commit.

These are secondary indexes, which require the record index; expression indexes, whose values Spark computes; and
indexes that are being built, or were built, during the write.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.indexes.secondary_index_definition import secondary_indexes
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.spark.indexes.expression_index import expression_delta
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.indexes.record_index.record_index_catch_up import catch_up_delta
from pyhudi.spark.indexes.secondary_index import secondary_delta
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.fencing.write_fence import WriteFence
from pyhudi.transaction.table_checks import current_config


def update_dependent_indexes(commit: IndexedCommit, index: IndexDelta | None, *, rows_stay: bool = False) -> IndexDelta:
    """Update expression indexes, and secondary indexes if the record index, which they require, is up to date; and,
    before the write is committed, the indexes that are being built or were built during the write. May run Spark jobs.

    Args:
        commit: The commit.
        index: Update of the record index; None: it has none, or is disabled.
        rows_stay: Records only move between files, which does not affect secondary indexes, as these refer to record
            keys.

    Returns:
        The update of all indexes.
    """
    storage = commit.storage
    before = index or IndexDelta()

    def delta(config: TableConfig, fence: WriteFence, only: Collection[str] | None = None) -> IndexDelta:
        update = IndexDelta()
        if RECORD_INDEX in before.partitions:
            update = update.merge(secondary(config, fence, only))
        return update.merge(expression_delta(commit.with_config(config, fence), only))

    def secondary(config: TableConfig, fence: WriteFence, only: Collection[str] | None) -> IndexDelta | None:
        if not rows_stay:
            return secondary_delta(commit.with_config(config, fence), only)
        retained = frozenset(index.partition for index in secondary_indexes(storage, config, include_building=True))
        return IndexDelta(retained if only is None else retained & frozenset(only))

    def keys(config: TableConfig, fence: WriteFence) -> IndexDelta | None:
        """Return an update of a record index whose build began or completed after the write began."""
        partitions = {*config.metadata_partitions, *config.metadata_partitions_inflight}
        lost = RECORD_INDEX in commit.config.metadata_partitions and RECORD_INDEX not in before.partitions
        if lost or RECORD_INDEX not in partitions:
            return None
        return catch_up_delta(commit.with_config(config, fence))

    def catch_up(config: TableConfig, only: Collection[str]) -> IndexDelta:
        with commit.fence.reopened() as fence:
            update = delta(config, fence, only) if set(only) - {RECORD_INDEX} else IndexDelta()
            return update.merge(keys(config, fence) if RECORD_INDEX in only else None)

    now = before.merge(delta(commit.config, commit.fence))
    if RECORD_INDEX not in now.partitions:
        # Computed before the lock is acquired, so that other writers do not wait for it.
        now = now.merge(keys(current_config(storage, commit.config), commit.fence))
    return replace(now, catch_up=catch_up)
