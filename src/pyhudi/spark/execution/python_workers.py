"""Setup of the Python process that runs a task."""

from __future__ import annotations

import gc
import sys
import zipimport

import pyarrow as pa
from pyspark import TaskContext

from pyhudi.write.write_context import TaskId

_settled_with: list[int] = []


def prepare_worker() -> None:
    """Make a worker process ready for many short tasks; each task calls it when it begins.

    Arrow's own threads would compete with the other tasks of the executor. Between two tasks PySpark collects garbage
    among all objects, and reads the directories of its own archives again: together a tenth of a second, more than most
    tasks take. Modules are not garbage, and what was imported is not imported again.
    """
    if _settled_with != [len(sys.modules)]:
        _settled_with[:] = [len(sys.modules)]
        pa.set_cpu_count(1)
        gc.collect()
        gc.freeze()
    # whatever a task imports brings them back; they are made anew when needed, from what was read before
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):
            del sys.path_importer_cache[path]


def this_task() -> TaskId:
    """The task attempt that runs this, which names the files it writes."""
    task = TaskContext.get()
    assert task is not None
    return TaskId(task.partitionId(), task.stageId(), task.taskAttemptId())
