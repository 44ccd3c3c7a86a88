"""Identity of a lock holder: a process of a machine, in a text form that is stored in the lock, and a check whether it
is dead.

A holder is dead only if this is known for certain: a process of the same running kernel and the same process namespace
whose id is unused or belongs to another process. Nothing is known about other machines, other containers, and systems
without ``/proc``.
"""

# Plain strings rather than pathlib, because paths in /proc are not files.
# ruff: noqa: PTH115, PTH123, PTH208

from __future__ import annotations

import os
import re
import socket
import threading
from dataclasses import dataclass
from typing import Self

_TEXT = re.compile(
    r"pyhudi on (?P<host>\S+), process (?P<pid>\d+), thread .*?, "
    r"kernel (?P<kernel>[0-9a-f-]*/\d*), started (?P<started>\d*)"
)
_GONE = ("Z", "X", "x")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a lock.

    Attributes:
        host: Name of the machine.
        pid: Process id.
        kernel: Boot id of the running kernel and number of the process namespace, separated by a slash; without either
            it is unknown.
        started: Start of the process, in clock ticks since the boot; empty if unknown.
    """

    host: str
    pid: int
    kernel: str
    started: str

    @classmethod
    def current(cls) -> Self:
        """Return the holder for this process."""
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _kernel(), (_stat(pid) or ("", ""))[1])

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the holder in a text of `describe`; None for other texts."""
        match = _TEXT.search(text)
        if match is None:
            return None
        return cls(match["host"], int(match["pid"]), match["kernel"], match["started"])

    def describe(self) -> str:
        """Return a text for users who inspect the lock, and for `parse`."""
        thread = threading.current_thread().name
        return (
            f"pyhudi on {self.host}, process {self.pid}, thread {thread}, kernel {self.kernel}, started {self.started}"
        )

    @property
    def is_dead(self) -> bool:
        """Return True if the process is known to be dead, False if nothing is known."""
        boot, _, namespace = self.kernel.partition("/")
        if not boot or not namespace or not self.started or self.kernel != _kernel():
            return False
        stat = _stat(self.pid)
        if stat is None:
            return not process_exists(self.pid)  # Processes of other users may be hidden.
        state, started = stat
        return started != self.started or (state in _GONE and len(_threads(self.pid)) <= 1)


def _kernel() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{boot}/{re.sub(r'[^0-9]', '', os.readlink('/proc/self/ns/pid'))}"
    except OSError:
        return "/"


def _stat(pid: int) -> tuple[str, str] | None:
    """Return state and start of a process; None if it does not exist or nothing is known."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return None


def process_exists(pid: int) -> bool:
    """Return True if this machine has a process of that number, of any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _threads(pid: int) -> list[str]:
    """Return the threads of a process; the first one may have ended while others continue."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
