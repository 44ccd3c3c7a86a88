"""What a task of ours does first in the Python process that runs it."""

from __future__ import annotations

import gc
import sys
import zipimport

import pyarrow as pa

_settled: list[bool] = []


def settle_worker() -> None:
    """Make a worker process ready for many short tasks; does something the first time only.

    Arrow's own threads would compete with the other tasks of the executor. Between two tasks PySpark collects garbage
    among all objects, and reads the directory of its own zip file again: together a tenth of a second, more than most
    tasks take. Modules are not garbage, and what was imported is not imported again.
    """
    if _settled:
        return
    _settled.append(True)
    pa.set_cpu_count(1)
    gc.collect()
    gc.freeze()
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimport.zipimporter):  # made anew at the next import, from what it has read before
            del sys.path_importer_cache[path]
