"""Metrics for Datadog, sent to a server with its API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from pyhudi.config import Options
from pyhudi.errors import ConfigError
from pyhudi.metrics import ActionReport
from pyhudi.metrics.datadog_reporter import datadog_series
from pyhudi.metrics.publish import check_metrics_options, publish
from tests.http_server import serve

REPORT = ActionReport("clean", table_name="trips", instants=("1",), gauges={"numFilesDeleted": 7})
DATADOG = "hoodie.metrics.datadog."


@dataclass
class Datadog:
    """A server that accepts series with one API key."""

    url: str = ""
    documents: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture
def datadog() -> Iterator[Datadog]:
    found = Datadog()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            accepted = self.headers["DD-API-KEY"] == "secret" and self.path == "/api/v1/series"
            if accepted:
                found.documents.append(json.loads(body))
            self.send_response(202 if accepted else 403)
            self.end_headers()

    with serve(Handler) as port:
        found.url = f"http://127.0.0.1:{port}/"
        yield found


def options(**more: str) -> Options:
    given = {"hoodie.metrics.on": "true", "hoodie.metrics.reporter.type": "DATADOG"}
    return Options.parse(given | {DATADOG + name.replace("__", "."): value for name, value in more.items()})


def options_for(url: str, key: str) -> Options:
    given = {
        "hoodie.metrics.on": "true",
        "hoodie.metrics.reporter.type": "DATADOG",
        "pyhudi.metrics.datadog.api.url": url,
        f"{DATADOG}api.key": key,
        f"{DATADOG}metric.prefix": "lake",
        f"{DATADOG}metric.host": "etl-1",
        f"{DATADOG}metric.tags": "env:prod, team:a",
    }
    return Options.parse(given)


def test_gauges_arrive(datadog: Datadog) -> None:
    opts = options_for(datadog.url, "secret")
    check_metrics_options(opts)
    publish(REPORT, opts)
    ((document),) = datadog.documents
    series = {one["metric"]: one for one in document["series"]}
    assert set(series) == {"lake.trips.clean.numFilesDeleted", "lake.trips.clean.duration"}
    deleted = series["lake.trips.clean.numFilesDeleted"]
    ((seconds, value),) = deleted["points"]
    assert (value, seconds > 1_700_000_000) == (7, True)
    assert (deleted["type"], deleted["host"], deleted["tags"]) == ("gauge", "etl-1", ["env:prod", "team:a"])


def test_a_wrong_key_fails_nothing_and_is_not_logged(datadog: Datadog, caplog: pytest.LogCaptureFixture) -> None:
    publish(REPORT, options_for(datadog.url, "other-secret"))
    assert not datadog.documents
    assert "403" in caplog.text
    assert "other-secret" not in caplog.text


def test_missing_and_invalid_options() -> None:
    for given, expected in [
        ({"api__site": "EU"}, "require an API key in hoodie.metrics.datadog.api.key"),
        ({"api__key": "k"}, r"require the site in hoodie.metrics.datadog.api.site \(US or EU\)"),
        ({"api__key": "k", "api__site": "FR"}, "api.site"),
    ]:
        with pytest.raises(ConfigError, match=expected):
            check_metrics_options(options(**given))
    with pytest.raises(ConfigError, match=r"'datadoghq\.eu' is not an HTTP"):
        check_metrics_options(options_for("datadoghq.eu", "k"))
    check_metrics_options(options(api__key="k", api__site="us"))


def test_series_without_a_prefix_and_a_host() -> None:
    (one,) = datadog_series({"t.clean.duration": 2.5}, options(), 9)["series"]
    assert one == {"metric": "t.clean.duration", "points": [[9, 2.5]], "type": "gauge", "tags": []}
