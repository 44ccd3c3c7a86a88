"""Transaction of one write, from its start to its publication.

``Transaction.begin`` rolls back failed writes and creates a requested instant. ``to_inflight`` records the workload
profile; then data files and markers are written. ``commit`` deletes files left behind by retried tasks, checks for
conflicts, updates the metadata table, and publishes the instant by creating one file. ``abort`` rolls back the write
(`pyhudi.transaction.pending_write`). A writer may be killed at any point: the next ``begin`` rolls it back.

A writer that was considered dead may resume, even after it has lost its lock. Therefore a rollback is first recorded in
the timeline and then checks whether the write was published, and a publication checks before and after whether the
write is being rolled back: at least one of them detects the other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Self

from pyhudi.config import Options
from pyhudi.errors import CommitStateUnknownError, TransactionError
from pyhudi.metadata.delete_metadata_table import delete_metadata_table
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.writer.initial_statistics import LOCAL, FileStatsReader
from pyhudi.metadata.writer.metadata_writer import update_from_commit
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.schema_history import SchemaHistory, persist_history
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.rolling_metadata import RollingMetadata
from pyhudi.timeline.time_generator import ReservedTime
from pyhudi.transaction.commit_conditions import CommitConditions, CommitRequest
from pyhudi.transaction.commit_outcome import Committed, Conflicted
from pyhudi.transaction.conflicts.conflict_detection import AllowedConflicts, find_conflict
from pyhudi.transaction.file_reconciliation import reconcile_against_markers
from pyhudi.transaction.pending_write import PendingWrite
from pyhudi.transaction.post_commit.commit_report import millis_by_phase, report_commit
from pyhudi.transaction.post_commit.metadata_updates import MetadataUpdates
from pyhudi.transaction.publication import Publication, complete_instant
from pyhudi.transaction.rollback import late_data_files
from pyhudi.transaction.schema_versions import RecordedSchema
from pyhudi.transaction.table_checks import current_config

_log = logging.getLogger(__name__)


class Transaction(PendingWrite):
    """A running write on one table that can be committed. Not thread-safe.

    ``stats_reader`` reads the files of the table if indexes have to be built.

    It has many attributes because it is the state machine of a write (requested, inflight, published, finished), whose
    steps must not be taken in another order or by two objects.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        operation: str,
        opts: Options,
        stats_reader: FileStatsReader = LOCAL,
    ) -> None:
        super().__init__(storage, config, operation, opts)
        self.stats_reader = stats_reader
        self._metadata_updates = MetadataUpdates(storage, opts, self._rollbacks.generator, stats_reader)
        self._publication: Publication | None = None

    @classmethod
    def begin(
        cls,
        client: TableMetaClient,
        action: str,
        operation: str,
        options: Mapping[str, str],
        stats_reader: FileStatsReader = LOCAL,
        *,
        instant: str | None = None,
    ) -> Self:
        """Start a write.

        ``action`` is commit, deltacommit or replacecommit, ``operation`` an operation type such as ``UPSERT``.
        ``instant``: the fixed requested time of some writes, such as a bootstrap.

        Raises:
            TransactionError: A restore is pending, or the bootstrap of the table, unless this is an attempt at it.
            UnsupportedTableError: The table cannot be written, or a failed write cannot be rolled back by pyhudi.
                Nothing has been changed then.
            LockError: The lock of the table could not be acquired.
        """
        self = cls(client.storage, client.config, operation, Options.parse(options), stats_reader)
        self._create_requested(action, instant)
        return self

    def commit(
        self,
        metadata: CommitMetadata,
        *,
        exchange_table: Callable[[Instant], None] | None = None,
        index: IndexDelta | None = None,
        conditions: CommitConditions | None = None,
        schema_history: SchemaHistory | None = None,
    ) -> Committed | Conflicted:
        """Publish the write, or roll it back because another writer changed the same file groups first.

        The metadata table is updated first; ``index`` are the changes that the writer itself has written to some of its
        partitions. ``exchange_table`` replaces the table by another one: it is called with the completed instant before
        any other writer may start or commit, and every write of others that is pending, or was completed since this one
        started, is a conflict.
        ``conditions``: state of the table on which the write depends. ``schema_history``: the schema history with the
        version that the commit adds.

        After the publication nothing is raised: failures are logged, and included in the warnings of the result (except
        those of ``exchange_table``).

        Raises:
            ConflictError: Another writer considered this one dead and rolled it back.
            CommitStateUnknownError: The storage did not respond to the publication, or another writer started to roll
                back the write concurrently. It remains pending, or committed as soon as its file appears.
            LockError: The lock of the table could not be acquired, or was lost; the write is still pending.
        """
        if self._finished or self._instant.state is not State.INFLIGHT:
            raise TransactionError(f"{self._instant} cannot be committed: it must be inflight")
        started = time.perf_counter()
        if self.action == Action.REPLACE_COMMIT and metadata.replaced is None:
            metadata = replace(metadata, replaced=REPLACED_SCHEMA.empty_table())
        self._close_fence()  # From now on abandoned tasks add no files.
        self.reconcile_files(metadata)
        request = CommitRequest(metadata, exchange_table, index, conditions or CommitConditions(), schema_history)
        published = self._publish_or_leave_pending(request)
        if isinstance(published, Conflicted):
            self.abort()
            return published
        return self._end_published(published, metadata, started)

    def _publish_or_leave_pending(self, request: CommitRequest) -> Publication | Conflicted:
        """Publish the write, or return the conflict. The write is left pending if it is unknown whether it was
        published. A failure after the publication is a warning."""
        try:
            conflict = self._publish_under_lock(request)
        except CommitStateUnknownError:
            self.leave_pending()
            raise
        except Exception as failure:
            if self._publication is None:
                raise
            warning = f"{self._publication.instant} is committed, but later work failed: {failure}"
            _log.warning("%s", warning)
            return replace(self._publication, warnings=(warning,))
        outcome = conflict or self._publication
        assert outcome is not None
        return outcome

    def _end_published(self, published: Publication, metadata: CommitMetadata, started: float) -> Committed:
        """End a published write: remove its markers, run services of the metadata table, and report the commit.

        Args:
            published: The publication.
            metadata: The metadata of the commit as requested.
            started: Seconds of `time.perf_counter` at which the commit began.
        """
        self._instant = published.instant
        warnings = (*published.warnings, *self._finish())
        ended = time.perf_counter()
        self._metadata_updates.run_services(self.config, published.metadata_job)
        millis = millis_by_phase((self._start, started, ended, time.perf_counter()))
        report_commit(self.storage, self.config, self._instant, metadata, millis=millis, opts=self.opts)
        return Committed(self._instant, warnings, millis)

    def _publish_under_lock(self, request: CommitRequest) -> Conflicted | None:
        """Publish the write under the lock, or return the conflict.

        1. Check that no other writer has rolled back this one, and delete what its failed tasks left.
        2. Check for conflicts, agree with other writers on the columns of the table, and take over rolling metadata.
        3. Update the metadata table, or delete it if the table is about to be exchanged.
        4. Publish the instant by one file. Until then the write is invisible and can be rolled back.
        5. Exchange the table, or plan services of its metadata table.
        """
        with self._rollbacks.generator.reserve() as reserved:
            # Timeline and properties are read again, because others had the lock while the data files were written:
            # they may have committed, rolled this write back, begun a restore, built indexes or upgraded the table.
            active = self._active.reload()
            self._check_alive(active, State.INFLIGHT)
            active = self._rollbacks.resolve_unanswered_publications(active, self.instant)
            self._reconcile_under_lock(request.metadata, active)
            recorded = self._check_conflicts(request, active)
            if isinstance(recorded, Conflicted):
                return recorded
            self.config = current_config(self.storage, self.config)
            if request.exchange_table is None:
                extra = RollingMetadata.from_options(self.opts).with_rolled(recorded.metadata.extra, active)
                recorded = replace(recorded, metadata=replace(recorded.metadata, extra=extra))
            content = recorded.metadata.encode(self.config.version, self.action)
            if request.exchange_table is not None:
                self.config = delete_metadata_table(self.storage, self.config)
                done = self._publish(recorded, content, active, reserved)
                request.exchange_table(done)
                self._publication = Publication(done)
                return None
            table = self._metadata_updates.locked_table(active, self.config, reserved)
            index = request.index or IndexDelta()
            table = update_from_commit(table, self.instant, recorded.metadata, index)
            self.config = table.config
            done = self._publish(recorded, content, active, reserved)
            self._publication = Publication(done)  # Services of the metadata table may fail.
            job = self._metadata_updates.plan_services(table)
            self._publication = Publication(done, job)
        return None

    def _check_conflicts(self, request: CommitRequest, active: ActiveTimeline) -> RecordedSchema | Conflicted:
        """Return the metadata to publish, with the columns on which concurrent writers agree; or the conflict."""
        conflict = self._find_conflict(request.metadata, active)
        if conflict is None:
            conflict = request.find_conflict(self.instant, self.timeline, active)
        return request.agreed_metadata(self.instant, active) if conflict is None else conflict

    def _publish(
        self, recorded: RecordedSchema, content: bytes, active: ActiveTimeline, reserved: ReservedTime
    ) -> Instant:
        """Complete the instant, after everything that must exist as soon as it is visible. The lock is held."""
        completion = reserved.take(active.latest_time) if active.layout.version >= 2 else None
        if active.timeline.start is None:  # It is the new start of the timeline, and older files become visible.
            late_data_files.delete_files_older_than(active, self.instant)
        self._signals.before_publication()
        if recorded.history is not None:
            persist_history(active, self.instant, completion, recorded.history)
        self.lock.ensure_held()
        return complete_instant(active, self._instant, content, completion, self.timeline)

    def build_metadata_table(self, metadata: CommitMetadata) -> None:
        """Build the metadata table of the table that this committed write has created from another one. The caller
        holds the lock of the table."""
        self._metadata_updates.build(metadata)

    def reconcile_files(self, metadata: CommitMetadata) -> None:
        """Delete files left behind by retried tasks, before the lock is acquired, because there may be many.

        Args:
            metadata: Metadata of the commit, which names the files of the write.
        """
        if not self._fixed_instant:
            reconcile_against_markers(self.storage, self.instant, metadata)

    def _reconcile_under_lock(self, metadata: CommitMetadata, active: ActiveTimeline) -> None:
        """Delete files left behind that can be told apart from those of other writers only under the lock: of an
        instant that every attempt has."""
        if self._fixed_instant:
            reconcile_against_markers(self.storage, self.instant, metadata)
            late_data_files.delete_files_of_other_attempts(active, self.instant, metadata.named_files())

    def _find_conflict(self, metadata: CommitMetadata, active: ActiveTimeline) -> Conflicted | None:
        exceptions = AllowedConflicts.from_options(self.opts, self.config.merging.mode)
        return find_conflict(
            metadata, self.instant, self.timeline, active, version=self.config.version, exceptions=exceptions
        )
