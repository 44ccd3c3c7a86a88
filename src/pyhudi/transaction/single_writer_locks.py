"""Locks between the threads of this process that write to one table as its single writer.

Without `hoodie.write.concurrency.mode` a writer considers every pending write of others failed and rolls it back.
Threads of one process would do this to each other, so each write holds an in-process lock: the next one starts when it
has ended, and sees its result. Executing plans of compactions and clusterings takes another such lock. There is no lock
between processes: several of them need optimistic concurrency control, as in Apache Hudi.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from pyhudi.config import Options
from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.config.options import CONCURRENCY_MODE
from pyhudi.errors import BusyError
from pyhudi.storage import Storage, resolved_root
from pyhudi.transaction.concurrency_mode import failed_writes_policy

_NEWS_AFTER = 5.0
"""Seconds of waiting after which it is logged."""
_log = logging.getLogger(__name__)
_guard = threading.Lock()
_locks: dict[tuple[str, str], threading.RLock] = {}


def in_process_writer_lock(storage: Storage, opts: Options) -> AbstractContextManager[None]:
    """Hold the lock of this process for writes to a table.

    The lock is re-entrant: its holder may start another write of the same table. No lock is taken if failed
    writes are not rolled back eagerly (`hoodie.clean.failed.writes.policy`), as with several writers: then a running
    write is known by its heartbeat.

    Args:
        storage: Storage of the table, which need not exist yet.
        opts: Options of the write.
    """
    return _hold(storage, opts, "write to", wait=True)


def in_process_plan_lock(storage: Storage, opts: Options, *, wait: bool) -> AbstractContextManager[None]:
    """Hold the lock of this process for executing plans of compactions and clusterings of a table.

    Writes do not wait for it, because plans are executed concurrently with writes. A write that executes plans after
    its commit holds the writer lock, for which others wait, so it must not wait for this one.

    Args:
        storage: Storage of the table.
        opts: Options of the service.
        wait: Wait while another thread holds it.

    Raises:
        BusyError: Another thread holds it, and ``wait`` is false.
    """
    return _hold(storage, opts, "execute plans of", wait=wait)


@contextmanager
def _hold(storage: Storage, opts: Options, what: str, *, wait: bool) -> Iterator[None]:
    if failed_writes_policy(opts) is not FailedWritesPolicy.EAGER:
        yield
        return
    root = storage.root
    with _guard:
        lock = _locks.setdefault((what, resolved_root(root)), threading.RLock())
    if not wait:
        if not lock.acquire(blocking=False):
            raise BusyError(f"another thread of this process has its turn to {what} {root}; try again when it ends")
    elif not lock.acquire(timeout=_NEWS_AFTER):
        _log.warning(
            "waiting for another thread of this process to %s %s. To do so at the same time, set %s="
            "OPTIMISTIC_CONCURRENCY_CONTROL in all writers",
            what,
            root,
            CONCURRENCY_MODE.key,
        )
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
