"""Configuration and checks of Spark sessions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import tzinfo
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyhudi.errors import HudiError, SetupError
from pyhudi.spark.java_runtime import ensure_java
from pyhudi.timeline.instant import take_local_zone_from

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OLDEST_SPARK = (3, 5, 4)
NEWEST_SPARK_MAJOR = 4
_PYTHON = "PYSPARK_PYTHON"
_VERSION = ".".join(map(str, sys.version_info[:2]))
_IMPORTED = "pyhudi, fastavro, numpy, pandas, pyarrow, pyroaring, xxhash"
"""What tasks import, one way or the other; `pyhudi` alone imports nothing."""
_CURE = "install it with: pip install 'pyhudi[spark]'"
_START = "pyhudi.configure_spark(SparkSession.builder).getOrCreate()"
_PROCESS = os.getpid()


def _zone_of_virtual_machine() -> tzinfo | None:
    """Return the default time zone of the virtual machine that this process has started; None if there is none."""
    machine = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_jvm", None)
    # Spark Connect, a task, or a process without Spark; one that was forked has the connection of its parent.
    if machine is None or os.getpid() != _PROCESS:
        return None
    from pyhudi.spark.session_settings import default_zone

    return default_zone(machine)


take_local_zone_from(_zone_of_virtual_machine)


def session_if_any() -> SparkSession | None:
    """Return the active Spark session, or None."""
    try:
        from pyspark.sql import SparkSession as Session
    except ImportError:
        return None
    return Session.getActiveSession()


def configure_spark(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Configure a session builder for pyhudi; no jars are required.

    Python workers run the current Python interpreter, unless ``PYSPARK_PYTHON`` is set. Java is discovered, or taken
    from the ``java`` extra if the machine has none; a Spark Connect client needs neither.

    Args:
        builder: Builder to configure.

    Returns:
        The builder.

    Raises:
        SetupError: PySpark, pandas or Java is missing or too old; the message names the command that installs it. Or it
            is not a builder, but the session itself, whose settings come too late.
    """
    check_packages()
    if not callable(getattr(builder, "config", None)):
        raise SetupError(
            f"configure_spark takes the builder of a session, not {_kind(builder)}, because workers get its settings "
            f"when the session starts: {_START}"
        )
    if not _is_remote():
        ensure_java()
        os.environ.setdefault(_PYTHON, sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Arrow's own allocator returns large blocks to the system and requests them again, which takes a tenth of the time
    # of a write task
    builder = builder.config("spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL", "system")
    # size of the batches that Spark passes to Python
    return builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "16384")


def start_session(master: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a session for pyhudi, or return the active one.

    Args:
        master: Master of the cluster, such as ``local[*]`` or ``yarn``, or the URI of a Spark Connect server
            (``sc://…``).
        settings: Spark's settings of the session.

    Returns:
        The session.

    Raises:
        SetupError: PySpark, pandas or Java is missing or too old; the message names the command that installs it.
    """
    check_packages()
    from pyspark.sql import SparkSession as Session

    builder = Session.builder.appName("pyhudi")
    builder = builder.remote(master) if master.startswith("sc://") else configure_spark(builder.master(master))
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session


def spark_sql(spark: SparkSession, text: str, *args: Any, **kwargs: Any) -> DataFrame:
    """Run a statement by Spark's own method, which `pyhudi.activate` may have wrapped."""
    frame: DataFrame = original_method(type(spark).sql)(spark, text, *args, **kwargs)
    return frame


def original_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return Spark's own method in place of one that `pyhudi.activate` has wrapped."""
    original: Callable[..., Any] = getattr(method, "__wrapped__", method)
    return original


def active_session() -> SparkSession:
    """Return the active Spark session.

    Raises:
        SetupError: There is no active session, or PySpark is not installed.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession as Session
    except ModuleNotFoundError as e:
        raise SetupError(f"this requires PySpark, which is not installed; {_CURE}") from e

    session = Session.getActiveSession()
    if session is None:
        try:
            session = Session.active()  # the session of the process, if the thread has none of its own
        except PySparkException as e:
            raise SetupError(f"there is no Spark session; start one with {_START}") from e
    return session


def check_packages() -> None:
    """Check that a supported version of PySpark is installed, and what its Arrow functions require: pandas, and PySpark
    3.5 also distutils, which is not part of Python 3.12 and later.

    Raises:
        SetupError: A package is missing or its version is not supported; the message names the command that installs
            it.
    """
    spark = installed_version("pyspark") or installed_version("pyspark-client")
    if spark is None:
        raise SetupError(f"PySpark is not installed: {_CURE}")
    version = tuple(int("".join(c for c in part if c.isdigit()) or 0) for part in spark.split(".")[:3])
    if version < OLDEST_SPARK or version[0] > NEWEST_SPARK_MAJOR:
        oldest = ".".join(map(str, OLDEST_SPARK))
        raise SetupError(
            f"PySpark {spark} is not supported (supported versions: {oldest} to {NEWEST_SPARK_MAJOR}.x); run pip "
            f"install 'pyspark>={oldest},<{NEWEST_SPARK_MAJOR + 1}'"
        )
    if installed_version("pandas") is None:
        raise SetupError(f"pandas is not installed, which PySpark's Arrow functions require: {_CURE}")
    if version[0] < 4 and find_spec("distutils") is None:
        raise SetupError(
            f"PySpark {spark} requires distutils, which Python 3.12 and later do not have: run pip install setuptools, "
            f"or pip install 'pyspark>=4,<{NEWEST_SPARK_MAJOR + 1}'"
        )


def check_session(spark: Any) -> None:
    """Check that an object is a session, classic or Connect.

    Raises:
        SetupError: It is a builder, for example.
    """
    if not (hasattr(spark, "createDataFrame") or hasattr(spark, "sparkContext")):
        raise SetupError(f"activate takes a Spark session, not {_kind(spark)}: start one with {_START}")


def check_not_stopped(spark: SparkSession) -> None:
    """Check that a session has not been stopped; PySpark would fail with an `AssertionError` without a message.

    Args:
        spark: Session of a DataFrame, or that reads.

    Raises:
        SetupError: It has been stopped.
    """
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has no context; the class of the error depends on the release
        return
    try:
        context.version  # noqa: B018
    except AttributeError as e:  # the context has lost its Java object
        raise SetupError(
            f"the Spark session has been stopped; start one with {_START}, and create the DataFrame, or open the "
            "table, with that"
        ) from e


@contextmanager
def stopped_session_errors(spark: SparkSession) -> Iterator[None]:
    """Return a context manager for work of a session that raises the error of `check_not_stopped` if the session is
    stopped meanwhile; the errors of PySpark are then about Java objects that are gone.

    Raises:
        SetupError: It has been stopped.
    """
    try:
        yield
    except HudiError:
        raise
    except Exception:
        check_not_stopped(spark)
        raise


def _kind(value: object) -> str:
    return f"{value!r}" if isinstance(value, str) else f"a {type(value).__name__}"


def check_workers(spark: SparkSession) -> None:
    """Check that the Python workers of a local session can import pyhudi, in the Python version of this process.

    The workers of a cluster cannot be checked from the driver; their Python is the one in ``PYSPARK_PYTHON`` when the
    session starts.

    Args:
        spark: Session to check.

    Raises:
        SetupError: The workers cannot import pyhudi, or run another version of Python, for which PySpark would fail in
            each task; the message names the setting to change.
    """
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has no context; the class of the error depends on the release
        return
    if context.master.startswith("local") and not can_run_tasks(context.pythonExec):
        raise SetupError(
            f"the Python workers of this Spark session run {context.pythonExec!r}, which cannot import pyhudi and "
            f"its dependencies, or is not Python {_VERSION} like this process. Stop the session and create it with "
            "pyhudi.configure_spark(SparkSession.builder).getOrCreate(), or with the environment variable "
            f"{_PYTHON}={sys.executable}"
        )


@cache
def can_run_tasks(python: str) -> bool:
    """Return False if an interpreter cannot import pyhudi and its dependencies, or has another minor version than this
    one; True also if it does not answer."""
    executable = shutil.which(python)
    if executable is not None and Path(executable).absolute() == Path(sys.executable).absolute():
        return True
    code = f"import sys, {_IMPORTED}; sys.exit('%d.%d' % sys.version_info[:2] != '{_VERSION}')"
    try:
        check = subprocess.run([python, "-c", code], capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:  # a machine under load: the result is unknown, so the session is accepted
        return True
    except OSError:
        return False
    return check.returncode == 0


def _is_remote() -> bool:
    return bool(os.environ.get("SPARK_REMOTE")) or os.environ.get("SPARK_API_MODE") == "connect"


def installed_version(package: str) -> str | None:
    """Return the version of an installed package; None if it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
