"""Spark's daemon of Python workers, which has imported what tasks import (``spark.python.daemon.module``).

A worker is a fork of the daemon. Otherwise each worker imports pandas, PyArrow and pyhudi again, for more than a second
of CPU time, and Spark ends a worker after a minute without work. Objects that exist before the fork are frozen, because
a worker collects garbage after each task and would look at all of them.
"""

from __future__ import annotations

import gc

import pandas  # noqa: F401
import pyarrow  # noqa: F401
from pyspark.daemon import manager

import pyhudi.spark.execution.write_stages  # noqa: F401

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
