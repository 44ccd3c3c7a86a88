from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta
from multiprocessing.queues import Queue
from pathlib import Path

import pytest

from pyhudi.config.options import TIME_GENERATOR_MAX_CLOCK_SKEW_MS
from pyhudi.errors import InvalidOptionError
from pyhudi.storage import InProcessLock, Storage, open_storage
from pyhudi.timeline.instant import parse_instant
from pyhudi.timeline.time_generator import TimeGenerator
from tests.processes import separate_processes

MAX_CLOCK_SKEW = TIME_GENERATOR_MAX_CLOCK_SKEW_MS.key

NO_SKEW = {MAX_CLOCK_SKEW: "0"}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = open_storage(tmp_path)
    storage.make_dirs(".hoodie")
    return storage


def test_instants_rise_in_one_thread(storage: Storage):
    generator = TimeGenerator(storage, NO_SKEW)
    issued = [generator.next() for _ in range(50)]
    assert issued == sorted(set(issued))


def test_instants_rise_among_threads(storage: Storage):
    issued: list[str] = []

    def work() -> None:
        generator = TimeGenerator(storage, NO_SKEW)
        for _ in range(20):
            with generator.reserve() as reserved:
                issued.append(reserved.take())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(issued) == 80
    assert issued == sorted(set(issued))


def _issue(uri: str, queue: Queue[list[tuple[str, int]]]) -> None:
    generator = TimeGenerator(open_storage(uri), NO_SKEW)
    issued = []
    for _ in range(30):
        with generator.reserve() as reserved:
            instant = reserved.take()
            issued.append((instant, time.monotonic_ns()))
    queue.put(issued)


def test_instants_rise_among_processes(tmp_path: Path):
    (tmp_path / ".hoodie").mkdir()
    context = separate_processes()
    queue: Queue[list[tuple[str, int]]] = context.Queue()
    processes = [context.Process(target=_issue, args=(tmp_path.as_uri(), queue)) for _ in range(3)]
    for process in processes:
        process.start()
    issued = [pair for _ in processes for pair in queue.get(timeout=60)]
    for process in processes:
        process.join()
    in_time = [instant for instant, _ in sorted(issued, key=lambda pair: pair[1])]
    assert len(set(in_time)) == 90
    assert in_time == sorted(in_time)


def test_nobody_gets_the_lock_before_the_skew_is_over(storage: Storage):
    generator = TimeGenerator(storage, {MAX_CLOCK_SKEW: "1000"}, lock=InProcessLock("skew"))
    other = InProcessLock("skew")
    begun = time.monotonic()
    generator.next()
    assert time.monotonic() - begun < 0.9  # the one who has the time goes on
    assert not other.acquire(0)
    assert other.acquire(5)
    assert time.monotonic() - begun >= 1
    other.release()


def test_the_next_time_of_the_same_writer_waits_too(storage: Storage):
    generator = TimeGenerator(storage, {MAX_CLOCK_SKEW: "60"})
    begun = time.monotonic()
    for _ in range(3):
        generator.next()
    assert time.monotonic() - begun >= 0.12


def test_the_same_writer_looks_without_waiting(storage: Storage):
    generator = TimeGenerator(storage, {MAX_CLOCK_SKEW: "2000"}, lock=InProcessLock("look"))
    begun = time.monotonic()
    generator.next()
    with generator.lock:
        pass
    with generator.reserve():
        pass
    assert time.monotonic() - begun < 1
    assert not InProcessLock("look").acquire(0)  # the time is still waited out


def test_a_time_waits_for_those_of_the_hold_before(storage: Storage, monkeypatch: pytest.MonkeyPatch):
    """Also when the same writer has looked in between; times of one hold do not wait for each other."""
    generator = TimeGenerator(storage, {MAX_CLOCK_SKEW: "300"})
    waits: list[float] = []
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: (waits.append(seconds), sleep(seconds)))
    begun = time.monotonic()
    generator.next()
    with generator.lock:
        pass
    with generator.lock:
        assert sum(waits) < 0.05
        waits.clear()
        for _ in range(3):
            with generator.reserve(locked=True) as reserved:
                reserved.take()
        assert time.monotonic() - begun >= 0.3
        assert len(waits) <= 1


def test_a_time_that_was_not_taken_keeps_nobody_waiting(storage: Storage):
    generator = TimeGenerator(storage, {MAX_CLOCK_SKEW: "60000"}, lock=InProcessLock("untaken"))
    with generator.reserve():
        pass
    assert InProcessLock("untaken").acquire(0)


def test_the_lock_is_kept_after_an_error_too(storage: Storage):
    generator = TimeGenerator(storage, {MAX_CLOCK_SKEW: "1000"}, lock=InProcessLock("error"))

    def fail_after_taking() -> None:
        with generator.reserve() as reserved:
            reserved.take()
            raise KeyError

    with pytest.raises(KeyError):
        fail_after_taking()
    assert not InProcessLock("error").acquire(0)


def test_times_within_a_lock_that_is_held_keep_it(storage: Storage):
    generator = TimeGenerator(storage, {MAX_CLOCK_SKEW: "1000"}, lock=InProcessLock("held"))
    with generator.lock, generator.reserve(locked=True) as reserved:
        reserved.take()
    assert not InProcessLock("held").acquire(0)
    assert InProcessLock("held").acquire(5)


def test_work_hides_the_wait(storage: Storage):
    generator = TimeGenerator(storage, {MAX_CLOCK_SKEW: "60"}, lock=InProcessLock("work"))
    with generator.reserve() as reserved:
        reserved.take()
        time.sleep(0.07)
    assert InProcessLock("work").acquire(0)


def test_a_clock_that_was_set_back(storage: Storage):
    now = [1_700_000_000_000]
    generator = TimeGenerator(storage, NO_SKEW, "UTC", clock=lambda: now[0])
    first = generator.next()
    now[0] -= 3_600_000
    second = generator.next()
    assert parse_instant(second) == parse_instant(first) + timedelta(milliseconds=1)


def test_later_than_what_is_on_the_timeline(storage: Storage):
    generator = TimeGenerator(storage, NO_SKEW, "UTC", clock=lambda: 1_700_000_000_000)
    assert generator.next("20240101000000000") == "20240101000000001"
    assert generator.next("20231114") == "20240101000000002"


def test_time_zone_of_the_table(storage: Storage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pyhudi.timeline.instant._local_zone", [])  # without the virtual machine of another test
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        clock = 1_700_000_000_123
        assert TimeGenerator(storage, NO_SKEW, "UTC", clock=lambda: clock).next() == "20231114221320123"
        assert TimeGenerator(storage, NO_SKEW, "LOCAL", clock=lambda: clock).next() == "20231115034320123"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_now_is_now(storage: Storage):
    instant = parse_instant(TimeGenerator(storage, NO_SKEW, "LOCAL").next())
    assert abs(datetime.now() - instant) < timedelta(seconds=5)


@pytest.mark.parametrize("value", ["-1", "x", ""])
def test_bad_skew(storage: Storage, value: str):
    with pytest.raises(InvalidOptionError, match="max_expected_clock_skew_ms"):
        TimeGenerator(storage, {MAX_CLOCK_SKEW: value})
