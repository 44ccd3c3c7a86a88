"""Two writers and a service, each paused, killed or answered wrongly at any operation on the storage, in any order.

Rows are texts in files of JSON, so that a lost row is seen as a reader would see it. What a writer was told decides
what must be true when all is over and another writer has come by: a committed row is there once, a failed one is not,
and what was killed or is not known is there whole or not at all.

``PYHUDI_EXAMPLES=100 make unit`` plays fifteen thousand schedules.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pyhudi.config import Options
from pyhudi.errors import CommitStateUnknownError, HudiError, StorageError
from pyhudi.services.archival import archival_runner
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Action, State
from pyhudi.timeline.plans.rollback_plan import RollbackPlan
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.locks import file_system_lock, storage_based_lock
from pyhudi.transaction.transaction import Transaction
from tests.properties import examples
from tests.unit.transaction.schedule_actors import (
    EXTRA,
    FIRST,
    PARTITION,
    Clustering,
    Compaction,
    ForeignClustering,
    Writer,
    opened,
    visible,
)
from tests.unit.transaction.simulated_processes import simulated_processes
from tests.unit.transaction.simulation import (
    FAULTS,
    Actor,
    ActorStorage,
    MemoryStorage,
    World,
    age_heartbeats,
    is_of_the_dead,
)
from tests.unit.transaction.tables import MULTI_WRITER, OPTIONS, active, make_table

EARLY_ARCHIVAL = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with simulated_processes(monkeypatch):
        yield


@dataclass(frozen=True)
class Played:
    """What became of a schedule; ``outcomes`` are by the writers' rows."""

    storage: MemoryStorage
    writers: Sequence[Writer]
    outcomes: Mapping[str, Any]
    actors: Sequence[Actor]


def play(seed: int) -> Played:
    """One schedule. Everything in it hangs on the seed, but for random names."""
    world = World(seed)
    file_system_lock.dead_holder = storage_based_lock.dead_holder = functools.partial(is_of_the_dead, world)
    random, storage = world.random, world.storage
    version = random.choice((6, 8, 9))
    logs = random.random() < 0.5
    storage.files |= first_table(version, logs)
    options = random.choice((OPTIONS, MULTI_WRITER))
    kinds = ("update", "update", "insert") if logs else ("update", "insert", "overwrite")
    writers = [Writer(random.choice(kinds), name, options, logs=logs) for name in ("one", "two")]
    service = Compaction(options) if logs else random.choice((Clustering, ForeignClustering))(options)
    for name, work in (("one", writers[0]), ("two", writers[1]), ("service", service)):
        fault = (random.randint(1, 60), random.choice(FAULTS)) if random.random() < 0.6 else None
        world.actors.append(Actor(name, world, work, fault))
    world.run()
    actors = world.actors
    world.actors, world.holder, world.ages, world.steals = [], None, False, False
    for _ in range(random.randint(0, len(storage.late))):
        storage.arrive()
    age_heartbeats(storage)
    late = bool(storage.late)
    tidy_up(world)
    if late:  # some may have arrived since
        while storage.late:
            storage.arrive()
        tidy_up(world)
    return Played(storage, writers, {actor.name: actor.outcome for actor in actors}, actors)


@functools.cache
def first_table(version: int, logs: bool) -> dict[str, tuple[bytes, int, int]]:
    """The files of a table with one row."""
    world = World(0)
    world.lock_kind = "process"
    make_table(world.storage, version, {"hoodie.table.type": "MERGE_ON_READ" if logs else "COPY_ON_WRITE"})
    world.storage.write(f"{PARTITION}/.hoodie_partition_metadata", b"")
    outcome = Writer("insert", FIRST, OPTIONS, logs=False)(ActorStorage(Actor("first", world, lambda _: None)))
    assert isinstance(outcome, Committed)
    return world.storage.files


def tidy_up(world: World) -> None:
    """Another writer comes by, and takes everybody else for dead."""
    storage = ActorStorage(Actor("last", world, lambda _: None))
    with Transaction.begin(opened(storage), "commit", "UPSERT", OPTIONS) as tx:
        tx.to_inflight()
        assert isinstance(tx.commit(CommitMetadata("UPSERT", extra=EXTRA)), Committed)


def check(storage: MemoryStorage, writers: Sequence[Writer], outcomes: dict[str, Any]) -> None:
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, BaseException)]
    assert all(isinstance(failure, HudiError) for failure in failures), failures
    rows = visible(storage)
    assert len(rows) == len(set(rows)), f"rows that come twice: {rows}"
    now = active(storage)
    done = {i.requested: i for i in now.timeline.completed().writes()}
    overwrites = [w for w in writers if w.kind == "overwrite" and isinstance(outcomes[w.row], Committed)]
    hidden = {row for row in (FIRST, "one", "two") for w in writers if w.kind == "overwrite" and w.instant in done}
    if not hidden:
        assert FIRST in rows, "the first row is lost"
    if overwrites:
        assert FIRST not in rows, "a row that was overwritten is there"
    for writer in writers:
        outcome = outcomes[writer.row]
        if isinstance(outcome, Committed):
            assert writer.instant in done, f"the commit of {writer.row} is lost"
            order = done[writer.instant].order_time
            later = [w for w in writers if w.kind == "overwrite" and w.instant in done and w is not writer]
            if not any(done[w.instant].order_time > order for w in later):
                assert writer.row in rows, f"row {writer.row} is lost"
        elif not isinstance(outcome, CommitStateUnknownError) and outcome != "killed":
            assert writer.row not in rows, f"row {writer.row} is there although its write failed"
    killed = frozenset(w.instant for w in writers if left_files(outcomes[w.row]))
    left = check_timeline(storage, now, killed)
    if left or now.timeline.pending():
        archive(storage)
        assert sorted(visible(storage)) == sorted(rows), f"rows are others when the start has moved on; left: {left}"
        left = {path for path in left if path in storage.files}
        assert not left or now.layout.version < 2 or stuck(storage), f"files that nobody ever deletes: {left}"


def left_files(outcome: object) -> bool:
    """Whether a writer that finds out that it was rolled back may not have deleted the file that it has just written:
    it was killed, or the storage refused."""
    return outcome == "killed" or (isinstance(outcome, StorageError) and str(outcome).startswith("delete "))


def stuck(storage: MemoryStorage) -> bool:
    """Whether a pending plan holds archival back."""
    return bool(active(storage).timeline.pending())


def archive(storage: MemoryStorage) -> None:
    """Some writes later, when the service's plan has been carried out, all of that is archived."""
    world = World(0)
    world.lock_kind, world.storage = "process", storage
    last = ActorStorage(Actor("last", world, lambda _: None))
    Compaction(OPTIONS).finish(last)
    Clustering(OPTIONS).finish(last)
    for _ in range(3):
        tidy_up(world)
    archival_runner.archive_table(opened(last), Options.parse(OPTIONS | EARLY_ARCHIVAL))


def check_timeline(storage: MemoryStorage, now: ActiveTimeline, killed: frozenset[str]) -> set[str]:
    """Nothing is half done, nothing is done and undone, no file is missing and none is too many.

    But for files of instants that were ``killed``, which are returned: a writer that slept through its rollback, woke
    up, finished a data file and died before it could look whether it is still wanted, or could not delete it. No reader
    sees it until the start of the timeline passes the instant, and archival deletes it before that.
    """
    left = [i for i in now.timeline.pending() if i.action not in (Action.COMPACTION, Action.CLUSTERING)]
    clusterings = {i.requested for i in left if i.action == Action.REPLACE_COMMIT}
    assert not [i for i in left if i.requested not in clusterings], left
    undone = set()
    for rollback in now.timeline.of_actions(Action.ROLLBACK):
        plan = RollbackPlan.decode(now.read_state(rollback, State.REQUESTED))
        undone |= {plan.instant} if plan.action != Action.COMPACTION else set()
    done = now.timeline.completed().writes()
    assert not undone & {i.requested for i in done}, "completed and rolled back"
    named: set[str] = set()
    for instant in done:
        assert [i.state for i in now.states(instant)] == [State.COMPLETED, State.INFLIGHT, State.REQUESTED], instant
        named |= set(now.commit_metadata(instant).stats["path"].to_pylist())
    files = {path for path in storage.files if not path.startswith(".hoodie/") and "partition_metadata" not in path}
    assert named <= files, f"missing: {named - files}"
    pending = {i.requested for i in now.timeline.pending()}
    more = {path for path in files - named if not any(instant in path for instant in pending | (killed & undone))}
    if now.layout.version >= 2:
        assert not more, f"files that nobody names: {more}"
    return {path for path in files - named if not any(instant in path for instant in pending)}


SCHEDULES = examples(150)


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("part", range(3))
def test_no_write_is_lost(part: int):
    for seed in range(part, SCHEDULES, 3):
        played = None
        try:
            played = play(seed)
            check(played.storage, played.writers, played.outcomes)
        except BaseException as failure:
            failure.add_note(f"seed {seed}")
            for actor in played.actors if played else ():
                failure.add_note(f"{actor.name}: {actor.work.__dict__} {actor.fault} {actor.outcome!r}")
            raise
