"""Reads of several sources of batches on threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

Work: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]
"""Reads one source."""
_QUEUED_BATCHES = 2
"""Batches for each thread that are read ahead of a slow consumer."""
_PUT_TIMEOUT_S = 0.1
"""Seconds after which a thread with a batch looks whether the consumer has gone."""


def batches_in_parallel(works: Iterable[Work], threads: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all sources in undefined order, with a bounded number of them in memory.

    Args:
        works: The sources.
        threads: Number of sources that are read at a time.

    Raises:
        Exception: The first error of a source; the others are not read on.
    """
    reads = _ParallelReads(iter(works), queue.Queue(max(1, threads) * _QUEUED_BATCHES))
    workers = [threading.Thread(target=reads.run, name=f"pyhudi-scan-{i}", daemon=True) for i in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield from reads.results(threads)
    finally:
        reads.stopped.set()
        for worker in workers:
            worker.join()


@dataclass
class _ParallelReads:
    """Sources that threads take one by one, and the queue of their batches, of errors, and of the ends of threads."""

    pending: Iterator[Work]
    ready: queue.Queue[pa.RecordBatch | BaseException | None]
    stopped: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        """Read sources until there are none left."""
        try:
            while not self.stopped.is_set():
                with self._lock:
                    read = next(self.pending, None)
                if read is None:
                    break
                for batch in read():
                    if not self._put(batch):
                        return
        except BaseException as error:  # Passed on to the consumer.
            self._put(error)
        finally:
            self._put(None)

    def results(self, running: int) -> Iterator[pa.RecordBatch]:
        """Yield the batches that a number of threads read."""
        while running:
            item = self.ready.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item

    def _put(self, item: pa.RecordBatch | BaseException | None) -> bool:
        """Wait for a place in the queue. Return False if the consumer has gone."""
        while not self.stopped.is_set():
            try:
                self.ready.put(item, timeout=_PUT_TIMEOUT_S)
            except queue.Full:
                continue
            return True
        return False
