"""The jars of Apache Hudi, of the rivals, and of what Spark 3.5 has beside itself (S3, Connect), from Maven Central.

Only the interoperability tests and the benchmark need them; pyhudi itself uses no jar. Spark's own resolver
(``spark.jars.packages``) fetches them once into a cache folder, ``.cache/jars`` of this repository, or where
``PYHUDI_JARS`` says. A mirror is named as for any Spark: ``spark.jars.ivySettings`` through ``PYHUDI_IVY_SETTINGS``.

    python -m bench.jars            # fetch all of them
    python -m bench.jars hudi-1.2.0
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

COORDINATES: dict[str, str] = {
    "connect-3.5.7": "org.apache.spark:spark-connect_2.12:3.5.7",
    "hudi-0.15.0": "org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0",
    "hudi-1.0.2": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.0.2",
    "hudi-1.1.1": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.1.1",
    "hudi-1.2.0": "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",
    "delta-3.3.2": "io.delta:delta-spark_2.12:3.3.2",
    "hadoop-aws-3.3.4": "org.apache.hadoop:hadoop-aws:3.3.4",
    "iceberg-1.10.0": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.10.0",
}
"""Maven coordinates by short name; all are for Spark 3.5.9 with Scala 2.12."""

_COMPANIONS: dict[str, tuple[str, ...]] = {
    "delta-3.3.2": ("io.delta_delta-storage-3.3.2.jar", "org.antlr_antlr4-runtime-4.9.3.jar"),
    "hadoop-aws-3.3.4": ("com.amazonaws_aws-java-sdk-bundle-1.12.262.jar",),
}
"""Jars that a package needs beside its own (the others bundle what they need)."""


def cache_dir() -> Path:
    """The folder that holds the jars (Ivy's layout: its ``jars/`` has the files)."""
    return Path(os.environ.get("PYHUDI_JARS") or ROOT / ".cache" / "jars")


def resolve(name: str) -> list[Path]:
    """The jar files for a class path, fetched now when they are not in the cache.

    Raises:
        KeyError: no such short name.
        RuntimeError: Maven Central (or the mirror) did not give them; the resolver's last lines are in the message.
    """
    wanted = _files(name)
    with _alone():  # else a jar could be found that another process is still fetching
        if not all(jar.exists() for jar in wanted):
            _fetch(name)
    missing = [str(jar) for jar in wanted if not jar.exists()]
    if missing:
        raise RuntimeError(f"the resolver ended well but left no {', '.join(missing)}")
    return wanted


def class_path(name: str) -> str:
    """The same as one text for ``spark.driver.extraClassPath`` and ``spark.executor.extraClassPath``."""
    return os.pathsep.join(str(jar) for jar in resolve(name))


@contextmanager
def _alone() -> Iterator[None]:
    """One process at a time looks into the cache, and fetches what is missing."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _files(name: str) -> list[Path]:
    group, artifact, version = COORDINATES[name].split(":")
    folder = cache_dir() / "jars"
    return [folder / f"{group}_{artifact}-{version}.jar", *(folder / jar for jar in _COMPANIONS.get(name, ()))]


def _fetch(name: str) -> None:
    """Let spark-submit resolve the package; the program it then runs does nothing, so no Spark context starts."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with tempfile.TemporaryDirectory() as scratch:
        nothing = Path(scratch) / "nothing.py"
        nothing.write_text("")
        command = [
            str(home / "bin" / "spark-submit"),
            *("--master", "local[1]", "--packages", COORDINATES[name], "--conf", f"spark.jars.ivy={cache_dir()}"),
        ]
        if settings := os.environ.get("PYHUDI_IVY_SETTINGS"):
            command += ["--conf", f"spark.jars.ivySettings={settings}"]
        env = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run([*command, str(nothing)], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join(done.stderr.splitlines()[-15:])
        raise RuntimeError(f"could not fetch {COORDINATES[name]} into {cache_dir()}:\n{tail}")


def main(names: list[str]) -> None:
    """Fetch the named packages, all when none is named, and print their files."""
    for name in names or COORDINATES:
        for jar in resolve(name):
            print(f"{name}\t{jar}\t{jar.stat().st_size >> 20} MiB")


if __name__ == "__main__":
    main(sys.argv[1:])
