from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pyhudi.errors import ConflictError
from pyhudi.storage import Storage, clock, open_storage
from pyhudi.timeline.heartbeat import Heartbeat, HeartbeatPolicy, heartbeat_path
from tests.fault_injection import Fault, FaultyStorage, Killed

INSTANT = "20240102030405678"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path)


def wait_for(condition: object, seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.005)


def test_life(storage: Storage) -> None:
    beat = Heartbeat(storage, INSTANT, HeartbeatPolicy(interval_ms=20))
    assert HeartbeatPolicy().is_dead(storage, INSTANT)
    with beat:
        assert beat.running
        assert storage.read(f".hoodie/.heartbeat/{INSTANT}") == b""
        first = storage.stat(beat.path)
        assert first is not None
        wait_for(lambda: storage.stat(beat.path) != first)
        assert not HeartbeatPolicy(interval_ms=1000).is_dead(storage, INSTANT)
        beat.check()
        beat.start()
    assert not beat.running
    assert not storage.exists(beat.path)
    beat.stop()


def test_removed_also_when_the_write_fails(storage: Storage) -> None:
    with pytest.raises(ZeroDivisionError), Heartbeat(storage, INSTANT, HeartbeatPolicy()):
        raise ZeroDivisionError
    assert not storage.exists(heartbeat_path(INSTANT))


def test_death_by_age(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage.create(heartbeat_path(INSTANT), b"")
    file = tmp_path / heartbeat_path(INSTANT)
    os.utime(file, (1_000_000, 1_000_000))
    born = 1_000_000_000
    for policy, silence_ms, is_dead in (
        (HeartbeatPolicy(), 180_000, False),
        (HeartbeatPolicy(), 180_001, True),
        (HeartbeatPolicy(interval_ms=10, tolerable_misses=0), 11, True),
        (HeartbeatPolicy(interval_ms=10, tolerable_misses=4), 50, False),
    ):
        monkeypatch.setattr(clock, "now_ms", lambda silence_ms=silence_ms: born + silence_ms)
        assert policy.is_dead(storage, INSTANT) == is_dead
    monkeypatch.undo()
    assert HeartbeatPolicy().is_dead(storage, INSTANT)


def test_silence_is_noticed_by_the_writer_itself(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    faulty = FaultyStorage(storage, [Fault("write", nth) for nth in range(2, 1000)])
    beat = Heartbeat(faulty, INSTANT, HeartbeatPolicy(interval_ms=200, tolerable_misses=1))
    with caplog.at_level(logging.WARNING), beat:
        beat.check()
        wait_for(lambda: beat.expired)
        with pytest.raises(ConflictError, match=INSTANT):
            beat.check()
    assert "not refreshed" in caplog.text


def test_one_failure_does_no_harm(storage: Storage) -> None:
    faulty = FaultyStorage(storage, [Fault("write", 2)])
    with Heartbeat(faulty, INSTANT, HeartbeatPolicy(interval_ms=10, tolerable_misses=1000)) as beat:
        wait_for(lambda: len(faulty.operations) > 3)
        assert not beat.expired


def test_the_dead_do_not_beat(storage: Storage) -> None:
    faulty = FaultyStorage(storage, [Fault("write", 3, error=Killed)])
    beat = Heartbeat(faulty, INSTANT, HeartbeatPolicy(interval_ms=5))
    beat.start()
    wait_for(lambda: not beat.running)
    assert storage.exists(beat.path)
    with pytest.raises(Killed):
        beat.stop()


def test_an_interrupt_while_the_thread_starts_ends_it(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    started: list[threading.Thread] = []

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    beat = Heartbeat(storage, INSTANT, HeartbeatPolicy(interval_ms=10))
    with pytest.raises(KeyboardInterrupt):
        beat.start()
    wait_for(lambda: not started[0].is_alive())


def test_a_heartbeat_whose_thread_cannot_start_is_removed(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    beat = Heartbeat(storage, INSTANT, HeartbeatPolicy())
    with pytest.raises(RuntimeError, match="can't start"):
        beat.start()
    assert storage.exists(beat.path)
    beat.stop()
    assert not storage.exists(beat.path)


def test_heartbeats_that_have_ended_leave_nothing_to_be_done_at_exit(storage: Storage) -> None:
    before = atexit._ncallbacks()
    for number in range(3):
        with Heartbeat(storage, str(number), HeartbeatPolicy()):
            pass
    assert atexit._ncallbacks() == before


INTERRUPTED = """
import os, sys, threading
from pyhudi.storage import open_storage
from pyhudi.timeline.heartbeat import Heartbeat, HeartbeatPolicy
storage, beats = open_storage(sys.argv[1]), threading.Event()
beat = Heartbeat(storage, "1", HeartbeatPolicy())
def write():
    with beat:
        beats.set()
        threading.Event().wait()
threading.Thread(target=write, daemon=True).start()
beats.wait()
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print(storage.exists(beat.path))
raise KeyboardInterrupt
"""


def test_a_heartbeat_whose_thread_ends_with_the_interpreter_is_removed(storage: Storage) -> None:
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED, storage.root], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr.split()[-1]) == ("True\n", "KeyboardInterrupt")
    assert not storage.exists(heartbeat_path("1"))
