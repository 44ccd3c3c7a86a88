"""Common tests of lock providers. The tests of a provider subclass :class:`LockProviderTests`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from pyhudi.errors import LockError
from pyhudi.storage import Lock
from pyhudi.transaction.locks.lock_provider import LockProvider, LockRetryPolicy

#: gives a new owner of the same lock at each call
Owners = Callable[[], LockProvider]
QUICK = LockRetryPolicy(wait=0.1, tries=2, between=0.01, poll=0.02)


class LockProviderTests:
    """Behaviour common to all providers."""

    @pytest.fixture
    def owners(self) -> Owners:
        raise AssertionError("a provider's tests give an owners fixture")

    def test_is_a_lock(self, owners: Owners) -> None:
        assert isinstance(owners(), Lock)

    def test_exclusion(self, owners: Owners) -> None:
        one, other = owners(), owners()
        assert not one.held
        assert one.try_acquire()
        assert one.held
        assert not other.try_acquire()
        assert not other.acquire(0.05)
        assert not other.held
        one.ensure_held()
        with pytest.raises(LockError):
            other.ensure_held()
        one.release()
        assert not one.held
        assert other.acquire(1)
        other.release()

    def test_release_of_what_is_not_held(self, owners: Owners) -> None:
        one, other = owners(), owners()
        one.release()
        with one:
            other.release()
            one.ensure_held()
            assert not other.try_acquire()

    def test_not_reentrant(self, owners: Owners) -> None:
        one = owners()
        with one:
            assert not one.acquire(0.02)
            one.ensure_held()

    def test_again_and_again(self, owners: Owners) -> None:
        one, other = owners(), owners()
        for _ in range(3):
            with one:
                assert one.held
            with other:
                assert other.held

    def test_waiting_ends_with_an_error_that_names_the_lock(
        self, owners: Owners, caplog: pytest.LogCaptureFixture
    ) -> None:
        one, other = owners(), owners()
        with one:
            begun = time.monotonic()
            with pytest.raises(LockError, match=r"lock .*could not be acquired within"), other:
                pass
            assert time.monotonic() - begun >= 0.2
        assert "waiting for" in caplog.text

    def test_waiting_is_rewarded(self, owners: Owners) -> None:
        one, other = owners(), owners()
        assert one.try_acquire()
        timer = threading.Timer(0.05, one.release)
        timer.start()
        assert other.acquire(5)
        timer.join()
        other.release()

    def test_freed_when_the_block_fails(self, owners: Owners) -> None:
        with pytest.raises(ZeroDivisionError), owners():
            raise ZeroDivisionError
        assert owners().try_acquire()

    def test_threads_take_turns(self, owners: Owners) -> None:
        value, inside = 0, 0
        overlaps: list[int] = []

        def work() -> None:
            nonlocal value, inside
            provider = owners()
            for _ in range(5):
                while not provider.acquire(5):
                    pass
                inside += 1
                overlaps.append(inside)
                seen = value
                time.sleep(0.001)
                value = seen + 1
                inside -= 1
                provider.release()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert value == 20
        assert set(overlaps) == {1}
