"""Turns of the threads of this process that write to one table as its single writer.

Without `hoodie.write.concurrency.mode` a writer considers every pending write of others failed and rolls it back.
Threads of one process would do this to each other, so they take turns: a write starts when the one before it has ended,
and sees its result. Processes do not know of each other; several of them need optimistic concurrency control, as in
Apache Hudi.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyhudi.config.enums import FailedWritesPolicy
from pyhudi.config.options import CONCURRENCY_MODE
from pyhudi.transaction.failed_writes_policy import failed_writes_policy

if TYPE_CHECKING:
    from pyhudi.config import Options
    from pyhudi.storage import Storage

_NEWS_AFTER = 5.0
"""Seconds of waiting after which it is logged."""
_log = logging.getLogger(__name__)
_guard = threading.Lock()
_turns: dict[str, threading.RLock] = {}


@contextmanager
def writer_turn(storage: Storage, opts: Options) -> Iterator[None]:
    """Hold the turn of this thread to write to a table, from the moment no other thread of this process has it.

    The turn is re-entrant: a thread that has it may start another write of the same table. Nothing is done if failed
    writes are not rolled back eagerly (`hoodie.clean.failed.writes.policy`), as with several writers: then a running
    write is known by its heartbeat.

    Args:
        storage: Storage of the table, which need not exist yet.
        opts: Options of the write.
    """
    if failed_writes_policy(opts) is not FailedWritesPolicy.EAGER:
        yield
        return
    turn = _turn_of(storage.root)
    _wait_for(turn, storage.root)
    try:
        yield
    finally:
        turn.release()


def _turn_of(root: str) -> threading.RLock:
    local = root.removeprefix("file://")
    name = root if local == root else os.path.realpath(local)
    with _guard:
        return _turns.setdefault(name, threading.RLock())


def _wait_for(turn: threading.RLock, root: str) -> None:
    started = time.monotonic()
    if turn.acquire(timeout=_NEWS_AFTER):
        return
    _log.warning(
        "another thread of this process is writing to %s; this write starts after it. Writes at the same time need %s="
        "OPTIMISTIC_CONCURRENCY_CONTROL in all writers",
        root,
        CONCURRENCY_MODE.key,
    )
    turn.acquire()
    _log.info("waited %.1f s for another thread that wrote to %s", time.monotonic() - started, root)
