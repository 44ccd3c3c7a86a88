"""Updates of the metadata table after a write is committed. If they fail, the write stays committed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyhudi.metadata.indexes.indexed_columns import columns_of_new_table
from pyhudi.metadata.maintenance import metadata_compaction as compaction
from pyhudi.metadata.writer.enabled_partitions import build_all, is_enabled
from pyhudi.metadata.writer.metadata_write_context import MetadataWriteContext
from pyhudi.metrics.action_report import ActionReport
from pyhudi.metrics.publish import publish
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.operation_types import COMPACT
from pyhudi.transaction.table_checks import current_config

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.metadata.file_groups.delta_commit_writer import Stat
    from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
    from pyhudi.metadata.writer.initial_statistics import FileStatsReader
    from pyhudi.storage import Storage
    from pyhudi.timeline.commit_metadata import CommitMetadata
    from pyhudi.timeline.time_generator import ReservedTime, TimeGenerator

_log = logging.getLogger(__name__)


def metadata_write_context(
    storage: Storage, opts: Options, active: ActiveTimeline, reserved: ReservedTime, stats_reader: FileStatsReader
) -> MetadataWriteContext:
    """Return the context for changes of the metadata table. The caller holds the lock of the table."""
    return MetadataWriteContext(storage, opts, active, lambda: reserved.take(active.latest_time), stats_reader)


def plan_metadata_services(metadata_context: MetadataWriteContext, config: TableConfig) -> MetadataCompactionJob | None:
    """Plan the compaction of the metadata table if it is due, for `run_metadata_services`; otherwise return None. In
    tables of version 6 it is executed immediately. The caller holds the lock of the table."""
    storage = metadata_context.storage
    try:
        job = compaction.schedule_compaction(metadata_context, config)
        if job is None or config.version >= 8:
            return job
        try:
            stats, millis = compaction.merge_file_groups(job, metadata_context.stats_reader)
            result = compaction.complete_compaction(metadata_context, config, job, stats, millis)
            _report(storage, metadata_context.opts, config, result)
        except Exception as failure:
            _log_failure(storage, failure)
            compaction.rollback_failed_compaction(metadata_context, config, job, failure)
    except Exception as failure:  # A later commit tries again.
        _log_failure(storage, failure)
    return None


def run_metadata_services(
    storage: Storage,
    opts: Options,
    config: TableConfig,
    *,
    generator: TimeGenerator,
    job: MetadataCompactionJob | None,
    stats_reader: FileStatsReader,
) -> None:
    """Execute a planned compaction of the metadata table (None: nothing), and the services after it.

    The lock of the table is acquired to publish it; the caller does not hold it. Nothing is raised: later commits
    retry.
    """
    if job is None:
        return
    try:
        with compaction.heartbeat_of(job, opts):
            failure: Exception | None = None
            stats: list[Stat] = []
            millis = 0
            try:
                stats, millis = compaction.merge_file_groups(job, stats_reader)
            except Exception as error:
                failure = error
                _log_failure(storage, error)
            result = None
            with generator.reserve() as reserved:
                config = current_config(storage, config)
                active = ActiveTimeline.load(storage, config.layout)
                context = metadata_write_context(storage, opts, active, reserved, stats_reader)
                if failure is None:
                    result = compaction.complete_compaction(context, config, job, stats, millis)
                else:
                    compaction.rollback_failed_compaction(context, config, job, failure)
        if result is not None:
            _report(storage, opts, config, result)
    except Exception as error:  # The next process removes leftovers.
        _log_failure(storage, error)


def _log_failure(storage: Storage, failure: Exception) -> None:
    _log.warning(
        "the metadata table of %s was not compacted: %s. It is retried after more commits, with twice as many "
        "before each further attempt",
        storage.root,
        failure,
    )


def _report(storage: Storage, opts: Options, config: TableConfig, result: compaction.MetadataServiceResult) -> None:
    counts = {"file_groups": result.num_groups, "records": result.num_records, "bytes_read": result.bytes_read}
    report = ActionReport(
        "metadata_compaction",
        storage.uri(),
        config.name,
        (result.instant,) if result.instant else (),
        COMPACT,
        counts,
        result.bytes_written,
        dict(result.millis),
        {"totalBytesWritten": result.bytes_written, "totalRecordsWritten": result.num_records},
        result.reason,
    )
    publish(report, opts)


def build_metadata_table(
    storage: Storage,
    opts: Options,
    generator: TimeGenerator,
    metadata: CommitMetadata,
    stats_reader: FileStatsReader,
) -> None:
    """Build the metadata table of a table that was created by ``metadata`` from another one; without it readers list
    files. The caller holds the lock of the table."""
    if not is_enabled(opts):
        return
    try:
        config = TableConfig.load(storage)
        active = ActiveTimeline.load(storage, config.layout)
        columns = columns_of_new_table(config, opts, metadata)
        with generator.reserve(locked=True) as reserved:
            build_all(metadata_write_context(storage, opts, active, reserved, stats_reader), config, columns)
    except Exception as failure:  # The next write tries again.
        _log.warning("the table at %s has no metadata table yet: %s", storage.root, failure)
