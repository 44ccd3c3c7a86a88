"""Storage wrapper that injects failures, crashes and delays, for tests.

>>> storage = FaultyStorage(inner, [Fault("create", nth=2, when="after", error=Killed)])    # doctest: +SKIP

The second ``create`` takes effect, then the process "dies": :class:`Killed` is not an ``Exception``, so ordinary error
handling does not catch it. Every later operation raises it again without reaching the storage, as a dead process cannot
clean up.
"""

from __future__ import annotations

import builtins
import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import pyarrow as pa

from pyhudi.errors import StorageError
from pyhudi.storage import FileStat, Storage

# : operations that change files, by the names that :class:`Fault` accepts
WRITES = (
    "write",
    "create",
    "replace",
    "make_dirs",
    "set_modified",
    "delete",
    "delete_many",
    "delete_tree",
    "close_output",
)


LOCK_FILE = ".hoodie/lock"
"""Lock of ``FileSystemBasedLockProvider``."""


class Killed(BaseException):
    """The process is considered killed at this point."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Fail the ``nth`` (from 1) operation named ``operation`` whose path matches the regular expression ``path``.

    ``operation`` is a method of ``Storage``, ``"close_output"`` (at which a streamed file becomes visible),
    ``"writes"`` (any of :data:`WRITES`) or ``"*"``. With ``when="before"`` the storage is unchanged, with ``"after"``
    the operation takes effect first. ``error`` is an exception or its class.
    """

    operation: str = "*"
    nth: int = 1
    when: Literal["before", "after"] = "before"
    error: type[BaseException] | BaseException = StorageError
    path: str = ""

    def concerns(self, operation: str, path: str) -> bool:
        """Return True if this fault counts the given operation."""
        named = self.operation in ("*", operation) or (self.operation == "writes" and operation in WRITES)
        return named and re.search(self.path, path) is not None

    def raised(self, operation: str, path: str) -> BaseException:
        """Return the exception to raise."""
        if isinstance(self.error, BaseException):
            return self.error
        return self.error(f"injected {self.when} {operation} {path!r}")


class FaultyStorage:
    """Wrap a storage. Without faults and latency the wrapper is transparent.

    ``operations`` records every started operation as ``(name, path)``. A run without faults yields their number; then
    each can be made to fail in turn. A pickled copy has the same faults but counters of its own.
    """

    def __init__(
        self,
        inner: Storage,
        faults: Iterable[Fault] = (),
        *,
        latency: float = 0.0,
        latencies: Mapping[str, float] | None = None,
    ) -> None:
        self.inner = inner
        self.faults: Sequence[Fault] = tuple(faults)
        self.latency = latency
        self.latencies = dict(latencies or {})
        self.operations: list[tuple[str, str]] = []
        self.dead = False
        self._counts = [0] * len(self.faults)
        self._guard = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.inner, self.faults, self.latency, self.latencies)

    def __repr__(self) -> str:
        return f"FaultyStorage({self.inner!r}, {list(self.faults)!r})"

    @contextlib.contextmanager
    def _operation(self, operation: str, path: str) -> Iterator[None]:
        if self.dead:
            raise Killed(f"{operation} {path!r} after the process was killed")
        delay = self.latencies.get(operation, self.latency)
        if delay:
            time.sleep(delay)
        due: list[Fault] = []
        with self._guard:
            self.operations.append((operation, path))
            for number, fault in enumerate(self.faults):
                if fault.concerns(operation, path):
                    self._counts[number] += 1
                    if self._counts[number] == fault.nth:
                        due.append(fault)
        self._inject([fault for fault in due if fault.when == "before"], operation, path)
        yield
        self._inject([fault for fault in due if fault.when == "after"], operation, path)

    def _inject(self, due: Sequence[Fault], operation: str, path: str) -> None:
        for fault in due:
            error = fault.raised(operation, path)
            if isinstance(error, Killed):
                self.dead = True
            raise error

    @property
    def root(self) -> str:
        return self.inner.root

    @property
    def unwrapped(self) -> Storage:
        return self.inner.unwrapped

    def uri(self, path: str = "") -> str:
        return self.inner.uri(path)

    def read(self, path: str) -> bytes:
        with self._operation("read", path):
            return self.inner.read(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with self._operation("read_range", path):
            return self.inner.read_range(path, offset, length)

    def write(self, path: str, data: bytes) -> None:
        with self._operation("write", path):
            self.inner.write(path, data)

    def create(self, path: str, data: bytes) -> None:
        with self._operation("create", path):
            self.inner.create(path, data)

    def replace(self, path: str, data: bytes, version: str | None) -> str:
        with self._operation("replace", path):
            return self.inner.replace(path, data, version)

    def stat(self, path: str) -> FileStat | None:
        with self._operation("stat", path):
            return self.inner.stat(path)

    def exists(self, path: str) -> bool:
        with self._operation("exists", path):
            return self.inner.exists(path)

    def list(self, path: str = "", *, recursive: bool = False) -> pa.Table:
        with self._operation("list", path):
            return self.inner.list(path, recursive=recursive)

    def list_dirs(self, path: str = "") -> builtins.list[str]:
        with self._operation("list_dirs", path):
            return self.inner.list_dirs(path)

    def make_dirs(self, path: str) -> None:
        with self._operation("make_dirs", path):
            self.inner.make_dirs(path)

    def set_modified(self, path: str, mtime_ms: int) -> None:
        with self._operation("set_modified", path):
            self.inner.set_modified(path, mtime_ms)

    def delete(self, path: str) -> None:
        with self._operation("delete", path):
            self.inner.delete(path)

    def delete_many(self, paths: Iterable[str]) -> None:
        paths = [*paths]
        with self._operation("delete_many", " ".join(paths)):
            self.inner.delete_many(paths)

    def delete_tree(self, path: str) -> None:
        with self._operation("delete_tree", path):
            self.inner.delete_tree(path)

    def open_input(self, path: str) -> Any:
        with self._operation("open_input", path):
            return self.inner.open_input(path)

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._open_output(path)

    @contextlib.contextmanager
    def _open_output(self, path: str) -> Iterator[BinaryIO]:
        with self._operation("open_output", path):
            output = self.inner.open_output(path)
        with contextlib.ExitStack() as stack:
            sink = stack.enter_context(output)
            yield sink
            with self._operation("close_output", path):
                stack.pop_all().close()


class SuspendedStorage(FaultyStorage):
    """Storage of a process that is suspended once, for longer than its lease: after the first operation under its lock
    that is named ``operation`` and whose path matches the regular expression ``path``. Its lock, that of
    ``FileSystemBasedLockProvider``, is broken, and another process does something ``meanwhile``."""

    def __init__(self, inner: Storage, operation: str, path: str, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner)
        self._suspends_after = operation, path
        self._meanwhile = meanwhile
        self.was_suspended = False

    @contextlib.contextmanager
    def _operation(self, operation: str, path: str) -> Iterator[None]:
        with super()._operation(operation, path):
            yield
        wanted, pattern = self._suspends_after
        if self.was_suspended or operation != wanted or re.search(pattern, path) is None:
            return
        if self.inner.exists(LOCK_FILE):
            self.inner.delete(LOCK_FILE)
            self.was_suspended = True
            self._meanwhile()


def _rebuilt(inner: Storage, faults: Sequence[Fault], latency: float, latencies: Mapping[str, float]) -> FaultyStorage:
    return FaultyStorage(inner, faults, latency=latency, latencies=latencies)
