"""A ZooKeeper server for tests: that of the jars which PySpark ships."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from pyhudi.spark.java_runtime import ensure_java


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[str]:
    """Run a server with its data in a folder, and give its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"dataDir": folder, "clientPort": port, "clientPortAddress": "127.0.0.1", "admin.enableServer": "false"}
    # sessions end when their clients say, rounded up to ticks, and not after two ticks of two seconds at the earliest
    settings |= {"tickTime": 500, "maxSessionTimeout": 60000}
    (folder / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    jars = f"{Path(pyspark.__file__).parent}/jars/*"
    main = "org.apache.zookeeper.server.ZooKeeperServerMain"
    with (folder / "log").open("wb") as log:
        command = [ensure_java().home / "bin/java", "-Xmx128m", "-cp", jars, main, folder / "zoo.cfg"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(port, process)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(b"srvr")
                if b"Mode: " in connection.makefile("rb").read():
                    return
        except OSError:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.05)
