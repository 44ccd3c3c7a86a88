"""Setup of the Python process that runs a task."""

from __future__ import annotations

import gc
import sys
import zipimport

import pyarrow as pa
from pyspark import TaskContext

from pyhudi.write.settings.write_context import TaskId

_prepared_with: list[int] = []


def prepare_worker() -> None:
    """Prepare a worker process for many short tasks; each task calls this first.

    Arrow's own threads would compete with the other tasks of the executor. Between two tasks, PySpark runs a garbage
    collection over all objects and invalidates the caches of the import system: together a tenth of a second, more than
    most tasks take. Imported modules are excluded from both.
    """
    if _prepared_with != [len(sys.modules)]:
        _prepared_with[:] = [len(sys.modules)]
        pa.set_cpu_count(1)
        gc.collect()
        gc.freeze()
    # a later import in a task creates the finders again, from the directory listings that were cached
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            del sys.path_importer_cache[path]


def this_task() -> TaskId:
    """Return an identifier of the current task attempt, which is part of the names of the files that it writes."""
    task = TaskContext.get()
    assert task is not None
    return TaskId(task.partitionId(), task.stageId(), task.taskAttemptId())
