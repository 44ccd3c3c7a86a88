"""Patches with which the actors of a simulation stand for processes: each has a lock of its own world, does one thing
at a time, and waits for no real clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.metadata.maintenance import metadata_compaction_job
from pyhudi.services import thread_pool_runner
from pyhudi.storage import concurrent_reads
from pyhudi.timeline.heartbeat import Heartbeat
from pyhudi.transaction import single_writer_locks
from pyhudi.transaction.locks import file_system_lock, lock_factory, storage_based_lock
from tests.unit.transaction.simulation import make_lock


class _Serial:
    """Stands for a thread pool, so that an actor does one thing at a time."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> _Serial:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, work: Any, *items: Any) -> Iterator[Any]:
        return map(work, *items)

    def submit(self, work: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future


@contextmanager
def simulated_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Patch locks, threads and clocks during the block."""
    monkeypatch.setattr(lock_factory, "make_lock_provider", lambda storage, _: make_lock(storage.actor))
    for module in (concurrent_reads, thread_pool_runner, metadata_compaction_job):
        monkeypatch.setattr(module, "ThreadPoolExecutor", _Serial)
    monkeypatch.setattr(single_writer_locks, "_hold", lambda *_, **__: nullcontext())  # locks between threads
    clock = SimpleNamespace(sleep=lambda _: None, monotonic=time.monotonic)
    monkeypatch.setattr("pyhudi.storage.lock_primitives.time", clock)
    monkeypatch.setattr(Heartbeat, "start", Heartbeat.refresh)
    for module in (file_system_lock, storage_based_lock):  # each schedule has its own dead
        monkeypatch.setattr(module, "dead_holder", None)
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        yield
    finally:
        pa.set_cpu_count(threads)
