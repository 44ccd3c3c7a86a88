"""Tasks of table services on threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from pyhudi.metrics.progress import Progress, report_progress
from pyhudi.write.settings.write_context import TaskId
from pyhudi.write.write_status import decode_stats, encode_stats


def run_tasks(
    run: Callable[[int, TaskId], bytes], total: int, threads: int, progress: Progress | None, name: str
) -> pa.Table:
    """Run numbered tasks. After a failure, no further task is started.

    Args:
        run: Runs the task of a number. Returns its encoded write stats.
        total: Number of tasks.
        threads: Number of threads.
        progress: Receives the number of finished tasks, with ``name`` of the work.
        name: See ``progress``.

    Returns:
        The write stats.
    """
    failed = threading.Event()

    def work(number: int) -> bytes:
        if failed.is_set():
            return encode_stats([])
        try:
            return run(number, TaskId(number, 0, number))
        except BaseException:
            failed.set()
            raise

    stats = []
    with ThreadPoolExecutor(threads) as pool:
        for stat in pool.map(work, range(total)):
            stats.append(stat)
            report_progress(progress, name, len(stats), total)
    return decode_stats(stats)
