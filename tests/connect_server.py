"""Sessions of Spark Connect, whose server is another process: ``python -m tests.connect_server PORT FOLDER``."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.sessions import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UP = "the server is up"
_ROOT = Path(__file__).parents[1]


@contextmanager
def connect_session(folder: Path) -> Iterator[SparkSession]:
    """Return a context manager of a session with a server of its own.

    Args:
        folder: Folder of the warehouse and of Spark's temporary files.
    """
    from pyspark.sql import SparkSession as Session

    from pyhudi.spark.session import configure_spark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # the server passes its own environment to workers, and no settings of executors
    paths = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "tests.connect_server", str(port), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT, env=env) as server:
        assert server.stdout is not None
        try:
            if not any(line.strip() == _UP for line in server.stdout):
                raise RuntimeError(f"the server of Spark Connect ended: {server.wait()}")
            session = configure_spark(Session.builder.remote(f"sc://127.0.0.1:{port}")).getOrCreate()
            yield session
            session.stop()  # otherwise PySpark waits for the server when this process ends
        finally:
            server.terminate()


def _serve(port: int, folder: Path) -> None:
    """Run a server until this process is terminated."""
    import pyspark
    from bench.jars import class_path
    from pyspark.sql import SparkSession as Session

    from pyhudi.spark.java_runtime import ensure_java

    ensure_java()
    settings = {
        **SMALL,
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(port),
        "spark.python.daemon.module": "tests.worker_daemon",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
    }
    if pyspark.__version__.startswith("3."):  # later versions include it
        settings["spark.driver.extraClassPath"] = class_path("connect-3.5.7")
    builder = Session.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    builder.getOrCreate().sparkContext.setLogLevel("ERROR")
    print(_UP, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), Path(sys.argv[2]))
