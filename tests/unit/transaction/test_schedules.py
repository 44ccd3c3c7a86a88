"""Two writers and a service, each paused, killed or answered wrongly at any operation on the storage, in any order.

Rows are texts in files of JSON, so that a lost row is seen as a reader would see it. What a writer was told decides
what must be true when all is over and another writer has come by: a committed row is there once, a failed one is not,
and what was killed or is not known is there whole or not at all.

``PYHUDI_EXAMPLES=100 make unit`` plays fifteen thousand schedules.
"""

from __future__ import annotations

import functools
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config import Options
from pyhudi.errors import CommitStateUnknownError
from pyhudi.format.file_names import base_file_name, log_file_name
from pyhudi.format.log import scan_blocks
from pyhudi.services.archival import table_archival
from pyhudi.storage import join_path
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.pinned_table import PinnedTable
from pyhudi.table.view import file_group_state, file_listing
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.table.view.planned_groups import is_clustering, pending_clustering_groups, pending_compaction_groups
from pyhudi.timeline import REPLACED_SCHEMA, ActiveTimeline, CommitMetadata, write_stats
from pyhudi.timeline.action_metadata import decode_record, encode_record
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.timeline.instant import Action, Instant, State
from pyhudi.timeline.markers import IOType
from pyhudi.timeline.plans.rollback_plan import RollbackPlan
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.transaction import planned_transaction, writer_coordination
from pyhudi.transaction.action_start import latest_instant_time
from pyhudi.transaction.commit_outcome import Committed
from pyhudi.transaction.conflicts.timeline_snapshot import TimelineSnapshot
from pyhudi.transaction.locks import file_system_lock, lock_factory, storage_based_lock
from pyhudi.transaction.planned_transaction import PlanAttempt, PlannedTransaction
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.handles.marked_file import MarkedFile
from pyhudi.write.settings.log_settings import log_slices
from tests.properties import examples
from tests.unit.transaction.simulation import (
    FAULTS,
    Actor,
    ActorStorage,
    MemoryStorage,
    World,
    age_heartbeats,
    is_of_the_dead,
    make_lock,
)
from tests.unit.transaction.tables import MULTI_WRITER, OPTIONS, SCHEMA, active, make_table

PARTITION, GROUP = "p", "00000000-g-0"
FIRST = "first"
EARLY_ARCHIVAL = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}
_EXTRA = {"schema": SCHEMA}


class _Serial:
    """Stands for a thread pool, so that an actor does one thing at a time."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> _Serial:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, work: Any, *items: Any) -> Iterator[Any]:
        return map(work, *items)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (writer_coordination, lock_factory):
        monkeypatch.setattr(module, "make_lock_provider", lambda storage, _: make_lock(storage.actor))
    for module in (file_group_state, file_listing, planned_transaction):
        monkeypatch.setattr(module, "ThreadPoolExecutor", _Serial)
    clock = SimpleNamespace(sleep=lambda _: None, monotonic=time.monotonic)
    monkeypatch.setattr("pyhudi.storage.local_locks.time", clock)
    monkeypatch.setattr(Heartbeat, "start", Heartbeat.refresh)
    for module in (file_system_lock, storage_based_lock):  # each schedule has its own dead
        monkeypatch.setattr(module, "dead_holder", None)
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    yield
    pa.set_cpu_count(threads)


def opened(storage: Any) -> Any:
    config = TableConfig.load(storage)
    return SimpleNamespace(
        storage=storage, config=config, active_timeline=lambda: ActiveTimeline.load(storage, config.layout)
    )


def slices_of(client: Any, now: ActiveTimeline) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _view(client, now).latest_slices().to_pylist()
    return found


def _view(client: Any, now: ActiveTimeline) -> FileSystemView:
    return FileSystemView.load(PinnedTable(client.storage, client.config, now))


def rows_of(storage: Any, now: ActiveTimeline, paths: Sequence[str]) -> list[str]:
    """The rows in files of a slice. The names of log files of version 6 do not say who wrote them; their blocks do, and
    command blocks void those before them."""
    found: list[tuple[str, list[str]]] = []
    for path in paths:
        data = storage.read(path)
        if data.startswith(b"{"):
            content = json.loads(data)
            found.append((content["instant"], content["rows"]))
            continue
        voided = {block.target_instant for block in scan_blocks(data)}
        found = [(instant, rows) for instant, rows in found if instant not in voided]
    return [row for instant, rows in found if now.timeline.contains_or_before_start(instant) for row in rows]


def paths_in(piece: dict[str, Any]) -> list[str]:
    return [path for path in (piece["base_path"], *piece["log_paths"]) if path]


def visible(storage: Any) -> list[str]:
    client = opened(storage)
    now = client.active_timeline()
    return [row for piece in slices_of(client, now) for row in rows_of(storage, now, paths_in(piece))]


class Writer:
    """Adds a row: to the file group (``update``), in one of its own (``insert``), in place of all (``overwrite``)."""

    def __init__(self, kind: str, row: str, options: dict[str, str], *, logs: bool) -> None:
        self.kind, self.row, self.options, self.logs = kind, row, options, logs
        self.replaced: list[str] = []
        self.instant = ""

    def __call__(self, storage: Any) -> Any:
        client = opened(storage)
        now = client.active_timeline()
        plan, basis = self._plan(client, now), TimelineSnapshot.of(now.timeline)
        action = "deltacommit" if self.logs else "commit"
        operation = "UPSERT"
        if self.kind == "overwrite":
            action, operation = "replacecommit", "INSERT_OVERWRITE_TABLE"
        with Transaction.begin(client, action, operation, self.options) as tx:
            self.instant = tx.instant
            if TimelineSnapshot.of(tx.timeline) != basis:
                plan = self._plan(client, tx.active)
            tx.to_inflight()
            stats = [self._write(tx, *each) for each in plan]
            replaced = None
            if self.kind == "overwrite":
                replaced = pa.table([[PARTITION] * len(self.replaced), self.replaced], schema=REPLACED_SCHEMA)
            return tx.commit(CommitMetadata(operation, write_stats(stats), _EXTRA, replaced=replaced))

    def _plan(self, client: Any, now: ActiveTimeline) -> list[tuple[str, str | None, list[str], bool]]:
        """File groups to be written: id, instant of the slice, the rows that go on, whether to a log file."""
        pieces = slices_of(client, now)
        self.replaced = [piece["file_id"] for piece in pieces] if self.kind == "overwrite" else []
        if self.kind != "update" or not pieces:
            return [(f"{uuid.uuid4().hex[:6]}-{self.row}-0", None, [], False)]
        waiting = set(pending_clustering_groups(now)["file_id"].to_pylist())
        piece = next((p for p in pieces if FIRST in rows_of(client.storage, now, paths_in(p))), pieces[0])
        if piece["file_id"] in waiting:
            raise RuntimeError("waits for a clustering")
        if not self.logs:
            return [(piece["file_id"], piece["base_instant"], rows_of(client.storage, now, paths_in(piece)), False)]
        table = pa.Table.from_pylist([piece], schema=_view(client, now).latest_slices().schema)
        found = log_slices(table, table, pending_compaction_groups(now), named_by_slice=client.config.version < 8)
        return [(piece["file_id"], found["base_instant"][0].as_py(), [], True)]

    def _write(self, tx: Transaction, file_id: str, base: str | None, before: list[str], log: bool) -> dict[str, Any]:
        token = new_token()
        old = tx.config.version < 8
        name = base_file_name(file_id, token, tx.instant)
        kind = IOType.CREATE if base is None else IOType.MERGE
        if log:
            assert base is not None
            name = log_file_name(file_id, base if old else tx.instant, 1, token)
            kind = IOType.APPEND if old else IOType.CREATE
        announced = MarkedFile(tx.storage, tx.instant, PARTITION, name, kind)
        tx.storage.write(announced.path, content_of(tx.instant, [*before, self.row]))
        announced.check()
        more = {"logVersion": 1, "logOffset": 0, "baseFile": "", "logFiles": [name]} if log else {}
        return {
            "fileId": file_id,
            "path": announced.path,
            "partitionPath": PARTITION,
            "numWrites": 1,
            "prevCommit": base,
            **more,
        }


def new_token() -> str:
    """A write token that no other task has."""
    return f"0-1-{uuid.uuid4().int % 10**9}"


def content_of(instant: str, rows: list[str]) -> bytes:
    return json.dumps({"instant": instant, "rows": rows}).encode()


class Compaction:
    """Plans a compaction of the file group and carries it out."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def __call__(self, storage: Any) -> Any:
        client = opened(storage)
        plans = client.active_timeline().timeline.pending().of_actions(Action.COMPACTION)
        return self._run(client, plans.instants[0].requested if plans else self._plan(client))

    def finish(self, storage: Any) -> None:
        """Carry out the plan that is there."""
        client = opened(storage)
        for plan in client.active_timeline().timeline.pending().of_actions(Action.COMPACTION):
            outcome = self._run(client, plan.requested, take_over=True)
            assert isinstance(outcome, Committed), outcome

    def _run(self, client: Any, instant: str, *, take_over: bool = False) -> Any:
        storage, now = client.storage, client.active_timeline()
        entry = now.timeline.find(instant, Action.COMPACTION)
        if entry is None or entry.is_completed:
            return None
        (operation,) = decode_record(Action.COMPACTION, State.REQUESTED, now.read_state(entry, State.REQUESTED))[
            "operations"
        ]
        paths = [
            join_path(PARTITION, name.rpartition("/")[2])
            for name in (operation["dataFilePath"], *operation["deltaFilePaths"])
            if name
        ]
        attempt = uuid.uuid4().hex[:8]
        tx = PlannedTransaction.start_attempt(
            client, PlanAttempt(Action.COMPACTION, instant, "COMPACT", attempt), self.options, take_over=take_over
        )
        if tx is None:
            return None
        with tx:
            tx.to_inflight()
            rows = rows_of(storage, client.active_timeline(), paths)
            name = base_file_name(operation["fileId"], new_token(), instant)
            announced = MarkedFile(storage, instant, PARTITION, name, IOType.CREATE, attempt=attempt)
            storage.write(announced.path, content_of(instant, rows))
            announced.check()
            stat = {"fileId": operation["fileId"], "path": announced.path, "partitionPath": PARTITION, "numWrites": 1}
            return tx.commit(CommitMetadata("COMPACT", write_stats([stat]), _EXTRA, compacted=True))

    def _plan(self, client: Any) -> str:
        storage = client.storage
        lock = make_lock(storage.actor)
        generator = TimeGenerator(storage, self.options, "UTC", lock=lock)
        with generator.reserve() as reserved:
            now = client.active_timeline()
            piece = slices_of(client, now)[0]
            operation = {
                "baseInstantTime": piece["base_instant"],
                "deltaFilePaths": [path.rpartition("/")[2] for path in piece["log_paths"]],
                "dataFilePath": piece["base_path"] and piece["base_path"].rpartition("/")[2],
                "fileId": piece["file_id"],
                "partitionPath": PARTITION,
                "metrics": {},
            }
            record = {"operations": [operation], "extraMetadata": None, "version": 2}
            instant = reserved.take(latest_instant_time(now))
            content = encode_record(Action.COMPACTION, State.REQUESTED, record, client.config.version)
            lock.ensure_held()
            now.create_requested(Action.COMPACTION, instant, content)
        return instant


def clustering_plans(client: Any) -> list[Instant]:
    now = client.active_timeline()
    return [i for i in now.timeline.pending() if is_clustering(now, i)]


def plan_clustering(client: Any, options: dict[str, str]) -> tuple[Instant, dict[str, Any]]:
    """A new plan to rewrite the file group, with the slice that it is of."""
    lock = make_lock(client.storage.actor)
    generator = TimeGenerator(client.storage, options, "UTC", lock=lock)
    with generator.reserve() as reserved:
        now = client.active_timeline()
        piece = slices_of(client, now)[0]
        group = {"partitionPath": PARTITION, "fileId": piece["file_id"], "dataFilePath": "x", "deltaFilePaths": []}
        record = {"operationType": "CLUSTER", "clusteringPlan": {"inputGroups": [{"slices": [group]}]}}
        instant = reserved.take(latest_instant_time(now))
        content = encode_record(Action.CLUSTERING, State.REQUESTED, record, client.config.version)
        lock.ensure_held()
        return now.create_requested(Action.CLUSTERING, instant, content), piece


def replacement(piece: dict[str, Any], path: str) -> CommitMetadata:
    """What the commit of a clustering says that made one file."""
    stat = {"fileId": path.rpartition("/")[2].split("_")[0], "path": path, "partitionPath": PARTITION, "numWrites": 1}
    replaced = pa.table([[PARTITION], [piece["file_id"]]], schema=REPLACED_SCHEMA)
    return CommitMetadata("CLUSTER", write_stats([stat]), _EXTRA, replaced=replaced)


class ForeignClustering:
    """Rewrites the file group into another one, as Apache Hudi does it: it rolls nothing back, and gives no sign."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def __call__(self, storage: Any) -> Any:
        client = opened(storage)
        if clustering_plans(client):
            return None
        entry, piece = plan_clustering(client, self.options)
        instant = entry.requested
        now = client.active_timeline()
        rows = rows_of(storage, now, paths_in(piece))
        entry = now.to_inflight(entry)
        path = join_path(PARTITION, base_file_name(f"{uuid.uuid4().hex[:6]}-c-0", "0-9-9", instant))
        storage.write(path, content_of(instant, rows))
        lock = make_lock(storage.actor)
        with TimeGenerator(storage, self.options, "UTC", lock=lock).reserve() as reserved:
            now = client.active_timeline()
            completion = reserved.take(latest_instant_time(now)) if now.layout.version >= 2 else None
            content = replacement(piece, path).encode(client.config.version, Action.CLUSTERING)
            lock.ensure_held()
            now.complete(entry, content, completion)
        return None


class Clustering:
    """The same as this library does it: an attempt that died is rolled back, and whoever comes next tries again."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def __call__(self, storage: Any) -> Any:
        client = opened(storage)
        if not clustering_plans(client):
            plan_clustering(client, self.options)
        return self.finish(storage, take_over=False)

    def finish(self, storage: Any, *, take_over: bool = True) -> Any:
        """Carry out the plan that is there."""
        client = opened(storage)
        for plan in clustering_plans(client):
            (group,) = pending_clustering_groups(client.active_timeline()).to_pylist()
            attempt = uuid.uuid4().hex[:8]
            tx = PlannedTransaction.start_attempt(
                client, PlanAttempt(plan.action, plan.requested, "CLUSTER", attempt), self.options, take_over=take_over
            )
            if tx is None:
                return None
            with tx:
                tx.to_inflight()
                now = client.active_timeline()
                piece = next((p for p in slices_of(client, now) if p["file_id"] == group["file_id"]), None)
                if piece is None:  # it was replaced
                    return None
                rows = rows_of(client.storage, now, paths_in(piece))
                name = base_file_name(f"{uuid.uuid4().hex[:6]}-c-0", new_token(), plan.requested)
                announced = MarkedFile(storage, plan.requested, PARTITION, name, IOType.CREATE, attempt=attempt)
                storage.write(announced.path, content_of(plan.requested, rows))
                announced.check()
                return tx.commit(replacement(piece, announced.path))
        return None


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
        assert isinstance(tx.commit(CommitMetadata("UPSERT", extra=_EXTRA)), Committed)


def check(storage: MemoryStorage, writers: Sequence[Writer], outcomes: dict[str, Any]) -> None:
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
    killed = frozenset(w.instant for w in writers if outcomes[w.row] == "killed")
    left = check_timeline(storage, now, killed)
    if left or now.timeline.pending():
        archive(storage)
        assert sorted(visible(storage)) == sorted(rows), f"rows are others when the start has moved on; left: {left}"
        left = {path for path in left if path in storage.files}
        assert not left or now.layout.version < 2 or stuck(storage), f"files that nobody ever deletes: {left}"


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
    table_archival.archive_table(opened(last), Options.parse(OPTIONS | EARLY_ARCHIVAL))


def check_timeline(storage: MemoryStorage, now: ActiveTimeline, killed: frozenset[str]) -> set[str]:
    """Nothing is half done, nothing is done and undone, no file is missing and none is too many.

    But for files of instants that were ``killed``, which are returned: a writer that slept through its rollback, woke
    up, finished a data file and died before it could look whether it is still wanted. No reader sees it until the start
    of the timeline passes the instant, and archival deletes it before that.
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
