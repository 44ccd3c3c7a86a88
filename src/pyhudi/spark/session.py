"""A Spark session that can run pyhudi."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from pyhudi.errors import SetupError
from pyhudi.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_SPARK = (3, 5, 4)
NEWEST_SPARK_MAJOR = 4
_PYTHON = "PYSPARK_PYTHON"
_CURE = "install it with: pip install 'pyhudi[spark]'"


def configure_spark(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Set up a session builder for pyhudi and return it; no jars are needed.

    Workers run this Python (unless PYSPARK_PYTHON says otherwise): another one may lack pyarrow. Java is looked for,
    and taken from the ``java`` extra where the machine has none; a Spark Connect client needs neither.

    Raises:
        SetupError: PySpark, pandas or Java is missing or too old; the message says how to get it.
    """
    check_packages()
    if not _is_remote():
        ensure_java()
        os.environ.setdefault(_PYTHON, sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Arrow's own allocator gives large blocks back to the system and takes them again, a tenth of a write task's time
    builder = builder.config("spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL", "system")
    # what Spark hands to Python in one piece
    return builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "16384")


def active_session() -> SparkSession:
    """The session that is running.

    Raises:
        SetupError: there is none.
    """
    from pyspark.sql import SparkSession as Session

    found = Session.getActiveSession()
    if found is None:
        raise SetupError(
            "there is no Spark session; start one with pyhudi.configure_spark(SparkSession.builder).getOrCreate()"
        )
    return found


def check_packages() -> None:
    """Refuse a PySpark that is missing or out of range, and a missing pandas, which PySpark's Arrow functions need.

    Raises:
        SetupError: with the command that installs what is missing.
    """
    spark = _version("pyspark") or _version("pyspark-client")
    if spark is None:
        raise SetupError(f"PySpark is not installed: {_CURE}")
    found = tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in spark.split(".")[:3])
    if found < OLDEST_SPARK or found[0] > NEWEST_SPARK_MAJOR:
        oldest = ".".join(map(str, OLDEST_SPARK))
        raise SetupError(
            f"PySpark {spark} is not supported, versions {oldest} to {NEWEST_SPARK_MAJOR}.x are: "
            f"pip install 'pyspark>={oldest},<{NEWEST_SPARK_MAJOR + 1}'"
        )
    if _version("pandas") is None:
        raise SetupError(f"pandas is not installed, and PySpark's Arrow functions need it: {_CURE}")


def _is_remote() -> bool:
    return bool(os.environ.get("SPARK_REMOTE")) or os.environ.get("SPARK_API_MODE") == "connect"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
