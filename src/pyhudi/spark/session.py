"""Configuration and checks of Spark sessions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from pyhudi.errors import SetupError
from pyhudi.spark.java_runtime import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_SPARK = (3, 5, 4)
NEWEST_SPARK_MAJOR = 4
_PYTHON = "PYSPARK_PYTHON"
_CURE = "install it with: pip install 'pyhudi[spark]'"


def configure_spark(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Configure a session builder for pyhudi; no jars are needed.

    Workers run this Python, unless ``PYSPARK_PYTHON`` says otherwise. Java is searched for, and taken from the ``java``
    extra where the machine has none; a Spark Connect client needs neither.

    Args:
        builder: Builder to configure.

    Returns:
        The builder.

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
    """Return the active Spark session.

    Raises:
        SetupError: There is none.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession as Session

    found = Session.getActiveSession()
    if found is None:
        try:
            found = Session.active()  # that of the process, where a thread has none of its own
        except PySparkException as e:
            raise SetupError(
                "there is no Spark session; start one with pyhudi.configure_spark(SparkSession.builder).getOrCreate()"
            ) from e
    return found


def check_packages() -> None:
    """Check that a supported PySpark is installed, and pandas, which PySpark's Arrow functions need.

    Raises:
        SetupError: A package is missing or out of range; the message has the command that installs it.
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


def check_workers(spark: SparkSession) -> None:
    """Check that the Python workers of a local session can import pyhudi.

    The workers of a cluster cannot be checked from here; their Python is that of ``PYSPARK_PYTHON`` when the session
    starts.

    Args:
        spark: Session to check.

    Raises:
        SetupError: The workers cannot import pyhudi; the message says what to set.
    """
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has none, and says so in other classes from release to release
        return
    if context.master.startswith("local") and not _can_import_us(context.pythonExec):
        raise SetupError(
            f"the workers of this Spark session run {context.pythonExec!r}, which cannot import pyhudi and what it "
            "needs. Begin the session with pyhudi.configure_spark(SparkSession.builder).getOrCreate(), or set the "
            f"environment variable {_PYTHON}={sys.executable} before it begins; one that is running has to be stopped "
            "first"
        )


@cache
def _can_import_us(python: str) -> bool:
    found = shutil.which(python)
    if found is not None and Path(found).absolute() == Path(sys.executable).absolute():
        return True
    try:
        asked = subprocess.run([python, "-c", "import pyhudi, pandas, pyarrow"], capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:  # a machine under load; nothing is known, so nothing is refused
        return True
    except OSError:
        return False
    return asked.returncode == 0


def _is_remote() -> bool:
    return bool(os.environ.get("SPARK_REMOTE")) or os.environ.get("SPARK_API_MODE") == "connect"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
