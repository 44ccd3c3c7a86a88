"""Failures at single system calls that change files, for tests of whole calls of the public API.

`tests/fault_injection.py` wraps a storage that a test passes on. Here nothing is passed on: Python's audit events tell
every file that is created, renamed, linked, changed in place or deleted by this process below a folder, also those of
:class:`LocalStorage` that are not yet or no longer visible.

>>> with effects_below("/tmp/t") as watched:                                                     # doctest: +SKIP
...     table.services.clean()
>>> with effects_below("/tmp/t", fail_at=7, error=Killed):                                        # doctest: +SKIP
...     table.services.clean()

Tasks of Spark run in other processes and are not concerned.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fault_injection import Killed
from tests.properties import FACTOR

_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_EVENTS = {"os.rename": 2, "os.link": 2, "os.remove": 1, "os.mkdir": 1, "os.rmdir": 1, "os.utime": 1, "os.truncate": 1}
"""Audit events, and the number of paths among their first arguments."""


@dataclass
class FileEffects:
    """Effects below ``folder``, which are counted; that with the number ``fail_at`` (from 1) does not happen, because
    ``error`` is raised before it. After :class:`Killed` there are no further effects: each raises it again."""

    folder: str
    fail_at: int | None = None
    error: BaseException | type[BaseException] = Killed
    seen: list[str] = field(default_factory=list)
    dead: bool = False
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def observe(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count an audit event if it is an effect; fail at the chosen one."""
        path = _changed_path(event, arguments)
        if path is None or not path.startswith(self.folder):
            return
        if self.dead:
            raise Killed(f"{event} {path!r} after the process was killed")
        with self._guard:
            self.seen.append(f"{event} {path.removeprefix(self.folder)}")
            if len(self.seen) != self.fail_at:
                return
            error = self.error if isinstance(self.error, BaseException) else self.error(f"at {event} {path!r}")
            self.dead = isinstance(error, Killed)
        raise error


def places(count: int, number: int) -> Sequence[int]:
    """Return the effects, from 1 to ``count``, of which one is to fail: all, or ``number`` of them, at equal distances,
    where examples are left out; the name of the test selects the first."""
    return range(1, count + 1) if FACTOR >= 1 else sampled(count, number)


def sampled(count: int, number: int) -> Sequence[int]:
    """Return ``number`` of the effects, from 1 to ``count``, at equal distances; the name of the test selects the
    first."""
    step = max(1, count // number)
    return range(1 + zlib.crc32(os.environ["PYTEST_CURRENT_TEST"].encode()) % step, count + 1, step)[:number]


_watching: list[FileEffects] = []
_hooked: list[bool] = []


@contextlib.contextmanager
def effects_below(
    folder: Path | str, fail_at: int | None = None, error: BaseException | type[BaseException] = Killed
) -> Iterator[FileEffects]:
    """Watch the effects of this process below a folder during the block, which may fail at one of them."""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    watched = FileEffects(f"{folder}/", fail_at, error)
    _watching.append(watched)
    try:
        yield watched
    finally:
        _watching.remove(watched)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and (event == "open" or event in _EVENTS):
        for watched in tuple(_watching):
            watched.observe(event, arguments)


def _changed_path(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return the path that an audit event changes, None if it changes none."""
    if event == "open":
        path, mode, flags = arguments
        changes = flags & _CHANGES if mode is None else set(mode) & set("wax+")
        return _text(path) if changes else None
    path = _text(arguments[_EVENTS[event] - 1])
    if path is None or event not in ("os.remove", "os.rmdir"):
        return path
    folder = arguments[-1]
    if not path.startswith("/") and folder >= 0:
        path = f"{Path(f'/proc/self/fd/{folder}').readlink()}/{path}"
    return path if os.path.lexists(path) else None


def _text(path: Any) -> str | None:
    return os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else None
