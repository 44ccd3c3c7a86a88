"""Metrics for Graphite."""

from __future__ import annotations

import queue
import socketserver
import threading
from collections.abc import Iterator

import pytest

from pyhudi.config import Options
from pyhudi.metrics import ActionReport
from pyhudi.metrics.graphite_reporter import graphite_lines
from pyhudi.metrics.publish import check_metrics_options, publish

REPORT = ActionReport("clean", table_name="trips", instants=("1",), gauges={"numFilesDeleted": 7})


@pytest.fixture
def server() -> Iterator[tuple[str, queue.Queue[bytes]]]:
    received: queue.Queue[bytes] = queue.Queue()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            received.put(self.rfile.read())

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield str(running.server_address[1]), received
        running.shutdown()
        thread.join()


def options(port: str) -> Options:
    graphite = "hoodie.metrics.graphite."
    given = {"hoodie.metrics.on": "true", f"{graphite}port": port, f"{graphite}metric.prefix": "prod"}
    opts = Options.parse(given)  # Graphite is the default
    check_metrics_options(opts)
    return opts


def test_gauges_arrive(server: tuple[str, queue.Queue[bytes]]) -> None:
    port, received = server
    publish(REPORT, options(port))
    lines = dict(line.split(" ", 1) for line in received.get(timeout=10).decode().splitlines())
    assert set(lines) == {"prod.trips.clean.numFilesDeleted", "prod.trips.clean.duration"}
    value, seconds = lines["prod.trips.clean.numFilesDeleted"].split()
    assert float(value) == 7
    assert int(seconds) > 1_700_000_000


def test_a_server_that_is_down_fails_nothing(caplog: pytest.LogCaptureFixture) -> None:
    publish(REPORT, options("1"))
    assert "were not reported" in caplog.text


def test_lines() -> None:
    assert graphite_lines({"a b.c": 1.5, "d": 2}, None, 9) == "a-b.c 1.50 9\nd 2.00 9\n"
