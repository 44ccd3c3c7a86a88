"""Settings of every Spark that the tests start, and the session that most tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.properties import FACTOR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    # C1 only: the tests are too short for C2 to pay off, and its threads would compete for the two cores. Without C2
    # there is room for 48 MB of compiled code only: code would be dropped and compiled again all the time. A large
    # young generation suits the garbage of many small plans, with room for the 100 MB that outlive a collection: they
    # would fill the old generation, which was collected after every fourth. With little space for classes, all garbage
    # would be collected each time that it is enlarged. Bytecode verification of Spark's own classes is not needed.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=160m "
    "-XX:+UseSerialGC -XX:NewSize=800m -XX:SurvivorRatio=4 -XX:TargetSurvivorRatio=90 "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
    # retain little information about finished plans and jobs
    "spark.sql.ui.explainMode": "simple",
    "spark.ui.liveUpdate.period": "-1",
    "spark.sql.ui.retainedExecutions": "2",
    "spark.ui.retainedJobs": "2",
    "spark.ui.retainedStages": "2",
    "spark.ui.retainedTasks": "10",
    # the tests run more different plans than Spark's code cache of 100 entries holds
    "spark.sql.codegen.cache.maxEntries": "2000",
}


SMALL_FILTERS = (
    {}
    if FACTOR >= 1
    else {"hoodie.index.bloom.num_entries": "100", "hoodie.bloom.index.filter.dynamic.max.entries": "1000"}
)
"""Bloom filters of few keys. One of 60,000, the default, is 430 KB in the footer of each base file, and takes
milliseconds whenever a file is written or opened, by either engine."""


@contextmanager
def small_bloom_filters() -> Iterator[None]:
    """Have writes of pyhudi make small filters by default."""
    from pyhudi.config.options import BLOOM_DYNAMIC_MAX_ENTRIES, BLOOM_NUM_ENTRIES

    changed = [option for option in (BLOOM_NUM_ENTRIES, BLOOM_DYNAMIC_MAX_ENTRIES) if option.key in SMALL_FILTERS]
    usual = [option.default for option in changed]
    for option in changed:
        object.__setattr__(option, "default", int(SMALL_FILTERS[option.key]))
    yield
    for option, value in zip(changed, usual, strict=True):
        object.__setattr__(option, "default", value)


def start_session(folder: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a local session with two cores and few shuffle partitions; works on Spark 3.5 and 4.

    Args:
        folder: Folder of the warehouse and of Spark's temporary files.
        settings: More settings.
    """
    from pyspark.sql import SparkSession as Session

    from pyhudi.spark.java_runtime import ensure_java

    # without it the workers may start another Python, which lacks pyarrow
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    ensure_java()
    remember_java_classes()
    send_rows_to_java()
    builder = Session.builder.master("local[2]").appName("pyhudi-tests")
    for key, value in {
        **SMALL,
        "spark.python.daemon.module": "tests.worker_daemon",
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
        "spark.sql.shuffle.partitions": "4",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        **(settings or {}),
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def remember_java_classes() -> None:
    """Let Py4J look up each Java class name once, not at each call of a function of `pyspark.sql.functions`.

    A look-up searches for the name in every imported package, and for each of these in every jar. It takes about a
    millisecond,
    thousands of times in a suite of small plans.
    """
    from py4j.java_gateway import JavaClass, JVMView

    look_up = JVMView.__getattr__
    known: dict[tuple[int, str], tuple[JVMView, JavaClass]] = {}

    def remembered(view: JVMView, name: str) -> object:
        found = known.get((id(view), name))
        if found is not None:
            return found[1]
        value = look_up(view, name)
        if isinstance(value, JavaClass):
            known[id(view), name] = (view, value)  # keeps a reference to the view, so that its id is not reused
        return value

    JVMView.__getattr__ = remembered


def send_rows_to_java() -> None:
    """Have `SparkSession.createDataFrame` hand over the rows of a list as the driver has pickled them.

    Otherwise they go through Python workers, which only put them into batches of another size, and that again at each
    evaluation of the frame: a write evaluates its frame several times.
    """
    from pyspark import RDD
    from pyspark.serializers import BatchedSerializer, CPickleSerializer

    pickled = RDD._pickled

    def as_given(rows: RDD) -> RDD:
        serializer = rows._jrdd_deserializer
        if isinstance(serializer, BatchedSerializer) and isinstance(serializer.serializer, CPickleSerializer):
            return rows
        return pickled(rows)

    RDD._pickled = as_given
