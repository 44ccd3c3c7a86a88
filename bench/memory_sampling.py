"""Resident memory of a process tree, sampled from ``/proc``: the Java virtual machine and the Python workers apart."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
_TREE_SECONDS = 1.0


@dataclass
class Peak:
    """Highest sums seen, in bytes. ``worker`` is the largest single Python worker by the kernel's own high-water
    mark."""

    jvm: int = 0
    python: int = 0
    total: int = 0
    worker: int = 0


@dataclass
class Sampler:
    """Samples the descendants of ``pid`` (not ``pid`` itself: the driver's Python only waits) until stopped.

    Pages shared by forked Python workers count for each of them, as resident size always does. Sampling must not take
    time from what is measured: the tree of processes, which is costly to find out, is looked up once a second.
    """

    pid: int
    interval: float = 0.2
    peak: Peak = field(default_factory=Peak)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def take(self) -> Peak:
        """The peak since the last call, and a new start."""
        with self._lock:
            peak, self.peak = self.peak, Peak()
        return peak

    def restart(self) -> None:
        """Forget the peaks so far, also the own high-water mark, which `most_memory` returns."""
        self.take()
        (PROC / "self/clear_refs").write_text("5")

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        tree: list[int] = []
        looked = float("-inf")
        while not self._stop.wait(self.interval):
            jvm = python = worker = 0
            if time.monotonic() - looked > _TREE_SECONDS:
                tree, looked = descendants(self.pid), time.monotonic()
            for pid in tree:
                name, resident, high = _memory(pid)
                if name == "java":
                    jvm += resident
                elif name.startswith("python"):
                    python += resident
                    worker = max(worker, high)
            with self._lock:
                peak = self.peak
                peak.jvm, peak.python = max(peak.jvm, jvm), max(peak.python, python)
                peak.total, peak.worker = max(peak.total, jvm + python), max(peak.worker, worker)


def most_memory() -> float:
    """The most memory of this process so far, in MiB; without what its parent had when it was started."""
    return _memory(os.getpid())[2] / 2**20


def descendants(pid: int) -> list[int]:
    """All processes below ``pid`` now."""
    found: list[int] = []
    front = [pid]
    while front:
        children = [child for parent in front for child in _children(parent)]
        found += children
        front = children
    return found


def _children(pid: int) -> list[int]:
    try:
        tasks = list((PROC / str(pid) / "task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def _memory(pid: int) -> tuple[str, int, int]:
    """Name, resident bytes and highest resident bytes of a process; zeros when it is gone."""
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return "", 0, 0
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    kib = {key: int(facts.get(key, "0 kB").split()[0]) for key in ("VmRSS", "VmHWM")}
    return facts["Name"].strip(), kib["VmRSS"] << 10, kib["VmHWM"] << 10
