"""Updates of the metadata table after a write is committed: they may fail, and the write stays."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyhudi.metadata.services.metadata_compaction import run_table_services
from pyhudi.metadata.writer.metadata_write_context import MetadataWriteContext
from pyhudi.metadata.writer.metadata_writer import build_all, columns_of, is_enabled
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.transaction.rollback.rollback_failed import newest

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.metadata.writer.file_stats_reader import FileStatsReader
    from pyhudi.storage import Storage
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.timeline.instant_generator import InstantGenerator, Slot

_log = logging.getLogger(__name__)


def metadata_write_context(
    storage: Storage, opts: Options, active: ActiveTimeline, slot: Slot, stats_reader: FileStatsReader
) -> MetadataWriteContext:
    """Return the context for changes of the metadata table; the table's lock is held."""
    return MetadataWriteContext(storage, opts, active, lambda: slot.take(newest(active)), stats_reader)


def run_metadata_services(metadata_context: MetadataWriteContext, config: TableConfig) -> None:
    """Run the services of the metadata table that are due."""
    try:
        run_table_services(metadata_context, config)
    except Exception as failure:  # the next commit tries again
        _log.warning("the metadata table of %s was not compacted: %s", metadata_context.storage.root, failure)


def build_metadata_table(
    storage: Storage,
    opts: Options,
    generator: InstantGenerator,
    metadata: CommitMetadata,
    stats_reader: FileStatsReader,
) -> None:
    """Build the metadata table of a table that has been made out of another one, which ``metadata`` tells of; without
    it readers list files. The caller holds the table's lock."""
    if not is_enabled(opts):
        return
    try:
        config = TableConfig.load(storage)
        active = ActiveTimeline.load(storage, config.layout)
        columns = columns_of(config, opts, metadata)
        with generator.reserve(locked=True) as slot:
            build_all(metadata_write_context(storage, opts, active, slot, stats_reader), config, columns)
    except Exception as failure:  # the next write tries again
        _log.warning("the table at %s has no metadata table yet: %s", storage.root, failure)
