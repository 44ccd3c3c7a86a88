"""Rollback of the changes that a write has made to the metadata table."""

from __future__ import annotations

import logging

from pyhudi.errors import CorruptTableError, FormatError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table, has_metadata_table
from pyhudi.metadata.writer.rollback.merged_changes import is_merged
from pyhudi.metadata.writer.rollback.metadata_rollback import apply_rollback
from pyhudi.metadata.writer.rollback.table_rollback import TableRollback
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant
from pyhudi.timeline.time_generator import TimeGenerator

_log = logging.getLogger(__name__)


def delete_metadata_table_if_merged(storage: Storage, target: Instant) -> None:
    """Delete the metadata table if the changes of a completed write to it cannot be rolled back."""
    config = TableConfig.load(storage)
    if has_metadata_table(config) and is_merged(storage, config, target):
        _log.warning("deleting the metadata table of %s, to be rebuilt", storage.root)
        delete_metadata_table(storage, config)


def roll_back_metadata_table(active: ActiveTimeline, done: TableRollback, generator: TimeGenerator) -> None:
    """Roll back the changes to the metadata table while the write is pending and thus invisible.

    A metadata table that cannot be read is deleted; the next write builds it again.
    """
    storage = active.storage
    config = TableConfig.load(storage)
    if not has_metadata_table(config):
        return
    try:
        with generator.reserve(locked=True) as reserved:
            apply_rollback(storage, config, done, lambda: reserved.take(active.latest_time))
    except (CorruptTableError, FormatError) as failure:
        _log.warning("deleting the metadata table of %s: %s", storage.root, failure)
        delete_metadata_table(storage, config)
