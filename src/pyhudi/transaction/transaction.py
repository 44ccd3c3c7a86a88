"""One write from its announcement to its publication.

``Transaction.begin`` clears away what dead writers left and announces an instant. ``to_inflight`` says what is going to
be done; then data files and markers are written. ``commit`` deletes files that retried tasks left over, looks for
writers that were faster, tells the metadata table, and publishes the instant by creating one file. ``abort`` rolls the
write back. A writer may die anywhere in between: the next ``begin`` rolls it back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pyhudi.config import Options
from pyhudi.errors import ConflictError, StorageError, TransactionError
from pyhudi.metadata.detach import detach_metadata_table
from pyhudi.metadata.filefacts import LOCAL, FileFacts
from pyhudi.metadata.indexdelta import IndexDelta
from pyhudi.metadata.maintain import record_commit, without_unwanted
from pyhudi.storage.locking import LingeringLock
from pyhudi.table.config import TableConfig
from pyhudi.timeline import heartbeat
from pyhudi.timeline.active import ActiveTimeline
from pyhudi.timeline.gate import WriteGate
from pyhudi.timeline.generator import InstantGenerator
from pyhudi.timeline.instants import Action, Instant, State
from pyhudi.timeline.layout import Layout
from pyhudi.timeline.markers import Markers
from pyhudi.timeline.metadata import REPLACED_SCHEMA, CommitMetadata
from pyhudi.timeline.plans import requested_replace
from pyhudi.timeline.timeline import Timeline
from pyhudi.transaction import columns as column_rules
from pyhudi.transaction.afterwards import build_metadata_table, serve_metadata_table, upkeep_of
from pyhudi.transaction.begin import current_config, new_heartbeat
from pyhudi.transaction.conflicts import find_conflict, find_rival
from pyhudi.transaction.locks import LockProvider, lock_provider
from pyhudi.transaction.outcome import Committed, Conflicted
from pyhudi.transaction.reconcile import reconcile
from pyhudi.transaction.rollback import FailedWrites, Rollbacks, newest, refuse_pending_restore

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.metaclient import TableMetaClient

__all__ = ["Transaction"]

_log = logging.getLogger(__name__)


class Transaction:
    """A write under way on one table. Not thread-safe.

    ``instant`` is its requested time; ``timeline`` is what was on the timeline when it was announced: the write must be
    planned on that, because only what completed later is looked at for conflicts. ``config`` is the table's
    configuration from now on. ``facts`` reads the table's files if indexes have to be built of them. Use it in a
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
        self.facts: FileFacts = LOCAL
        self._lock = lock
        self._generator = generator
        self._rollbacks = Rollbacks(storage, config.version, generator)
        self._heartbeat: heartbeat.Heartbeat | None = None
        self._active: ActiveTimeline
        self._entry: Instant
        self._finished = False
        self.timeline: Timeline

    @classmethod
    def begin(
        cls,
        client: TableMetaClient,
        action: str,
        operation: str,
        options: Mapping[str, str],
        facts: FileFacts = LOCAL,
    ) -> Transaction:
        """Announce a write.

        ``action`` is commit, deltacommit or replacecommit, ``operation`` an operation type such as ``UPSERT``.

        Raises:
            TransactionError: a restore is pending.
            UnsupportedTableError: the table cannot be written, or a failed write cannot be rolled back here. Nothing
                has been changed then.
            LockError: the table's lock could not be taken.
        """
        storage = client.storage
        lock = lock_provider(storage, options)
        generator = InstantGenerator(storage, options, client.config.timezone, lock=lock)
        policy = FailedWrites.of(options)
        with generator.reserve() as slot:
            config = current_config(storage, client.config)
            self = cls(storage, config, operation, options, lock, generator)
            self.facts = facts
            active = ActiveTimeline.load(storage, Layout.of(config.properties))
            refuse_pending_restore(active)
            failed = self._rollbacks.failed_writes(active, policy, options)
            self._rollbacks.check(active, failed)
            # before the first change to the timeline: a metadata table must not outlive what it describes
            self.config = without_unwanted(storage, config, self.typed_options)
            self._rollbacks.clean_up(active, failed, options)
            self.timeline = active.timeline
            requested = slot.take(newest(active))
            if policy is not FailedWrites.EAGER:
                self._heartbeat = new_heartbeat(storage, requested, options)
                self._heartbeat.start()
            self._active = active
            self._announce(action, requested)
        return self

    def _announce(self, action: str, requested: str) -> None:
        content = requested_replace(self.config.version) if action == Action.REPLACE_COMMIT else b""
        try:
            self._entry = self._active.create_requested(action, requested, content)
        except BaseException:
            self._fall_silent()
            raise

    def _fall_silent(self) -> None:
        """Give no more signs of life, so that others may roll the write back."""
        if self._heartbeat is None:
            return
        try:
            self._heartbeat.stop()
        except Exception as failure:  # the file stays and ages
            _log.warning("the heartbeat of %s is left behind: %s", self._heartbeat.instant, failure)

    @property
    def instant(self) -> str:
        """The requested time, which names the write's files."""
        return self._entry.requested

    @property
    def action(self) -> str:
        return self._entry.action

    @property
    def lock(self) -> LingeringLock:
        """The table's lock."""
        return self._generator.lock

    @property
    def _gate(self) -> WriteGate:
        return WriteGate(self.storage, self.instant)

    @property
    def markers(self) -> Markers:
        """Where every data file of the write is announced before it is begun."""
        return Markers(self.storage, self.instant)

    def to_inflight(self, metadata: CommitMetadata | None = None) -> None:
        """Say that data files are going to be written; ``metadata`` is the workload profile (None: an empty file)."""
        content = b"" if metadata is None else metadata.encode(self.config.version, self.action)
        self._entry = self._active.to_inflight(self._entry, content)
        self._gate.open()

    def commit(
        self,
        metadata: CommitMetadata,
        *,
        exclusively: Callable[[Instant], None] | None = None,
        index: IndexDelta | None = None,
        planned_on: str | None = None,
        agree_on_columns: bool = False,
    ) -> Committed | Conflicted:
        """Publish the write, or roll it back because another writer changed the same file groups first.

        The metadata table learns of it first; ``index`` is what the writer itself has done for partitions of it.
        ``exclusively`` is done with the completed instant before any other writer may begin or commit; every write of
        others that is pending, or was completed since this one began, is then a conflict. ``agree_on_columns``: the
        table's columns (Avro JSON) that the write was planned on, ``planned_on``, may have been changed since
        (`pyhudi.transaction.columns`).

        Raises:
            ConflictError: another writer took this one for dead and rolled it back.
            LockError: the table's lock could not be taken, or was lost; the write is still pending.
        """
        if self._finished or self._entry.state is not State.INFLIGHT:
            raise TransactionError(f"{self._entry} cannot be committed: it must be inflight")
        if self.action == Action.REPLACE_COMMIT and metadata.replaced is None:
            metadata = replace(metadata, replaced=REPLACED_SCHEMA.empty_table())
        version = self.config.version
        self._gate.close()  # from now on tasks that were given up add nothing
        self._tidy(metadata)
        done: Instant | None = None
        with self._generator.reserve() as slot:
            active = self._active.reload()
            self._check_alive(active)
            conflict = self._find_conflict(metadata, active)
            if conflict is None and exclusively is not None:
                conflict = find_rival(self.instant, self.timeline, active)
            if conflict is None and agree_on_columns:
                agreed = column_rules.agree_on_columns(metadata, self.instant, planned_on, active)
                if isinstance(agreed, Conflicted):
                    conflict = agreed
                else:
                    metadata = agreed
            if conflict is None:
                self.config = current_config(self.storage, self.config)
                content = metadata.encode(version, self.action)
                upkeep = upkeep_of(self.storage, self.typed_options, active, slot, self.facts)
                if exclusively is None:
                    told = index or IndexDelta()
                    self.config = record_commit(upkeep, self.config, self.instant, metadata, told)
                else:
                    # what comes after it is another table
                    self.config = detach_metadata_table(self.storage, self.config)
                completion = slot.take(newest(active)) if active.layout.version >= 2 else None
                self._lock.ensure_held()
                done = self._publish(active, content, completion)
                if exclusively is not None:
                    exclusively(done)
                else:
                    serve_metadata_table(upkeep, self.config)
        if conflict is not None:
            self.abort()
            return conflict
        assert done is not None
        self._entry = done
        self._finish()
        return Committed(done)

    def build_metadata_table(self, metadata: CommitMetadata) -> None:
        """Build the metadata table of the table that this write has made out of another one. The write is committed.
        The caller holds the table's lock."""
        build_metadata_table(self.storage, self.typed_options, self._generator, metadata, self.facts)

    def _tidy(self, metadata: CommitMetadata) -> None:
        """Delete what retried tasks left over; before the lock is taken, as this may be many files."""
        reconcile(self.storage, self.instant, metadata)

    def _find_conflict(self, metadata: CommitMetadata, active: ActiveTimeline) -> Conflicted | None:
        return find_conflict(metadata, self.instant, self.timeline, active, self.config.version)

    def _publish(self, active: ActiveTimeline, content: bytes, completion: str | None) -> Instant:
        try:
            return active.complete(self._entry, content, completion)
        except StorageError:
            # the answer may have been lost after the file was made
            done = active.reload().timeline.find(self.instant, self.action)
            if done is None or not done.is_completed:
                raise
            return done

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

    def _check_alive(self, active: ActiveTimeline) -> None:
        if self._heartbeat is not None:
            self._heartbeat.check()
        found = active.timeline.find(self.instant, self.action)
        if found is None or found.state is not State.INFLIGHT:
            state = "gone from the timeline" if found is None else found.state.value.lower()
            raise ConflictError(
                f"{self._entry} is {state}: another writer took this one for dead and rolled it back; run the write "
                "again, and with several writers set hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"
            )

    def _finish(self) -> None:
        self._gate.close()
        self.markers.delete()
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self._finished = True

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
            self._fall_silent()
