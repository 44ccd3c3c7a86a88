"""Upgrades and downgrades of tables, as in Apache Hudi 1.2.0, such that the table has either version after an
interruption at any point.

First the table is prepared by services of its current version: failed writes are rolled back, log files compacted.
Then, under the lock, all files that the other version reads are written in addition to the current ones, and one change
of ``hoodie.properties`` activates them. Finally, files of the previous version are deleted.

Changes by step, besides those of the properties (``property_conversion``) and of the metadata table, which is converted
or rebuilt (``metadata_table_conversion``):

======  ==============================================================================================================
5 -> 6  second copies of compaction plans are deleted, and the metadata table is rebuilt
6 -> 8  timeline, archive and schema history move to layout 2 (``timeline_copy``)
8 -> 9  definitions of indexes get a version
9 -> 8  metadata partitions of a form that version 8 does not have are dropped
8 -> 6  all log files are compacted and cleaned; timeline, archive and schema history move to layout 1; metadata
        partitions that version 6 does not have are dropped
======  ==============================================================================================================

Apache Hudi has a class for each, such as ``SixToEightUpgradeHandler``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pyhudi.config import Options, property_keys
from pyhudi.config.property_keys import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT
from pyhudi.errors import BusyError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.metadata.indexes.index_definitions import load_definitions, store_definitions
from pyhudi.metadata.metadata_layout import FILES, load_metadata_timeline, metadata_layout
from pyhudi.metadata.writer.initial_statistics import FileStatsReader
from pyhudi.services.compaction.compaction_runner import CompactionRunner
from pyhudi.services.rollback import rebuild_metadata
from pyhudi.services.service_result import PhaseTimer
from pyhudi.services.upgrade import metadata_table_conversion
from pyhudi.services.upgrade.bucket_keys import check_bucket_keys
from pyhudi.services.upgrade.complex_keys import check_complex_keys
from pyhudi.services.upgrade.preconditions import check_payload_class, check_target, dropped_partitions
from pyhudi.services.upgrade.property_conversion import changed_properties
from pyhudi.services.upgrade.timeline_copy import copy_schema_history, copy_timeline, remove_leftovers, table_layout
from pyhudi.services.upgrade.upgrade_plan import UpgradePlan, UpgradeResult
from pyhudi.services.upgrade.upgrade_preparation import UpgradePreparation, count_uncompacted, is_compacted
from pyhudi.storage.table_paths import AUX_FOLDER
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archiver import finish_archival
from pyhudi.timeline.conversion.layout_conversion import was_copied
from pyhudi.timeline.instant import Action, Instant
from pyhudi.transaction.locks.lock_factory import make_time_generator
from pyhudi.transaction.post_commit.metadata_updates import MetadataUpdates
from pyhudi.transaction.rollback import late_data_files
from pyhudi.transaction.single_writer_locks import in_process_writer_lock

_ATTEMPTS = 3
"""Number of attempts in the presence of concurrent writers before the table is considered busy."""
_log = logging.getLogger(__name__)


class UpgradeDowngrade:
    """Changes the version of one table.

    Args:
        client: The table.
        opts: Options of locks, heartbeats, compaction and the metadata table.
        runner: Executes compactions.
        stats_reader: Reads files if the metadata table has to be rebuilt.
        lossy: Features that the older version does not support may be lost; see
            `pyhudi.services.upgrade.preconditions`.
    """

    def __init__(
        self,
        client: TableMetaClient,
        opts: Options,
        runner: CompactionRunner,
        stats_reader: FileStatsReader,
        *,
        lossy: bool = False,
    ) -> None:
        self._client, self._opts = client, opts
        self._storage = client.storage
        self._generator = make_time_generator(client.storage, opts, client.config.timezone)
        self._metadata_updates = MetadataUpdates(client.storage, opts, self._generator, stats_reader)
        self._preparation = UpgradePreparation(client, opts, runner, stats_reader, self._generator, lossy)
        self._phases = PhaseTimer()
        self._instants = 0
        self._dropped: list[str] = []

    def plan(self, to: int, *, downgrade: bool = False) -> UpgradePlan:
        """Return the plan of `run` now, without writing anything.

        Raises:
            The errors of `run`, except for the lock.
        """
        client = self._client.reload()
        config = client.config
        check_target(config, to, downgrade=downgrade)
        check_payload_class(config, self._opts, to)
        check_complex_keys(client, self._opts, to)
        active = client.active_timeline()
        if to == config.version:
            return UpgradePlan(to, to)
        failed = self._preparation.check(active, config, to)
        files = len([s for i in active.timeline for s in active.states(i)])
        changed = changed_properties(config.properties, to, self._opts)
        slices = count_uncompacted(TableSnapshot(self._storage, config, active)) if is_compacted(config, to) else 0
        return UpgradePlan(
            config.version,
            to,
            tuple(sorted(i.requested for i in failed)),
            slices,
            files if (to < 8) != (config.version < 8) else 0,
            tuple(dropped_partitions(self._storage, config, to)),
            {k: v for k, v in changed.items() if config.properties.get(k) != v},
            tuple(sorted(set(config.properties) - set(changed))),
        )

    def run(self, to: int, *, downgrade: bool = False) -> UpgradeResult:
        """Convert the table to another version. An interrupted run is continued by the next one.

        Raises:
            ConfigError: The version does not exist, or is in the other direction.
            UnsupportedTableError: The version does not support a feature of the table, or keys of it.
            TransactionError: A plan of a table service is pending, or Apache Hudi has changed the version halfway.
            BusyError: A write is running.
            CorruptInstantError: A file of the timeline cannot be parsed.
            LockError: The lock of the table could not be acquired, or was lost.
        """
        config = self._client.config
        start = config.version
        check_target(config, to, downgrade=downgrade)
        check_payload_class(config, self._opts, to)
        check_complex_keys(self._client, self._opts, to)
        with in_process_writer_lock(self._storage, self._opts):
            if start == to:
                with self._generator.lock:
                    self._preparation.finish_interrupted_run(TableConfig.load(self._storage))
            if start < 6 <= to:
                self._migrate(6)
            if to != start and (start >= 6 or to > 6):
                self._migrate(to)
        millis, dropped = self._phases.millis, tuple(self._dropped)
        result = UpgradeResult(start, to, self._storage.uri(), self._instants, dropped, millis)
        if result:
            _log.info("%s", result.line())
        return result

    def _migrate(self, to: int) -> None:
        """Change the version, once writers leave the table unchanged for long enough."""
        for _ in range(_ATTEMPTS):
            with self._phases("prepare"):
                self._preparation.run(to)
            with self._generator.lock:
                config = TableConfig.load(self._storage)
                active = ActiveTimeline.load(self._storage, config.layout)
                if config.version == to:
                    return
                if self._preparation.is_complete(active, config, to):
                    if is_compacted(config, to):  # Log files had keys that base files have now.
                        check_bucket_keys(TableSnapshot(self._storage, config, active), to)
                    if 6 <= config.version < 8 <= to:
                        late_data_files.delete_files_older_than(active, None)
                    self._change(active, config, to)
                    return
        raise BusyError(
            f"the table at {self._storage.root} is being written repeatedly, so its version cannot be changed; "
            "stop the writers and try again"
        )

    def _change(self, active: ActiveTimeline, config: TableConfig, to: int) -> None:
        storage, before = self._storage, config
        moves = (to < 8) != (config.version < 8)
        with self._phases("metadata"):
            if config.version >= 6 and finish_archival(active):
                active = active.reload()
            copied = moves and active.layout.version < 2 and was_copied(active, config.timezone)
            self._dropped = dropped_partitions(storage, config, to)
            config = self._prepared_metadata_table(active, config, rebuild=copied or config.version < 6)
        has_metadata = FILES in config.metadata_partitions
        with self._phases("timeline"):
            metadata_active = load_metadata_timeline(storage, config.version) if has_metadata else None
            if moves:
                # The copy begins with the deletion of what is there: by now that may be the timeline of the table.
                self._generator.lock.ensure_held()
                self._copy_timelines(active, metadata_active, config, to, copied=copied)
            if to >= 9 > config.version:
                self._complete_definitions(config)
        with self._phases("switch"):
            self._generator.lock.ensure_held()
            config = self._switch_version(active, config, to, has_metadata=has_metadata)
        with self._phases("clean up"):
            self._generator.lock.ensure_held()
            self._clean_up(config, before, to, rebuild=not has_metadata)

    def _copy_timelines(
        self,
        active: ActiveTimeline,
        metadata_active: ActiveTimeline | None,
        config: TableConfig,
        to: int,
        *,
        copied: bool,
    ) -> None:
        """Copy the timelines of the table and its metadata table into the other layout. ``copied``: the files of the
        table were copied, so their modification times are meaningless."""
        storage, timezone = self._storage, config.timezone
        self._instants += copy_timeline(active, table_layout(to), to, timezone, copied=copied)
        copy_schema_history(storage, active.layout, table_layout(to))
        if metadata_active is not None:
            copy_timeline(metadata_active, metadata_layout(to), to, timezone, copied=False)

    def _switch_version(
        self, active: ActiveTimeline, config: TableConfig, to: int, *, has_metadata: bool
    ) -> TableConfig:
        """Change the version of the table, and before that the one of its metadata table, which is disabled
        meanwhile."""
        partitions = config.properties.get(METADATA_PARTITIONS, "")
        if has_metadata:
            moves_back = to < 8 <= config.version
            config = metadata_table_conversion.disable_metadata_table(active, config)
            metadata_table_conversion.set_metadata_table_version(self._storage, to)
            if moves_back:
                self._add_empty_commits(active)
        return self._set_version(config, to, partitions)

    def _clean_up(self, config: TableConfig, before: TableConfig, to: int, *, rebuild: bool) -> None:
        """Delete what no version needs any more, and rebuild the metadata table if it was not converted."""
        self._storage.delete(metadata_table_conversion.JOURNAL)
        if to == 6:
            self._delete_auxiliary_plans(config)
        remove_leftovers(self._storage, config.layout)
        if rebuild:
            rebuild_metadata(self._metadata_updates, before)

    def _prepared_metadata_table(self, active: ActiveTimeline, config: TableConfig, *, rebuild: bool) -> TableConfig:
        if rebuild:
            return delete_metadata_table(self._storage, config)
        with self._generator.reserve(locked=True) as reserved:
            table = self._metadata_updates.locked_table(active, config, reserved)
            return metadata_table_conversion.prepare_metadata_table(table, self._dropped)

    def _set_version(self, config: TableConfig, to: int, partitions: str) -> TableConfig:
        """Set the version of the table, which activates the other version."""

        def change(properties: dict[str, str]) -> None:
            changed = changed_properties(properties, to, self._opts)
            properties.clear()
            properties.update(changed)
            if partitions:
                properties[METADATA_PARTITIONS] = partitions
            properties.pop(METADATA_PARTITIONS_INFLIGHT, None)

        # The other timeline has no commits of others since it was copied.
        self._generator.lock.ensure_held()
        config = config.updated(self._storage, change=change)
        assert config.properties[property_keys.VERSION] == str(to)
        return config

    def _add_empty_commits(self, active: ActiveTimeline) -> None:
        with self._generator.reserve(locked=True) as reserved:
            metadata_table_conversion.add_empty_commits(active, reserved.take(active.latest_time))

    def _complete_definitions(self, config: TableConfig) -> None:
        """Add the first index version to definitions without one, as later releases expect."""
        definitions = load_definitions(self._storage, config)
        named = {
            name: {**definition, "version": definition.get("version") or "V1"}
            for name, definition in definitions.items()
        }
        if named != definitions:
            store_definitions(self._storage, config, named)

    def _delete_auxiliary_plans(self, config: TableConfig) -> None:
        """Delete the second copies of compaction plans that version 5 stores."""
        pending: Iterable[Instant] = ActiveTimeline.load(self._storage, config.layout).timeline.pending()
        for instant in pending:
            if instant.action == Action.COMPACTION:
                self._storage.delete(f"{AUX_FOLDER}/{instant.requested}.compaction.requested")
