"""Simulation of concurrent actors on one table in an order that a seed determines: at each storage operation an actor
may
be paused or killed, or get a wrong response.

Everything is in the memory of this process and nothing waits for a real clock, so dozens of schedules run in a second.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa

from pyhudi.errors import (
    AlreadyExistsError,
    LockError,
    NotFoundError,
    PreconditionFailedError,
    StorageError,
    UnansweredError,
)
from pyhudi.storage import FileStat
from pyhudi.storage.storage_protocol import LISTING_SCHEMA
from pyhudi.transaction.locks.file_system_lock import FileSystemBasedLockProvider
from pyhudi.transaction.locks.lock_provider import LockProvider
from pyhudi.transaction.locks.storage_based_lock import StorageBasedLockProvider
from tests.fault_injection import Killed

_numbers = itertools.count()


class MemoryStorage:
    """Files in a dict, at an address of its own, by which the process may remember them.

    ``late`` are requests whose sender has given up and that have not arrived yet.
    """

    def __init__(self) -> None:
        self.root = f"memory://simulated/{next(_numbers)}"
        self.files: dict[str, tuple[bytes, int, int]] = {}
        self.late: list[tuple[str, bytes, str | None]] = []
        self._version = 0

    @property
    def unwrapped(self) -> MemoryStorage:
        return self

    def uri(self, path: str = "") -> str:
        return f"{self.root}/{path}"

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise NotFoundError(f"no file {path!r}")
        return self.files[path][0]

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.read(path)[offset : offset + length]

    def write(self, path: str, data: bytes) -> None:
        self._version += 1
        self.files[path] = (bytes(data), time.time_ns() // 1_000_000, self._version)

    def create(self, path: str, data: bytes) -> None:
        if path in self.files:
            raise AlreadyExistsError(f"file {path!r} exists")
        self.write(path, data)

    def replace(self, path: str, data: bytes, version: str | None) -> str:
        found = self.stat(path)
        if (None if found is None else found.version) != version:
            raise PreconditionFailedError(f"{path!r} was changed")
        self.write(path, data)
        return str(self._version)

    def stat(self, path: str) -> FileStat | None:
        if path not in self.files:
            return None
        data, mtime, version = self.files[path]
        return FileStat(path, len(data), mtime, str(version))

    def exists(self, path: str) -> bool:
        return path in self.files

    def list(self, path: str = "", *, recursive: bool = False) -> pa.Table:
        prefix = f"{path}/" if path else ""
        rows = [
            (name, len(data), mtime)
            for name, (data, mtime, _) in self.files.items()
            if name.startswith(prefix) and (recursive or "/" not in name[len(prefix) :])
        ]
        columns = list(zip(*rows, strict=True)) if rows else [(), (), ()]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, LISTING_SCHEMA, strict=True)], LISTING_SCHEMA)

    def list_dirs(self, path: str = "") -> builtins.list[str]:
        prefix = f"{path}/" if path else ""
        rest = (name[len(prefix) :] for name in self.files if name.startswith(prefix))
        return sorted({name.split("/")[0] for name in rest if "/" in name})

    def make_dirs(self, path: str) -> None:
        pass

    def set_modified(self, path: str, mtime_ms: int) -> None:
        pass

    def delete(self, path: str) -> None:
        self.files.pop(path, None)

    def delete_many(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.delete(path)

    def delete_tree(self, path: str) -> None:
        self.delete_many([name for name in self.files if name.startswith(f"{path}/")])

    def open_input(self, path: str) -> Any:
        return pa.BufferReader(self.read(path))

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        sink = io.BytesIO()
        yield sink
        self.write(path, sink.getvalue())

    def arrive(self) -> None:
        """Execute one late request; it may be rejected without effect."""
        path, data, version = self.late.pop(0)
        with contextlib.suppress(PreconditionFailedError):
            self.replace(path, data, version)


CHANGES = ("write", "create", "replace", "delete", "delete_many", "delete_tree", "open_output")
FAULTS = ("killed before", "killed after", "refused", "unanswered", "lost answer", "sent twice", "late")
"""``refused``: not executed, with an error. ``unanswered``: not executed, no response. ``lost answer``: executed, no
response. ``sent twice``: executed, and a create or replacement gets the response that it came too late. ``late``: no
response, and executed later, if the file is unchanged then."""


@dataclass
class Actor:
    """A process. ``fault`` occurs at its operation with that number, counted from 1."""

    name: str
    world: World
    work: Callable[[Any], object]
    fault: tuple[int, str] | None = None
    outcome: Any = None
    waits_for: SimulatedLock | None = None
    done: bool = False
    dead: bool = False
    operations: list[str] = field(default_factory=list)
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: threading.Thread | None = None

    def run(self) -> None:
        self.thread = threading.current_thread()
        self.turn.acquire()
        try:
            self.outcome = self.work(ActorStorage(self))
        except Killed:
            self.outcome = "killed"
        except BaseException as error:
            self.outcome = error
        self.done = True
        self.world.hand_over(self)


class World:
    """Runs actors one at a time, and switches between them as the seed determines."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.storage = MemoryStorage()
        self.actors: list[Actor] = []
        self.restless = self.random.choice((0.02, 0.1, 0.3))
        self.ages = self.random.random() < 0.5
        self.steals = self.random.random() < 0.3
        self.holder: SimulatedLock | None = None
        self.lock_kind = self.random.choices(("process", "file", "lease"), (4, 3, 3))[0]
        self.leases: list[SimulatedLease] = []
        self.clock_ms = time.time_ns() // 1_000_000
        self.owners: dict[str, Actor] = {}
        self.trace: list[str] = []
        self.strangers: list[str] = []
        self._over = threading.Semaphore(0)

    def run(self) -> None:
        """Run all actors until they are done or dead."""
        threads = [threading.Thread(target=actor.run, daemon=True) for actor in self.actors]
        for thread in threads:
            thread.start()
        self.random.choice(self.actors).turn.release()
        if not self._over.acquire(timeout=600):  # a loaded machine may stall for a minute
            raise AssertionError("the actors wait for each other")
        for thread in threads:
            thread.join()
        assert not self.strangers, f"operations on threads that the seed does not order: {self.strangers}"

    def step(self, actor: Actor) -> None:
        """Announce the next operation of an actor: another actor may run first."""
        if self.storage.late and self.random.random() < 0.05:
            self.storage.arrive()
        if self.random.random() < self.restless:
            self.pause(actor)
        if self.leases and self.random.random() < 0.02:
            self._renew(actor)

    def _renew(self, actor: Actor) -> None:
        """Renew the lease as the background thread does, which continues after errors."""
        for lease in self.leases:
            if lease.actor is actor and lease.held and not lease.is_busy:
                with contextlib.suppress(StorageError, LockError):
                    lease.renew()

    def pause(self, actor: Actor) -> None:
        """Let another runnable actor continue, if there is one; an actor may pause for so long that it is considered
        dead."""
        if self.ages and self.random.random() < 0.5:
            age_heartbeats(self.storage)
        ready = self._ready(actor)
        if ready:
            self.random.choice(ready).turn.release()
            actor.turn.acquire()

    def hand_over(self, actor: Actor) -> None:
        """Continue with another actor because this one is done."""
        ready = self._ready(actor)
        (self.random.choice(ready).turn if ready else self._over).release()

    def _ready(self, actor: Actor) -> list[Actor]:
        return [
            a
            for a in self.actors
            if a is not actor and not a.done and (a.waits_for is None or self.holder is None or self.may_steal())
        ]

    def may_steal(self) -> bool:
        """Return whether the lease of the lock holder may expire now. It must not between a check of the holder and the
        changes that it makes immediately afterwards."""
        return self.steals and self.holder is not None and not self.holder.publishes

    def note(self, actor: Actor, *, changes: bool) -> None:
        """Note an operation of a lock holder: once it reads again after changes, its last check is over."""
        locks: list[SimulatedLock | SimulatedLease] = [lease for lease in self.leases if lease.actor is actor]
        if self.holder is not None and self.holder.actor is actor:
            locks.append(self.holder)
        for lock in locks:
            lock.publishes = lock.publishes and (changes or not lock.has_changed)
            lock.has_changed = lock.publishes and (changes or lock.has_changed)


def age_heartbeats(storage: MemoryStorage) -> None:
    """Make all writers look dead."""
    for path, (data, _, version) in list(storage.files.items()):
        if path.startswith(".hoodie/.heartbeat/"):
            storage.files[path] = (data, 0, version)


class SimulatedLock(LockProvider):
    """The table lock: released when its process dies, and, in a world that ``steals``, a lease that expires."""

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        self.actor = actor
        self._world = actor.world
        self.publishes = self.has_changed = False

    @property
    def held(self) -> bool:
        return self._world.holder is self

    def try_acquire(self) -> bool:
        world = self._world
        if world.holder is not None and world.may_steal() and world.random.random() < 0.3:
            world.holder = None
        if world.holder is None:
            world.holder = self
        return world.holder is self

    def ensure_held(self) -> None:
        super().ensure_held()
        self.publishes, self.has_changed = True, False

    def __enter__(self) -> SimulatedLock:
        if self.actor.dead:
            raise Killed("a dead process takes no lock")
        self._world.step(self.actor)
        for _ in range(10_000):
            if self.try_acquire():
                self.actor.waits_for = None
                return self
            self.actor.waits_for = self._world.holder
            self._world.pause(self.actor)
        raise LockError("the lock is never given back")

    def release(self) -> None:
        self.publishes = False
        if self._world.holder is self:
            self._world.holder = None


class SimulatedLockFile(FileSystemBasedLockProvider):
    """The lock provider based on a file; while it waits, other actors run."""

    def __init__(self, actor: Actor) -> None:
        super().__init__(ActorStorage(actor))  # type: ignore[arg-type]
        self.actor = actor
        actor.world.owners[self._owner] = actor

    def __enter__(self) -> SimulatedLockFile:
        for _ in range(10_000):
            if self.try_acquire():
                return self
            self.actor.world.pause(self.actor)
        raise LockError("the lock is never given back")


class SimulatedLease(StorageBasedLockProvider):
    """The lock provider based on a lease.

    The world has its own clock, which only advances while an actor waits: past the lease of a dead holder, or, in a
    world that ``steals``, of any holder. Renewals happen at operations of the holder.
    """

    def __init__(self, actor: Actor) -> None:
        super().__init__(ActorStorage(actor), clock=lambda: actor.world.clock_ms)  # type: ignore[arg-type]
        self.actor = actor
        self.publishes = self.has_changed = False
        actor.world.owners[self._owner] = actor
        actor.world.leases.append(self)

    def _start_renewal(self) -> None: ...

    @property
    def is_busy(self) -> bool:
        """Return True while it has a storage request in progress."""
        return self._guard.locked()

    def ensure_held(self) -> None:
        super().ensure_held()
        self.publishes, self.has_changed = True, False

    def release(self) -> None:
        self.publishes = False
        super().release()

    def __enter__(self) -> SimulatedLease:
        world = self.actor.world
        for _ in range(10_000):
            if self.try_acquire():
                return self
            alive = [lease for lease in world.leases if lease.held and not lease.actor.dead]
            stolen = world.steals and not any(lease.publishes for lease in alive) and world.random.random() < 0.1
            if not alive or stolen:
                world.clock_ms += 400_000
            world.pause(self.actor)
        raise LockError("the lock is never given back")


def make_lock(actor: Actor) -> LockProvider:
    """Return the lock of the actor's world."""
    kinds = {"process": SimulatedLock, "file": SimulatedLockFile, "lease": SimulatedLease}
    return kinds[actor.world.lock_kind](actor)


def is_of_the_dead(world: World, says: str) -> bool:
    """Return whether the process that a lock file names has ended."""
    return any(owner in says and (actor.dead or actor.done) for owner, actor in world.owners.items())


class ActorStorage:
    """The storage as seen by one actor."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.inner = actor.world.storage
        self.root = f"{self.inner.root}/{actor.name}"  # what a process remembers of files is its own
        self.unwrapped = self

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.inner, name)
        if name == "uri":
            return operation

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, operation, *args, **kwargs)

        return call

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        @contextlib.contextmanager
        def streamed() -> Iterator[BinaryIO]:
            sink = io.BytesIO()
            yield sink
            self._call("open_output", self.inner.write, path, sink.getvalue())

        return streamed()

    def _call(self, name: str, operation: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        actor = self.actor
        if actor.dead:
            raise Killed(f"{name} after the process was killed")
        if actor.thread not in (None, threading.current_thread()):
            actor.world.strangers.append(name)
        actor.world.step(actor)
        what = args[0] if args and isinstance(args[0], str) else ""
        actor.operations.append(f"{name} {what}")
        actor.world.note(actor, changes=name in CHANGES)
        if name in CHANGES:
            actor.world.trace.append(f"{actor.name}: {actor.operations[-1]}")
        if actor.fault is None or actor.fault[0] != len(actor.operations):
            return operation(*args, **kwargs)
        return self._struck(name, what, lambda: operation(*args, **kwargs), args)

    def _struck(self, name: str, path: str, operation: Callable[[], Any], args: tuple[Any, ...]) -> Any:
        assert self.actor.fault is not None
        fault = self.actor.fault[1]
        if name not in CHANGES and fault not in ("killed before", "killed after"):
            raise UnansweredError(f"{name} {path!r} has no answer")
        match fault:
            case "killed before":
                self.actor.dead = True
                raise Killed(f"before {name} {path!r}")
            case "killed after":
                operation()
                self.actor.dead = True
                raise Killed(f"after {name} {path!r}")
            case "refused":
                raise StorageError(f"{name} {path!r} is refused")
            case "lost answer":
                operation()
            case "sent twice":
                operation()
                if name == "create":
                    raise AlreadyExistsError(f"{path!r} exists")
                if name == "replace":
                    raise PreconditionFailedError(f"{path!r} was changed")
            case "late" if name in ("create", "replace"):
                self.inner.late.append((path, args[1], args[2] if name == "replace" else None))
        raise UnansweredError(f"{name} {path!r} has no answer")
