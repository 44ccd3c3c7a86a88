"""Carrying out plans of indexes: building them of what is completed, while writers go on and keep them up to date.

The table's lock is held twice, for moments: to announce the partitions, with their file groups, and to publish them.
What is completed in between is told to the partitions by the writes themselves; if one has not, as it knew nothing of
them, they are begun anew. Whoever takes up a plan first undoes
what an earlier attempt left; an attempt that fails undoes itself, and leaves the plan.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError, ConflictError, InstantNotFoundError, NotFoundError
from pyhudi.metadata.declare import declare_partitions
from pyhudi.metadata.deltas import begin, publish
from pyhudi.metadata.filefacts import LOCAL, FileFacts
from pyhudi.metadata.halfbuilt import are_there, begin_build, is_of_use, undo_build
from pyhudi.metadata.home import metadata_timeline
from pyhudi.metadata.maintain import build_wanted, is_enabled
from pyhudi.services.indexbuild import Prepared, Preparer, prepare
from pyhudi.services.indexes import request_of, wanted_options
from pyhudi.services.indexing import IndexResult, LockedTable, locked
from pyhudi.services.indextold import Listener, is_told_since
from pyhudi.table.config import TableConfig
from pyhudi.timeline.gate import Claim
from pyhudi.timeline.indexing import IndexPlan, encode_built, last_contiguous_write, pending_index_plans
from pyhudi.timeline.instants import Action, Instant, State
from pyhudi.transaction.begin import new_heartbeat
from pyhudi.transaction.planned import refuse_while_alive
from pyhudi.transaction.rollback import FailedWrites

if TYPE_CHECKING:
    from pyhudi.storage import Storage
    from pyhudi.table.metaclient import TableMetaClient
    from pyhudi.timeline.active import ActiveTimeline
    from pyhudi.timeline.heartbeat import Heartbeat

_TRIES = 3
"""How often base files are written while writers go on; the last time that it takes, nobody else may write."""

_log = logging.getLogger(__name__)


def run_index(
    client: TableMetaClient,
    opts: Options,
    preparer: Callable[[], Preparer],
    *,
    instant: str | None = None,
    dry_run: bool = False,
    facts: FileFacts = LOCAL,
) -> IndexResult:
    """Carry out the pending plans of indexes, oldest first, or only the one of ``instant``; ``preparer`` is asked for
    what is needed for indexes that an engine builds, ``facts`` reads files for the others. With ``dry_run`` nothing is
    done.

    Raises:
        InstantNotFoundError: no such plan is pending.
        ConflictError: another process took this attempt for dead, or a write could not keep the index.
        BusyError: somebody else is carrying out a plan.
        UnsupportedTableError: a plan names an index that is not built here, or that the table cannot have.
        ConfigError: what an index needs is not there.
        TransactionError: a restore is pending.
    """
    if not is_enabled(opts):
        raise ConfigError(f"{options.METADATA_ENABLE.key} is false: the table would have no metadata table to index it")
    plans = pending_index_plans(client.active_timeline())
    if instant is not None:
        plans = [plan for plan in plans if plan.instant == instant]
        if not plans:
            raise InstantNotFoundError(f"no indexing {instant!r} is pending in the table at {client.storage.root}")
    if not plans:
        return IndexResult(reason="no index is planned")
    if dry_run:
        return IndexResult(tuple(partition for plan in plans for partition in plan.partitions))
    built: list[str] = []
    for plan in plans:
        built += _Attempt(client, opts, plan, preparer, facts).run()
    return IndexResult(tuple(built), "" if built else "the table has what was planned")


@dataclass(frozen=True, slots=True)
class _Begun:
    """A plan that was taken up: what is to be written, and who hears what writes tell meanwhile."""

    prepared: list[Prepared]
    listener: Listener
    entry: Instant

    def verify(self, stats: Sequence[Mapping[str, Any]], data: ActiveTimeline) -> None:
        """Look whether the table can still have what was built.

        Raises:
            UnsupportedTableError: it cannot.
        """
        for one in self.prepared:
            if one.verify is not None:
                one.verify(stats, data)


class _Attempt:
    """One attempt at a plan."""

    def __init__(
        self,
        client: TableMetaClient,
        opts: Options,
        plan: IndexPlan,
        preparer: Callable[[], Preparer],
        facts: FileFacts = LOCAL,
    ) -> None:
        assert plan.instant is not None
        self._client, self._plan, self._preparer, self._facts = client, plan, preparer, facts
        self._storage: Storage = client.storage
        self._instant = plan.instant
        self._token = f"{secrets.randbits(31):x}"
        self._claim = Claim(client.storage, plan.instant, self._token)
        self._heartbeat: Heartbeat | None = None
        self._requests = [request_of(client.storage, client.config, name) for name in plan.partitions]
        for request in self._requests:
            opts = opts.merged(wanted_options(request, opts))
        self._opts = opts

    def run(self) -> Sequence[str]:
        """Build the partitions of the plan; returns those that were built."""
        try:
            return self._build()
        except BaseException:
            with contextlib.suppress(Exception):  # what went wrong first is what the caller has to know
                self._give_up()
            raise
        finally:
            if self._heartbeat is not None:
                self._heartbeat.stop()

    def _build(self) -> Sequence[str]:
        with locked(self._client, self._opts, self._facts) as table:
            begun = self._begin(table)
        for left in reversed(range(_TRIES)):
            if begun is None:
                return ()
            stats = _written(begun)
            data = self._client.active_timeline()
            if stats is not None:  # what is known before needs no look while others wait
                begun.listener.missed(data, metadata_timeline(self._storage, self._client.config.version))
                begun.verify(stats, data)
            with locked(self._client, self._opts, self._facts) as table:
                self._refuse_if_superseded(table)
                self._refuse_if_gone(table, begun)
                own = metadata_timeline(table.storage, table.config.version)
                if stats is not None and are_there(table.storage, stats) and not begun.listener.missed(table.data, own):
                    self._check(table, begun)
                    if table.data.timeline.completed().writes() != data.timeline.completed().writes():
                        begun.verify(stats, table.data)
                    return self._publish(table, begun, stats)
                begun = self._begin(table, anew=True)
                if begun is not None and not left:  # nobody writes now, so nothing can be missed
                    table = replace(table, config=TableConfig.load(table.storage))
                    return self._publish(table, begun, [stat for one in begun.prepared for stat in one.write()])
        return ()

    def _begin(self, table: LockedTable, *, anew: bool = False) -> _Begun | None:
        """Announce the partitions; None if there is nothing to be done any more."""
        storage, data, mine = table.storage, table.data, self._heartbeat is not None
        entry = data.timeline.find(self._instant, Action.INDEXING)
        if entry is None or entry.is_completed:
            return None
        several = FailedWrites.of(self._opts) is not FailedWrites.EAGER
        if several and entry.state is State.INFLIGHT and not mine:
            refuse_while_alive(storage, entry, self._opts)
        config = undo_build(storage, table.config, self._instant, self._plan.partitions)
        config = build_wanted(table.upkeep(), config, only_if_none=True)
        left = [r for r in self._requests if r.partition not in config.metadata_partitions]
        if not left or is_of_use(storage, config, self._instant, self._plan.partitions):
            data.delete_pending(self._instant, Action.INDEXING)
            return None
        now = replace(table, config=config)
        for request in left:
            request.check(storage, config, now.schema)
        preparer = self._preparer() if any(request.needs_spark for request in left) else None
        own = metadata_timeline(storage, config.version)
        anew = anew or is_told_since(own, self._instant, self._plan.partitions)
        instant = table.completion() if anew else self._instant
        prepared = prepare(now, left, instant, preparer)
        if instant != self._instant:
            entry = self._renew(now, instant)
        if entry.state is State.REQUESTED:
            entry = data.to_inflight(entry)
        self._claim.take()
        if several and self._heartbeat is None:
            self._heartbeat = new_heartbeat(storage, self._instant, self._opts)
            self._heartbeat.start()
        definitions = {one.partition: one.definition for one in prepared if one.definition is not None}
        begin_build(storage, config, self._instant, {p.partition: p.groups for p in prepared}, definitions)
        return _Begun(prepared, Listener(data.timeline, [one.partition for one in prepared]), entry)

    def _renew(self, table: LockedTable, instant: str) -> Instant:
        """Put the plan on the timeline under a new instant, instead of its own; returns that."""
        content = replace(self._plan, instant=instant).encode(table.config.version)
        entry = table.data.create_requested(Action.INDEXING, instant, content)
        table.data.delete_pending(self._instant, Action.INDEXING)
        self._claim.release()
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None
        self._instant, self._claim = instant, Claim(self._storage, instant, self._token)
        return entry

    def _publish(self, table: LockedTable, begun: _Begun, stats: Sequence[Mapping[str, Any]]) -> Sequence[str]:
        storage, config, data = table.storage, table.config, table.data
        partitions = [one.partition for one in begun.prepared]
        active = metadata_timeline(storage, config.version)
        entry = begin(active, self._instant)
        completed_at = table.completion() if config.version >= 8 else None
        publish(active, entry, stats, config.version, completed_at, operation="BULK_INSERT_PREPPED")
        upto = last_contiguous_write(data) or self._plan.upto
        content = encode_built(partitions, max(upto, self._plan.upto), config.version)
        data.complete(begun.entry, content, table.completion() if config.version >= 8 else None)
        declare_partitions(storage, config, partitions)
        self._claim.release()
        return partitions

    def _check(self, table: LockedTable, begun: _Begun) -> None:
        """Look whether the table can have the indexes by now, which it could when they were begun.

        Raises:
            ConfigError, UnsupportedTableError: it cannot, by what others have done meanwhile.
        """
        built = {one.partition for one in begun.prepared}
        for request in self._requests:
            if request.partition in built:
                request.check(table.storage, table.config, table.schema)

    def _refuse_if_gone(self, table: LockedTable, begun: _Begun) -> None:
        partitions = {one.partition for one in begun.prepared}
        gone = sorted(partitions - set(table.config.metadata_partitions_inflight))
        if gone:
            raise ConflictError(
                f"{', '.join(gone)} went out of the metadata table while being built, by a write that could not keep "
                "it up to date, or that built the metadata table anew; run the plan again"
            )

    def _give_up(self) -> None:
        """Leave the plan as it was before."""
        with locked(self._client, self._opts, self._facts) as table:
            entry = table.data.timeline.find(self._instant, Action.INDEXING)
            if entry is None or entry.is_completed or not self._claim.is_mine():
                return
            undo_build(table.storage, table.config, self._instant, self._plan.partitions)
            inflight = table.data.in_state(entry, State.INFLIGHT)
            if inflight is not None:
                table.data.delete(inflight)
            self._claim.release()

    def _refuse_if_superseded(self, table: LockedTable) -> None:
        entry = table.data.timeline.find(self._instant, Action.INDEXING)
        if entry is None or entry.state is not State.INFLIGHT or not self._claim.is_mine():
            raise ConflictError(
                f"the indexing {self._instant} is not this attempt's any more: another process took it for dead, or "
                "dropped the index. With several processes at work set "
                "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL"
            )


def _written(begun: _Begun) -> list[Mapping[str, Any]] | None:
    """Write the base files; returns their write stats. None: files of the table were cleaned away meanwhile."""
    try:
        return [stat for one in begun.prepared for stat in one.write()]
    except NotFoundError as gone:
        _log.info("the index is begun anew: %s", gone)
        return None
