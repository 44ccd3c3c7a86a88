"""Preparation of a table for another version, by services of its current version."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import FailedWritesPolicy, TableType
from pyhudi.errors import TransactionError
from pyhudi.format.file_names import LOG, file_names_of, parse_names
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.services.compaction.compaction_runner import CompactionRunner, run_compactions
from pyhudi.services.repair.orphan_files import find_orphan_files
from pyhudi.services.upgrade import metadata_table_conversion
from pyhudi.services.upgrade.bucket_keys import check_bucket_keys
from pyhudi.services.upgrade.preconditions import check_lossless, check_no_pending_plans
from pyhudi.services.upgrade.timeline_copy import remove_leftovers
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.moved_instants import refuse_moved_instants
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_slicing import has_log_files
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Action, Instant
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.transaction.concurrency_mode import failed_writes_policy
from pyhudi.transaction.plan_ownership import check_no_heartbeat
from pyhudi.transaction.rollback.rollback_executor import RollbackExecutor

_COMPACTION_OPTIONS = {
    options.COMPACTION_STRATEGY.key: "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy"
}
_ONE_VERSION = {
    options.CLEAN_POLICY.key: "KEEP_LATEST_FILE_VERSIONS",
    options.CLEAN_FILE_VERSIONS_RETAINED.key: "1",
    options.CLEAN_INCREMENTAL.key: "false",
    options.CLEAN_PARTITIONS.key: "",
    options.CLEAN_PARTITION_REGEX.key: "",
}


@dataclass(frozen=True)
class UpgradePreparation:
    """Rolls back failed writes and compacts log files before the version of a table is changed.

    Attributes:
        client: The table.
        opts: Options of locks, heartbeats and compaction.
        runner: Executes compactions.
        stats_reader: Reads files if the metadata table has to be rebuilt.
        generator: Instant times and the lock of the table.
        lossy: Features that the older version does not support may be lost.
    """

    client: TableMetaClient
    opts: Options
    runner: CompactionRunner
    stats_reader: FileStatsReader
    generator: TimeGenerator
    lossy: bool

    @property
    def storage(self) -> Storage:
        """Storage of the table."""
        return self.client.storage

    def check(self, active: ActiveTimeline, config: TableConfig, to: int) -> list[Instant]:
        """Check the preconditions. Return the failed writes that are to be rolled back."""
        check_lossless(active, config, to, lossy=self.lossy)
        table = TableSnapshot(self.storage, config, active)
        check_bucket_keys(table, to)
        if _is_cleaned(config, to):
            _refuse_orphaned_logs(table)
        # Failed writes of version 5 are left to writers of version 6.
        rollbacks = self._rollbacks(config)
        policy = failed_writes_policy(self.opts)
        if policy is FailedWritesPolicy.LAZY:
            for instant in rollbacks.failed_writes(active, FailedWritesPolicy.EAGER):
                check_no_heartbeat(self.storage, instant, self.opts)
        failed = rollbacks.failed_writes(active, policy)
        run = [Action.COMPACTION] if is_compacted(config, to) else []
        run += [Action.CLEAN] if _is_cleaned(config, to) else []
        check_no_pending_plans(active, self.storage.uri(), [i.requested for i in failed], run)
        return failed

    def run(self, to: int) -> None:
        """Roll back failed writes and compact log files. Writers may change the table again meanwhile."""
        with self.generator.lock:
            config = self.finish_interrupted_run(TableConfig.load(self.storage))
            active = ActiveTimeline.load(self.storage, config.layout)
            failed = self.check(active, config, to)
            rollbacks = self._rollbacks(config)
            rollbacks.check(active, failed)
            if config.version >= 6:
                rollbacks.complete_and_roll_back(active, failed)
        if config.version < 6 or not is_compacted(config, to):
            return
        client, opts = self.client.reload(), self.opts.merged(_COMPACTION_OPTIONS)
        run_compactions(client, opts, self.runner)
        if _is_cleaned(config, to):
            Cleaner(client.reload(), self.opts.merged(_ONE_VERSION), self.stats_reader, None).run()

    def is_complete(self, active: ActiveTimeline, config: TableConfig, to: int) -> bool:
        """Return True if the table can be changed now: no write is pending, and log files are compacted. The lock is
        held."""
        if config.version < 6:
            return True
        if active.timeline.pending():
            return False
        if config.table_type is not TableType.MERGE_ON_READ:
            return True
        table = TableSnapshot(self.storage, config, active)
        if _is_cleaned(config, to):
            return not pc.any(pc.equal(FileSystemView.load(table).files["kind"], LOG)).as_py()
        return not count_uncompacted(table)

    def finish_interrupted_run(self, config: TableConfig) -> TableConfig:
        """Enable what an interrupted run has disabled, and delete its leftovers.

        Raises:
            TransactionError: What looks like leftovers are writes of the table.
        """
        active = ActiveTimeline.load(self.storage, config.layout)
        self.generator.lock.ensure_held()  # What are leftovers depends on the version.
        refuse_moved_instants(active)
        config = metadata_table_conversion.enable_metadata_table(active, config)
        remove_leftovers(self.storage, config.layout)
        return config

    def _rollbacks(self, config: TableConfig) -> RollbackExecutor:
        return RollbackExecutor.from_options(self.storage, config.version, self.generator, self.opts)


def is_compacted(config: TableConfig, to: int) -> bool:
    """Return True if log files are compacted first, as in Apache Hudi, except for the upgrade from version 5 to 6."""
    return config.table_type is TableType.MERGE_ON_READ and (config.version >= 6 or to > 6)


def _is_cleaned(config: TableConfig, to: int) -> bool:
    """Return True if all log files have to be removed: by their names version 6 would assign them to other slices."""
    return config.table_type is TableType.MERGE_ON_READ and to < 8 <= config.version


def _refuse_orphaned_logs(table: TableSnapshot) -> None:
    """Refuse log files that no clean deletes, because they belong to no write.

    Raises:
        TransactionError: The message has one of them, and the solution.
    """
    paths = find_orphan_files(table)["path"]
    logs = paths.filter(pc.equal(parse_names(file_names_of(paths))["kind"], LOG))
    if len(logs):
        raise TransactionError(
            f"the version of the table at {table.storage.uri()} cannot be changed while it has {len(logs)} log files "
            f"that belong to no write, such as {logs[0].as_py()!r}: delete them first "
            "(services.delete_orphan_files(dry_run=False))"
        )


def count_uncompacted(table: TableSnapshot) -> int:
    """Return the number of current file slices that have log files."""
    slices = FileSystemView.load(table).latest_slices()
    return int(pc.sum(has_log_files(slices)).as_py() or 0)
