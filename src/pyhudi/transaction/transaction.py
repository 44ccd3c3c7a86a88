"""Transaction of one write, from its announcement to its publication.

``Transaction.begin`` clears away what dead writers left and announces an instant. ``to_inflight`` says what is going to
be done; then data files and markers are written. ``commit`` deletes files that retried tasks left over, looks for
writers that were faster, tells the metadata table, and publishes the instant by creating one file. ``abort`` rolls the
write back. A writer may die anywhere in between: the next ``begin`` rolls it back.

A writer that was taken for dead may wake up, also without the lock that it had. So whoever rolls a write back says so
on the timeline first and then looks whether it was published, and who publishes looks before and after whether it is
rolled back: one of them sees the other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.errors import CommitStateUnknownError, TransactionError
from pyhudi.metadata.disable_metadata import detach_metadata_table
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.writer.file_stats_reader import LOCAL, FileStatsReader
from pyhudi.metadata.writer.metadata_writer import apply_commit, without_disabled
from pyhudi.storage.local_locks import DeferredReleaseLock
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.schema_history import persist_history
from pyhudi.timeline import heartbeat
from pyhudi.timeline.action_metadata import requested_replace
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA, CommitMetadata
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.instant_generator import InstantGenerator, Slot
from pyhudi.timeline.markers import Markers
from pyhudi.timeline.timeline import Timeline
from pyhudi.timeline.timeline_layout import Layout
from pyhudi.timeline.write_gate import PublicationIntent, WriteGate
from pyhudi.transaction.action_start import current_config, new_heartbeat
from pyhudi.transaction.cleanup import clean_up, stop_heartbeat
from pyhudi.transaction.commit_outcome import Committed, Conflicted
from pyhudi.transaction.commit_request import CommitRequest
from pyhudi.transaction.conflicts.clustering_updates import allows_updates
from pyhudi.transaction.conflicts.conflict_resolution import find_conflict
from pyhudi.transaction.file_reconciliation import reconcile
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.transaction.locks.lock_provider import LockProvider
from pyhudi.transaction.post_commit.commit_report import millis_by_phase, report_commit
from pyhudi.transaction.post_commit.metadata_updates import (
    build_metadata_table,
    metadata_write_context,
    plan_metadata_services,
    run_metadata_services,
)
from pyhudi.transaction.publication import publish_instant
from pyhudi.transaction.rollback import late_files
from pyhudi.transaction.rollback.rollback_failed import Rollbacks, failed_writes_policy, newest, refuse_pending_restore
from pyhudi.transaction.rollback.rollback_status import refuse_if_rolled_back

if TYPE_CHECKING:
    from pyhudi.metadata.services.metadata_compaction_job import MetadataCompactionJob
    from pyhudi.storage import Storage
    from pyhudi.table.meta_client import TableMetaClient
    from pyhudi.table.schema_history import SchemaHistory
    from pyhudi.transaction.conflicts.serializable_reads import ReadSet

__all__ = ["Transaction"]

_log = logging.getLogger(__name__)


class Transaction:
    """A write under way on one table. Not thread-safe.

    ``instant`` is its requested time; ``timeline`` is what was on the timeline when it was announced: the write must be
    planned on that, because only what completed later is looked at for conflicts. ``config`` is the table's
    configuration from now on. ``stats_reader`` reads the table's files if indexes have to be built of them. Use it in a
    ``with`` block and it is aborted unless it was committed.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        operation: str,
        options: Mapping[str, str],
        lock: LockProvider,
        generator: InstantGenerator,
    ) -> None:
        self.storage = storage
        self.config = config
        self.operation = operation
        self.options = options
        self.typed_options = Options.parse(options)
        self.stats_reader: FileStatsReader = LOCAL
        self._lock = lock
        self._generator = generator
        self._rollbacks = Rollbacks(storage, config.version, generator)
        self._heartbeat: heartbeat.Heartbeat | None = None
        self._active: ActiveTimeline
        self._entry: Instant
        self._published: Instant | None = None
        self._finished = False
        self._metadata_job: MetadataCompactionJob | None = None
        self._start = time.perf_counter()
        self.timeline: Timeline

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
        """Announce a write.

        ``action`` is commit, deltacommit or replacecommit, ``operation`` an operation type such as ``UPSERT``.
        ``instant``: the requested time of a write that always has the same, as a bootstrap has.

        Raises:
            TransactionError: a restore is pending.
            UnsupportedTableError: the table cannot be written, or a failed write cannot be rolled back here. Nothing
                has been changed then.
            LockError: the table's lock could not be taken.
        """
        storage = client.storage
        lock = make_lock_provider(storage, options)
        generator = InstantGenerator(storage, options, client.config.timezone, lock=lock)
        self = cls(storage, client.config, operation, options, lock, generator)
        self.stats_reader = stats_reader
        try:
            with generator.reserve() as slot:
                self._begin(slot, action, instant)
        except BaseException:
            self._stop_heartbeat()
            raise
        return self

    def _begin(self, slot: Slot, action: str, instant: str | None) -> None:
        """Clear away what others left, and announce the write; the lock is held."""
        storage, options = self.storage, self.options
        policy = failed_writes_policy(options)
        config = self.config = current_config(storage, self.config)
        self._rollbacks = Rollbacks(storage, config.version, self._generator)
        active = ActiveTimeline.load(storage, Layout.of(config.properties))
        refuse_pending_restore(active)
        failed = self._rollbacks.failed_writes(active, policy, options)
        self._rollbacks.check(active, failed)
        # before the first change to the timeline: a metadata table must not outlive what it describes
        self.config = without_disabled(storage, config, self.typed_options)
        self._rollbacks.clean_up(active, failed, options)
        if instant is not None:  # that may have been begun before: those attempts are rolled back by now
            active = active.reload()
        self.timeline, self._active = active.timeline, active
        requested = instant or slot.take(newest(active))
        if policy is not FailedWritesPolicy.EAGER:
            self._heartbeat = new_heartbeat(storage, requested, options)
            self._heartbeat.start()
        content = requested_replace(config.version) if action == Action.REPLACE_COMMIT else b""
        self._entry = active.create_requested(action, requested, content)

    def _stop_heartbeat(self) -> None:
        """Stop the heartbeat, so that others may roll the write back."""
        if self._heartbeat is not None:
            stop_heartbeat(self._heartbeat)

    @property
    def instant(self) -> str:
        """The requested time, which names the write's files."""
        return self._entry.requested

    @property
    def action(self) -> str:
        return self._entry.action

    @property
    def lock(self) -> DeferredReleaseLock:
        """The table's lock."""
        return self._generator.lock

    @property
    def _gate(self) -> WriteGate:
        return WriteGate(self.storage, self.instant)

    @property
    def _intent(self) -> PublicationIntent:
        return PublicationIntent(self.storage, self.instant)

    @property
    def markers(self) -> Markers:
        """Markers, by which every data file of the write is announced before it is begun."""
        return Markers(self.storage, self.instant)

    @property
    def active(self) -> ActiveTimeline:
        """`timeline` with its files, of that moment: what the write is to be planned on."""
        return self._active

    def to_inflight(self, metadata: CommitMetadata | None = None) -> None:
        """Announce that data files are going to be written; ``metadata`` is the workload profile (None: an empty file).

        Raises:
            ConflictError: another writer took this one for dead and rolled it back.
            LockError: the table's lock could not be taken.
        """
        content = b"" if metadata is None else metadata.encode(self.config.version, self.action)
        with self.lock:
            self._gate.open()  # whoever announces a rollback after the look closes it
            self._check_alive(self._active.reload(), State.REQUESTED)
            self._entry = self._active.to_inflight(self._entry, content)
            self._begun()

    def _begun(self) -> None:
        """Called when the inflight file has been created; the lock is held."""

    def commit(
        self,
        metadata: CommitMetadata,
        *,
        exclusively: Callable[[Instant], None] | None = None,
        index: IndexDelta | None = None,
        planned_on: str | None = None,
        agree_on_columns: bool = False,
        reads: ReadSet | None = None,
        altered: SchemaHistory | None = None,
    ) -> Committed | Conflicted:
        """Publish the write, or roll it back because another writer changed the same file groups first.

        The metadata table learns of it first; ``index`` is what the writer itself has done for partitions of it.
        ``exclusively`` is done with the completed instant before any other writer may begin or commit; every write of
        others that is pending, or was completed since this one began, is then a conflict. ``agree_on_columns``: the
        table's columns (Avro JSON) that the write was planned on, ``planned_on``, may have been changed since
        (`pyhudi.transaction.conflicts.schema_conflicts`). ``reads``: what the write depends on, a change of which is a
        conflict, too. ``altered``: the history of the table's schemas with the version that the commit brings.

        Once the write is published nothing is raised: what goes wrong then is logged, and is among the warnings of the
        result. (Except what ``exclusively`` raises.)

        Raises:
            ConflictError: another writer took this one for dead and rolled it back.
            CommitStateUnknownError: the storage gave no answer to the publication, or another writer began to roll the
                write back just then. It is left as it is: pending, or committed as soon as its file appears.
            LockError: the table's lock could not be taken, or was lost; the write is still pending.
        """
        if self._finished or self._entry.state is not State.INFLIGHT:
            raise TransactionError(f"{self._entry} cannot be committed: it must be inflight")
        clock = [self._start, time.perf_counter()]
        if self.action == Action.REPLACE_COMMIT and metadata.replaced is None:
            metadata = replace(metadata, replaced=REPLACED_SCHEMA.empty_table())
        self._gate.close()  # from now on tasks that were given up add nothing
        self._tidy(metadata)
        warnings: list[str] = []
        try:
            request = CommitRequest(metadata, exclusively, index, planned_on, agree_on_columns, reads, altered)
            conflict = self._decide(request)
        except CommitStateUnknownError:
            self._leave_pending()
            raise
        except Exception as failure:
            if self._published is None:
                raise
            conflict = None
            warnings.append(self._after(failure))
        if conflict is not None:
            self.abort()
            return conflict
        assert self._published is not None
        self._entry = self._published
        warnings += self._finish()
        clock.append(time.perf_counter())
        run_metadata_services(
            self.storage, self.typed_options, self.config, self._generator, self._metadata_job, self.stats_reader
        )
        clock.append(time.perf_counter())
        millis = millis_by_phase(clock)
        report_commit(self.storage, self.config, self._entry, metadata, millis, self.typed_options)
        return Committed(self._entry, tuple(warnings), millis)

    def _decide(self, request: CommitRequest) -> Conflicted | None:
        """Publish the write under the lock, or say what stands against that."""
        with self._generator.reserve() as slot:
            active = self._active.reload()
            self._check_alive(active, State.INFLIGHT)
            active = self._rollbacks.settle(active, self.instant)
            conflict = self._find_conflict(request.metadata, active)
            if conflict is None:
                conflict = request.find_conflict(self.instant, self.timeline, active)
            if conflict is not None:
                return conflict
            recorded = request.agreed_metadata(self.instant, active)
            if isinstance(recorded, Conflicted):
                return recorded
            metadata = recorded.metadata
            self.config = current_config(self.storage, self.config)
            content = metadata.encode(self.config.version, self.action)
            metadata_context = metadata_write_context(self.storage, self.typed_options, active, slot, self.stats_reader)
            if request.exclusively is None:
                told = request.index or IndexDelta()
                self.config = apply_commit(metadata_context, self.config, self.instant, metadata, told)
            else:
                # what comes after it is another table
                self.config = detach_metadata_table(self.storage, self.config)
            completion = slot.take(newest(active)) if active.layout.version >= 2 else None
            if active.timeline.start is None:  # it is the start from now on, and what is older counts
                late_files.delete_before(active, self.instant)
            if self._heartbeat is not None:  # else whoever begins next rolls this write back at once
                self._intent.set()
            if recorded.history is not None:
                persist_history(active, self.instant, completion, recorded.history)
            self._lock.ensure_held()
            done = publish_instant(active, self._entry, content, completion, self.timeline)
            if request.exclusively is not None:
                request.exclusively(done)
            self._published = done
            if request.exclusively is None:
                self._metadata_job = plan_metadata_services(metadata_context, self.config)
        return None

    def _after(self, failure: BaseException) -> str:
        """Log what went wrong after the write was published."""
        text = f"{self._published} is committed, but what comes after that failed: {failure}"
        _log.warning("%s", text)
        return text

    def build_metadata_table(self, metadata: CommitMetadata) -> None:
        """Build the metadata table of the table that this write has made out of another one. The write is committed.
        The caller holds the table's lock."""
        build_metadata_table(self.storage, self.typed_options, self._generator, metadata, self.stats_reader)

    def _tidy(self, metadata: CommitMetadata) -> None:
        """Delete what retried tasks left over; before the lock is taken, as this may be many files."""
        reconcile(self.storage, self.instant, metadata)

    def _find_conflict(self, metadata: CommitMetadata, active: ActiveTimeline) -> Conflicted | None:
        beside = allows_updates(self.typed_options)
        version = self.config.version
        return find_conflict(metadata, self.instant, self.timeline, active, version, beside_clustering=beside)

    def _leave_pending(self) -> None:
        """Leave the write pending for the next writer to resolve. The heartbeat ages from now on."""
        if self._heartbeat is not None:
            self._heartbeat.abandon()
        self._finished = True

    def abort(self) -> None:
        """Roll the write back, by a rollback action; nothing when it is committed or aborted already."""
        if self._finished:
            return
        with self.lock:
            self._undo(self._active.reload())
        if not self._finished:
            self._finish()

    def _undo(self, active: ActiveTimeline) -> None:
        """Roll back what is on the timeline of this write; the lock is held."""
        found = active.timeline.find(self.instant, self.action)
        if found is not None and not found.is_completed:
            self._rollbacks.roll_back(active, found)
        elif found is None:  # what came after the rollback by somebody else, which has deleted the markers
            self._gate.close()
            reconcile(self.storage, self.instant, CommitMetadata(self.operation))

    def _check_alive(self, active: ActiveTimeline, expected: State) -> None:
        """Refuse to go on with a write that another writer rolled back, or has begun to, or that a restore undoes."""
        refuse_pending_restore(active)
        if self._heartbeat is not None:
            self._heartbeat.check()
        refuse_if_rolled_back(self._entry, expected, self.timeline, active)

    def _finish(self) -> list[str]:
        """Remove markers and signs of life; returns what went wrong with that."""
        warnings = clean_up(self._entry, self._last_steps())
        self._finished = True
        return warnings

    def _last_steps(self) -> list[Callable[[], object]]:
        steps: list[Callable[[], object]] = [self._gate.close, self.markers.delete]
        if self._heartbeat is not None:
            steps += [self._intent.remove, self._heartbeat.stop]
        return steps

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._finished:
            return
        if error is None:
            self.abort()
            return
        try:
            self.abort()
        except Exception as failure:
            _log.warning("%s is left to the next writer to roll back: %s", self._entry, failure)
            self._stop_heartbeat()
