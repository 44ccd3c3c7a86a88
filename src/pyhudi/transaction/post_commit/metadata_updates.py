"""Updates of the metadata table with and after a commit. Those after it may fail: the write stays committed."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyhudi.config import Options
from pyhudi.metadata.indexes.indexed_columns import columns_of_new_table
from pyhudi.metadata.maintenance import metadata_compaction as compaction
from pyhudi.metadata.maintenance.metadata_compaction import MetadataServiceResult
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
from pyhudi.metadata.maintenance.metadata_compaction_schedule import heartbeat_of, schedule_compaction
from pyhudi.metadata.writer.enabled_partitions import build_all, is_metadata_enabled
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.metadata.writer.locked_table import LockedTable
from pyhudi.metrics.action_report import ActionReport
from pyhudi.metrics.publish import publish
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata, WriteStat
from pyhudi.timeline.operation_types import COMPACT
from pyhudi.timeline.time_generator import ReservedTime, TimeGenerator
from pyhudi.transaction.table_checks import current_config

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetadataUpdates:
    """Updates of the metadata table by a writer of its table.

    Attributes:
        storage: Storage of the table.
        opts: Options of the writer.
        generator: Generator of instant times, which holds the lock of the table meanwhile.
        stats_reader: Reads files of the table if indexes have to be built.
    """

    storage: Storage
    opts: Options
    generator: TimeGenerator
    stats_reader: FileStatsReader

    def locked_table(self, active: ActiveTimeline, config: TableConfig, reserved: ReservedTime) -> LockedTable:
        """Return the table for changes of its metadata table. The caller holds the lock of the table."""
        return LockedTable(TableSnapshot(self.storage, config, active), self.opts, reserved, self.stats_reader)

    def plan_services(self, table: LockedTable) -> MetadataCompactionJob | None:
        """Plan the compaction of the metadata table if it is due, for `run_services`; otherwise return None. In tables
        of version 6 it is executed immediately. The caller holds the lock of the table."""
        try:
            job = schedule_compaction(table)
            if job is None or table.config.version >= 8:
                return job
            try:
                stats, millis = compaction.merge_file_groups(job, self.stats_reader)
                self._report(table.config, compaction.complete_compaction(table, job, stats, millis))
            except Exception as failure:
                self._log_failure(failure)
                compaction.rollback_failed_compaction(table, job, failure)
        except Exception as failure:  # A later commit tries again.
            self._log_failure(failure)
        return None

    def run_services(self, config: TableConfig, job: MetadataCompactionJob | None) -> None:
        """Execute a planned compaction of the metadata table (None: nothing), and the services after it.

        The lock of the table is acquired to publish it; the caller does not hold it. Nothing is raised: later commits
        retry.
        """
        if job is None:
            return
        try:
            with heartbeat_of(job, self.opts):
                result = self._compact(config, job)
            if result is not None:
                self._report(config, result)
        except Exception as error:  # The next process removes leftovers.
            self._log_failure(error)

    def _compact(self, config: TableConfig, job: MetadataCompactionJob) -> MetadataServiceResult | None:
        """Merge the file groups of a job, and publish it under the lock; if the merge fails, roll it back instead and
        return None."""
        failure: Exception | None = None
        stats: list[WriteStat] = []
        millis = 0
        try:
            stats, millis = compaction.merge_file_groups(job, self.stats_reader)
        except Exception as error:
            failure = error
            self._log_failure(error)
        with self.generator.reserve() as reserved:
            config = current_config(self.storage, config)
            table = self.locked_table(ActiveTimeline.load(self.storage, config.layout), config, reserved)
            if failure is None:
                return compaction.complete_compaction(table, job, stats, millis)
            compaction.rollback_failed_compaction(table, job, failure)
        return None

    def build(self, metadata: CommitMetadata) -> None:
        """Build the metadata table of a table that was created by ``metadata`` from another one; without it readers
        list files. The caller holds the lock of the table."""
        if not is_metadata_enabled(self.opts):
            return
        try:
            config = TableConfig.load(self.storage)
            active = ActiveTimeline.load(self.storage, config.layout)
            columns = columns_of_new_table(config, self.opts, metadata)
            with self.generator.reserve(locked=True) as reserved:
                build_all(self.locked_table(active, config, reserved), columns)
        except Exception as failure:  # The next write tries again.
            _log.warning("the table at %s has no metadata table yet: %s", self.storage.root, failure)

    def _report(self, config: TableConfig, result: MetadataServiceResult) -> None:
        counts = {"file_groups": result.num_groups, "records": result.num_records, "bytes_read": result.bytes_read}
        report = ActionReport(
            "metadata_compaction",
            self.storage.uri(),
            config.name,
            (result.instant,) if result.instant else (),
            COMPACT,
            counts,
            result.bytes_written,
            dict(result.millis),
            {"totalBytesWritten": result.bytes_written, "totalRecordsWritten": result.num_records},
            result.reason,
        )
        publish(report, self.opts)

    def _log_failure(self, failure: Exception) -> None:
        _log.warning(
            "the metadata table of %s was not compacted: %s. It is retried after more commits, with twice as many "
            "before each further attempt",
            self.storage.root,
            failure,
        )
