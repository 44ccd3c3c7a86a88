"""Two processes that carry out one plan of a table service, and a writer beside them, each paused, killed or answered
wrongly at any operation on the storage, in any order.

Files, services and the metadata table are real; processes, locks and storage are those of
`tests/unit/transaction/simulation.py`. A service changes no rows, so all rows are there once at the end, and nothing is
left of those that failed. ``PYHUDI_EXAMPLES=100`` plays some ten thousand schedules.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import CommitStateUnknownError, HudiError, NonRetryableConflictError
from pyhudi.format.log import LogSlice
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.services.cleaning.clean_planner import read_savepoints
from pyhudi.services.cleaning.cleaner import Cleaner
from pyhudi.services.clustering.clustering_runner import ThreadClusteringRunner
from pyhudi.services.compaction.compaction_runner import ThreadCompactionRunner
from pyhudi.services.post_commit_services import PostCommitServices
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.table.view.pending_file_groups import pending_compaction_groups
from pyhudi.timeline.archive.archived_timeline import archived_writes
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action, State
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.locks import file_system_lock, storage_based_lock
from tests.cases import seldom
from tests.properties import examples
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, SCHEMA, MorTable, row
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

SERVICES = {
    **FAST,
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "4",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.timeline.compaction.batch.size": "2",
    "hoodie.log.compaction.blocks.threshold": "2",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.inline.max.commits": "1",
}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
SEVERAL = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
WRITTEN = row("a1", "a", 50, "written")
Rows = dict[str, dict[str, Any]]


class SimulatedTable(MorTable):
    """A table in the storage of an actor. Writers append to the slices that pending compactions open."""

    def _where(self, file_id: str, partition: str, instant: str) -> LogSlice:
        found = super()._where(file_id, partition, instant)
        opened = pending_compaction_groups(self.client.active_timeline()).to_pylist()
        later = max((one["instant"] for one in opened if one["file_id"] == file_id), default="")
        if self.version >= 8 or later <= found.instant:
            return found
        return LogSlice(file_id, later, found.token, 1)


def in_storage(storage: Any, version: int, options: dict[str, str]) -> SimulatedTable:
    return SimulatedTable(Path("/simulated"), version, options=options, storage=storage)


def table_in(storage: Any, options: dict[str, str]) -> HudiTable:
    return HudiTable(storage, Options.parse(options))


class Writer:
    """Updates a row."""

    def __init__(self, version: int, options: dict[str, str]) -> None:
        self.version, self.options = version, options

    def __call__(self, storage: Any) -> Any:
        mor = in_storage(storage, self.version, self.options)
        with mor.begin() as tx:
            view = FileSystemView.load(TableSnapshot(storage, tx.config, tx.active))
            if FILE_IDS["a"] not in view.latest_slices()["file_id"].to_pylist():
                raise NonRetryableConflictError("the file group was replaced")
            stats = mor.write_logs(tx, [WRITTEN])
            try:
                tx.fence.check()
            except HudiError:  # the rollback may have looked for files before there was one
                storage.delete_many([stat["path"] for stat in stats])
                raise
            outcome = tx.commit(CommitMetadata("UPSERT", write_stats(stats), {"schema": to_avro(SCHEMA, "t")}))
        if not isinstance(outcome, Committed):
            raise outcome.error()
        return outcome


def fail_to_write(mor: MorTable) -> None:
    mor.write_logs(mor.begin(), [row("a1", "a", 60, "lost"), row("b1", "b", 60, "lost")])


def plan_clean(mor: MorTable) -> None:
    client = mor.client
    cleaner = Cleaner(client, Options.parse(mor.options), LOCAL)
    assert cleaner.schedule(TableSnapshot.load(client), cleaner.plan(), only_if_due=False)


def failed_write(client: TableMetaClient) -> str:
    return next((i.requested for i in client.active_timeline().timeline.writes().pending()), "0")


Run = Callable[[Any, dict[str, str]], object]


def inline(storage: Any, options: dict[str, str], **more: str) -> tuple[Any, Options]:
    return storage, Options.parse({**options, "hoodie.fail.writes.on.inline.table.service.exception": "true", **more})


def compact_inline(storage: Any, options: dict[str, str]) -> object:
    return PostCommitServices(*inline(storage, options, **{"hoodie.compact.inline": "true"})).compact(
        ThreadCompactionRunner()
    )


def log_compact_inline(storage: Any, options: dict[str, str]) -> object:
    more = {"hoodie.compact.inline": "false", "hoodie.log.compaction.inline": "true"}
    return PostCommitServices(*inline(storage, options, **more)).compact(ThreadCompactionRunner())


def cluster_inline(storage: Any, options: dict[str, str]) -> object:
    more = {"hoodie.clustering.inline": "true"}
    return PostCommitServices(*inline(storage, options, **more)).cluster(ThreadClusteringRunner())


def pending(storage: Any, *actions: str) -> str:
    """Return the instant of the plan; one that is not there if it has been carried out."""
    now = TableMetaClient.open(storage).active_timeline().timeline.pending().of_actions(*actions)
    return now.instants[0].requested if now.instants else "0"


CLUSTERINGS = (Action.CLUSTERING, Action.REPLACE_COMMIT)


def unchanged(rows: Rows) -> Rows:
    """Return the rows."""
    return rows


@dataclass(frozen=True)
class Service:
    """A service: how its plan is made, and in which ways processes carry it out. ``undo`` returns the rows when it is
    done; a restore may undo the write of the writer, too."""

    plan: Callable[[MorTable], object]
    runs: Sequence[Run]
    versions: tuple[int, ...] = (9, 6, 8)
    undo: Callable[[Rows], Rows] = unchanged


def save(mor: MorTable) -> None:
    mor.table.services.savepoint()
    mor.delta([row("b1", "b", 40, "gone")])


def saved(storage: Any, options: dict[str, str]) -> str:
    instants: list[str] = table_in(storage, options).services.savepoints()["instant"].to_pylist()
    return instants[0]


def before_last(storage: Any) -> str:
    return TableMetaClient.open(storage).active_timeline().timeline.completed().writes().instants[-2].requested


def grow(mor: MorTable) -> None:
    for n in range(5, 8):
        mor.delta([row("a0", "a", n, f"v{n}")])
        mor.table.services.compact()
    mor.table.services.clean()


CASES = {
    "compaction": Service(
        lambda m: m.table.services.schedule_compaction(),
        (
            lambda s, o: table_in(s, o).services.run_compaction(),
            lambda s, o: table_in(s, o).services.run_compaction(pending(s, Action.COMPACTION)),
            compact_inline,
        ),
    ),
    "log_compaction": Service(
        lambda m: m.table.services.schedule_log_compaction(),
        (
            lambda s, o: table_in(s, o).services.run_log_compaction(),
            lambda s, o: table_in(s, o).services.run_log_compaction(pending(s, Action.LOG_COMPACTION)),
            log_compact_inline,
            compact_inline,
        ),
        versions=(8, 9),
    ),
    "clustering": Service(
        lambda m: m.table.services.schedule_clustering(),
        (
            lambda s, o: table_in(s, o).services.run_clustering(),
            lambda s, o: table_in(s, o).services.run_clustering(pending(s, *CLUSTERINGS)),
            cluster_inline,
        ),
        versions=(6, 9, 8),
    ),
    "clean": Service(
        plan_clean,
        (
            lambda s, o: table_in(s, o).services.clean(),
            lambda s, o: PostCommitServices(*inline(s, o)).clean_and_archive(LOCAL),
        ),
        versions=(8, 6, 9),
    ),
    "clean_without_plan": Service(
        lambda _: None,
        (
            lambda s, o: table_in(s, o).services.clean(),
            lambda s, o: PostCommitServices(*inline(s, o)).clean_and_archive(LOCAL),
            lambda s, o: table_in(s, o).services.archive(),
        ),
    ),
    "rollback": Service(
        fail_to_write,
        (
            lambda s, o: table_in(s, o).services.rollback(failed_write(TableMetaClient.open(s))),
            lambda s, o: table_in(s, o).services.clean(),
        ),
        versions=(6, 9, 8),
    ),
    "archival": Service(
        grow,
        (
            lambda s, o: table_in(s, o).services.archive(),
            lambda s, o: PostCommitServices(*inline(s, o)).clean_and_archive(LOCAL),
        ),
        versions=(9, 6, 8),
    ),
    "savepoint": Service(
        lambda m: m.table.services.compact(),
        (
            lambda s, o: table_in(s, o).services.savepoint(before_last(s)),
            lambda s, o: table_in(s, o).services.savepoint(),
            lambda s, o: table_in(s, o).services.clean(ONE_VERSION),
            lambda s, o: table_in(s, o).services.archive(),
        ),
        versions=(6, 9, 8),
    ),
    "restore": Service(
        save,
        (
            lambda s, o: table_in(s, o).services.restore(saved(s, o)),
            lambda s, o: table_in(s, o).services.restore(saved(s, o)),
            lambda s, o: table_in(s, o).services.clean(),
        ),
        versions=(9, 6, 8),
        undo=lambda rows: {**rows, "b1": row("b1", "b", 4, "w4")},
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], tuple[MemoryStorage, Rows]]:
    """Tables by service and version, with the plan of the service, and their rows."""

    @functools.cache
    def made(name: str, version: int) -> tuple[dict[str, tuple[bytes, int, int]], Rows]:
        mor = MorTable(tmp_path_factory.mktemp(name) / "table", version, options=SERVICES)
        mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
        for n in range(1, 5):
            mor.delta([row("a0", "a", n, f"v{n}"), row(f"b{n % 3}", "b", n, f"w{n}")], [("b0", "b", 3)] * (n == 3))
            if n == 2:
                mor.table.services.compact()
        CASES[name].plan(mor)
        files = (path for path in mor.root.rglob("*") if path.is_file())
        now = time.time_ns() // 1_000_000
        found = {str(path.relative_to(mor.root)): (path.read_bytes(), now, 0) for path in files}
        return found, mor.rows()

    def table(name: str, version: int) -> tuple[MemoryStorage, Rows]:
        storage = MemoryStorage()
        files, rows = made(name, version)
        storage.files |= files
        return storage, rows

    return table


@dataclass(frozen=True)
class Played:
    """What became of a schedule. ``known``: the instants before, active and archived; ``undo``: see `Service`."""

    world: World
    options: dict[str, str]
    runners: Sequence[Actor]
    writer: Actor
    known: frozenset[str]
    undo: Callable[[Rows], Rows]

    def describe(self) -> list[str]:
        actors = (*self.runners, self.writer)
        told = [f"{a.name}: {a.fault} of {len(a.operations)}: {a.outcome!r}" for a in actors]
        return [f"{self.options}, {self.world.lock_kind}", *told, *self.world.trace[-60:]]


def play(seed: int, name: str, version: int, storage: MemoryStorage) -> Played:
    """One schedule. Everything in it hangs on the seed, but for random names."""
    world = World(seed)
    world.storage = storage
    file_system_lock.dead_holder = storage_based_lock.dead_holder = functools.partial(is_of_the_dead, world)
    random = world.random
    options = SERVICES | random.choice(({}, SEVERAL))
    runs = [random.choice(CASES[name].runs) for _ in range(2)]
    works: list[Any] = [lambda s, run=run: run(s, options) for run in runs]
    if random.random() < 0.5:
        works.append(Writer(version, options))
    for number, work in enumerate(works):
        fault = (random.randint(1, 150), random.choice(FAULTS)) if random.random() < 0.5 else None
        world.actors.append(Actor(("one", "two", "writer")[number], world, work, fault))
    if name == "rollback":
        age_heartbeats(storage)
    known = known_instants(storage)
    world.run()
    runners, writers = world.actors[:2], world.actors[2:]
    writer = writers[0] if writers else Actor("nobody", world, lambda _: None, outcome="killed")
    return Played(world, options, runners, writer, known, CASES[name].undo)


def tidy_up(played: Played, version: int) -> None:
    """Everybody else is dead: late requests arrive, another process carries out what is left, and writes."""
    world = played.world
    world.actors, world.holder, world.ages, world.steals, world.leases = [], None, False, False, []
    for _ in range(world.random.randint(0, len(world.storage.late))):
        world.storage.arrive()
    finish(world, version)
    while world.storage.late:
        world.storage.arrive()
        finish(world, version)


def finish(world: World, version: int) -> None:
    age_heartbeats(world.storage)
    world.clock_ms += 400_000
    storage = ActorStorage(Actor("last", world, lambda _: None))
    mor = in_storage(storage, version, SERVICES)
    services = table_in(storage, SERVICES).services
    if mor.client.active_timeline().timeline.pending().of_actions(Action.RESTORE):
        services.restore()
    write_nothing(mor)
    for entry in mor.client.active_timeline().timeline.pending():
        if entry.action == Action.COMPACTION:
            services.run_compaction(entry.requested)
        elif entry.action == Action.LOG_COMPACTION:
            services.run_log_compaction(entry.requested)
        elif entry.action in CLUSTERINGS:
            services.run_clustering(entry.requested)
    services.clean()
    write_nothing(mor)


def write_nothing(mor: MorTable) -> None:
    """Roll back what has failed."""
    with mor.begin() as tx:
        mor.commit(tx, "UPSERT", [])


def rows_in(storage: MemoryStorage, **options: str) -> Rows:
    table = table_in(storage, SERVICES | {key.replace("__", "."): value for key, value in options.items()})
    found = table.scan(columns=list(SCHEMA.names)).to_arrow().to_pylist()
    assert len({one["id"] for one in found}) == len(found), f"rows that come twice: {found}"
    return {one["id"]: one for one in found}


def check(played: Played, rows: Rows, version: int) -> None:
    storage = played.world.storage
    failures = [a.outcome for a in (*played.runners, played.writer) if isinstance(a.outcome, BaseException)]
    assert all(isinstance(failure, HudiError) for failure in failures), failures
    outcome, undone = played.writer.outcome, played.undo(rows)
    may_be = [rows, undone] if undone != rows else [rows]
    with_written = [one | {"a1": WRITTEN} for one in may_be]
    allowed = [*may_be, *with_written]
    if isinstance(outcome, Committed):
        allowed = with_written if undone == rows else [*with_written, undone]
    elif outcome != "killed" and not isinstance(outcome, CommitStateUnknownError):
        allowed = may_be
    at_once = allowed if undone == rows else [*may_be, *with_written]  # a restore may be halfway
    assert rows_in(storage) in at_once, "at once"
    assert rows_in(storage, hoodie__metadata__enable="false") in at_once, "at once, by listing"
    tidy_up(played, version)
    assert rows_in(storage) in allowed
    assert rows_in(storage, hoodie__metadata__enable="false") in allowed
    check_end(played, storage, version)


def check_end(played: Played, storage: MemoryStorage, version: int) -> None:
    """Nothing is left of what failed, but for files that processes finish after their instants were rolled back, and
    that die then: archival deletes these."""
    active = TableMetaClient.open(storage).active_timeline()
    assert not active.timeline.pending(), active
    assert played.undo is not unchanged or played.known <= known_instants(storage)
    for paths in read_savepoints(active).values():
        assert set(paths.to_pylist()) <= set(storage.files), "a savepoint lacks files"
    for instant in active.timeline.completed():
        states = [state.state for state in active.states(instant)]
        assert states == [State.COMPLETED, State.INFLIGHT, State.REQUESTED][: len(states)], instant
    table = table_in(storage, SERVICES)
    harmless = {"of another size"} | ({"not in the metadata table"} if version < 8 else set())
    assert not set(table.validate_metadata()["problem"].to_pylist()) - harmless
    left = [path for path in storage.files if path.startswith((".hoodie/.temp/", ".hoodie/.heartbeat/"))]
    assert not left
    if not any(actor.outcome == "killed" for actor in (*played.runners, played.writer)):
        assert not table.services.delete_orphan_files(dry_run=True).to_pylist()


def known_instants(storage: MemoryStorage) -> frozenset[str]:
    """Return the completed writes, active and archived."""
    active = TableMetaClient.open(storage).active_timeline()
    archived = archived_writes(storage, active.layout)["requested"].to_pylist()
    return frozenset({i.requested for i in active.timeline.completed().writes()} | set(archived))


def cases() -> list[Any]:
    return [
        (name, version) if version == case.versions[0] else seldom((name, version))
        for name, case in CASES.items()
        for version in case.versions
    ]


SCHEDULES = examples(12)


@pytest.mark.parametrize(("name", "version"), cases())
def test_two_runners_of_one_plan(
    tables: Callable[[str, int], tuple[MemoryStorage, Rows]], name: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables(name, version)  # made by a real process
    with simulated_processes(monkeypatch):
        for seed in range(SCHEDULES):
            storage, rows = tables(name, version)
            played = None
            try:
                played = play(seed, name, version, storage)
                check(played, rows, version)
            except BaseException as failure:
                failure.add_note(f"seed {seed}")
                for line in played.describe() if played else ():
                    failure.add_note(line)
                raise
