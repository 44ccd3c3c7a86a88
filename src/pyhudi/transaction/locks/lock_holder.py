"""Identity of the holder of a lock: a process of a machine, in a form that others can read in the lock, and a check
whether it is dead.

Dead is only what is known to be: a process of the same running kernel and the same process namespace whose number
nobody has any more, or somebody else. Of other machines, other containers, and systems without ``/proc`` nothing is
known.
"""

# Plain strings rather than pathlib: paths in /proc are no files of anybody.
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

    Args:
        host: name of the machine.
        pid: number of the process.
        kernel: boot id of the running kernel and number of the process namespace, with a slash in between; without
            either it is not known.
        started: when the process was started, in clock ticks since the boot; empty when that is not known.
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
        """The holder that a text of `describe` tells of; None when it is no such text."""
        found = _TEXT.search(text)
        if found is None:
            return None
        return cls(found["host"], int(found["pid"]), found["kernel"], found["started"])

    def describe(self) -> str:
        """Return a text for people who look into the lock, and for `parse`."""
        thread = threading.current_thread().name
        return (
            f"pyhudi on {self.host}, process {self.pid}, thread {thread}, kernel {self.kernel}, started {self.started}"
        )

    @property
    def is_dead(self) -> bool:
        """True if the process is known to be dead; False where nothing is known."""
        boot, _, namespace = self.kernel.partition("/")
        if not boot or not namespace or not self.started or self.kernel != _kernel():
            return False
        found = _stat(self.pid)
        if found is None:
            return not _is_there(self.pid)  # others' processes may be hidden
        state, started = found
        return started != self.started or (state in _GONE and len(_threads(self.pid)) <= 1)


def _kernel() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{boot}/{re.sub(r'[^0-9]', '', os.readlink('/proc/self/ns/pid'))}"
    except OSError:
        return "/"


def _stat(pid: int) -> tuple[str, str] | None:
    """State and start of a process; None when there is no such process, or nothing is told of it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return None


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _threads(pid: int) -> list[str]:
    """Threads of a process; the first one may have ended while others go on."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
