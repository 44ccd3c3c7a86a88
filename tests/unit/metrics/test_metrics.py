"""Metrics of writes and services: callbacks, Apache Hudi's names, Prometheus."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socket import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pyhudi.config import Options
from pyhudi.errors import ConfigError, SetupError
from pyhudi.metrics import ActionReport, add_listener, in_memory_metrics, prometheus_reporter, remove_listener
from pyhudi.metrics.publish import check_metrics_options, publish
from tests.http_server import serve
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

GAUGES = [
    "commitTime",
    "duration",
    "totalBytesWritten",
    "totalCompactedRecordsUpdated",
    "totalCreateTime",
    "totalFilesInsert",
    "totalFilesUpdate",
    "totalInsertRecordsWritten",
    "totalLogFilesCompacted",
    "totalLogFilesSize",
    "totalLogRecordsCompacted",
    "totalPartitionsWritten",
    "totalRecordsDeleted",
    "totalRecordsWritten",
    "totalScanTime",
    "totalUpdateRecordsWritten",
    "totalUpsertTime",
]


@pytest.fixture
def heard() -> Iterator[list[ActionReport]]:
    found: list[ActionReport] = []
    add_listener(found.append)
    yield found
    remove_listener(found.append)


def table(folder: Path, **options: str) -> MorTable:
    mor = MorTable(folder, 9, options={**FAST, **options})
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    return mor


def metrics(reporter: str, **more: str) -> dict[str, str]:
    return {"hoodie.metrics.on": "true", "hoodie.metrics.reporter.type": reporter, **more}


def samples(text: str) -> dict[str, float]:
    """Values by name, as Prometheus's own parser reads them."""
    return {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples}


def test_listeners_hear_of_writes_and_services(
    tmp_path: Path, heard: list[ActionReport], caplog: pytest.LogCaptureFixture
) -> None:
    mor = table(tmp_path / "t", **{"hoodie.metadata.enable": "true", "hoodie.metadata.compact.max.delta.commits": "2"})
    heard.clear()
    while "metadata_compaction" not in [report.action for report in heard]:
        caplog.clear()
        heard.clear()
        with caplog.at_level(logging.INFO, "pyhudi.actions"):
            instant = mor.delta([row("a0", "a", 1, "y")])
    commit, compaction = sorted(heard, key=lambda report: report.action)
    assert (commit.action, commit.operation, commit.instants) == ("deltacommit", "UPSERT", (instant,))
    assert commit.counts == {"files": 1, "records": 1, "inserts": 0, "updates": 0, "deletes": 0}
    assert set(commit.millis) == {"write", "commit", "metadata_services"}
    assert commit.duration_millis == sum(commit.millis.values())
    assert compaction.action == "metadata_compaction"
    assert compaction.counts["file_groups"] >= 1
    assert [record.message for record in caplog.records] == [report.line() for report in heard]
    assert f"action=deltacommit table={commit.table} instants={instant} operation=UPSERT files=1" in commit.line()
    heard.clear()
    mor.table.services.savepoint(instant)
    mor.table.services.archive()  # there is nothing to do
    assert [(report.action, len(report.instants)) for report in heard] == [("savepoint", 1), ("archive", 0)]


def test_listeners_that_fail_fail_nothing(tmp_path: Path, heard: list[ActionReport]) -> None:
    def fail(report: ActionReport) -> None:
        raise RuntimeError(report.action)

    add_listener(fail)
    try:
        table(tmp_path / "t")
    finally:
        remove_listener(fail)
    remove_listener(fail)
    assert len(heard) == 1


def test_names_of_apache_hudi(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mor = table(tmp_path / "t", **metrics("INMEMORY"))
    mor.delta([row("a0", "a", 1, "y"), row("b7", "b", 1, "z")])
    found = {name: value for name, value in in_memory_metrics().items() if name.startswith("t.deltacommit.")}
    assert set(found) == {f"t.deltacommit.{name}" for name in GAUGES}
    assert found["t.deltacommit.totalPartitionsWritten"] == 2
    assert found["t.deltacommit.totalRecordsWritten"] == 2
    assert found["t.deltacommit.totalFilesInsert"] + found["t.deltacommit.totalFilesUpdate"] == 2
    mor.options = {**FAST, **metrics("console"), "hoodie.metrics.reporter.metricsname.prefix": "x.y"}
    mor.delta([row("a0", "a", 2, "y")])
    assert "\nx_y.deltacommit.totalRecordsWritten = 1\n" in capsys.readouterr().out


def test_names_of_services(tmp_path: Path) -> None:
    named = {**metrics("INMEMORY"), "hoodie.metrics.reporter.metricsname.prefix": "services"}
    mor = table(tmp_path / "t")
    mor.delta([row("a0", "a", 1, "y"), row("a1", "a", 1, "y")])
    mor.table.services.compact(named)
    mor.table.services.cluster(named)
    found = in_memory_metrics()
    assert found["services.compaction.totalLogRecordsCompacted"] == 2
    assert found["services.compaction.totalRecordsWritten"] == 3
    assert found["services.clustering.totalRecordsWritten"] == 6
    assert not [name for name in found if name.startswith("services.replacecommit")]


@pytest.mark.parametrize("reporter", ["JMX", "M3"])
def test_reporters_that_there_are_not(reporter: str) -> None:
    with pytest.raises(ConfigError, match=f"{reporter} is not supported .*INMEMORY.*add_listener"):
        check_metrics_options(Options.parse(metrics(reporter)))
    check_metrics_options(Options.parse({"hoodie.metrics.reporter.type": reporter}))


def test_reporters_in_java_are_refused() -> None:
    opts = Options.parse(metrics("GRAPHITE", **{"hoodie.metrics.reporter.class": "com.acme.Reporter"}))
    with pytest.raises(ConfigError, match=r"com\.acme\.Reporter is not supported.*add_listener"):
        check_metrics_options(opts)


def test_services_refuse_them_too(tmp_path: Path) -> None:
    mor = table(tmp_path / "t")
    with pytest.raises(ConfigError, match="JMX"):
        mor.table.services.archive(metrics("JMX"))


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(SetupError, match=r"pip install 'pyhudi\[prometheus\]'"):
        check_metrics_options(Options.parse(metrics("PROMETHEUS")))


def test_labels_that_are_none() -> None:
    with pytest.raises(ConfigError, match="invalid label 'b'"):
        check_metrics_options(
            Options.parse(metrics("PROMETHEUS", **{"hoodie.metrics.pushgateway.report.labels": "a:1,b"}))
        )


def test_text_file(tmp_path: Path) -> None:
    path = tmp_path / "hudi.prom"
    table(tmp_path / "t", **metrics("PROMETHEUS", **{"pyhudi.metrics.textfile": str(path)}))
    found = samples(path.read_text())
    assert found["t_deltacommit_totalRecordsWritten"] == 6
    assert found["t_deltacommit_totalFilesInsert"] == 2


def test_server(tmp_path: Path) -> None:
    with socket() as probe:
        probe.bind(("localhost", 0))
        port = str(probe.getsockname()[1])
    mor = table(tmp_path / "t", **metrics("PROMETHEUS", **{"hoodie.metrics.prometheus.port": port}))
    mor.delta([row("a0", "a", 1, "y")])
    with urllib.request.urlopen(f"http://localhost:{port}/metrics", timeout=10) as answer:
        assert samples(answer.read().decode())["t_deltacommit_totalRecordsWritten"] == 1


@dataclass
class PushGateway:
    """What a push gateway has received by ``POST`` and ``DELETE /metrics/job/<job>/<label>/<value>``."""

    port: str = ""
    groups: dict[str, dict[str, float]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)


@contextmanager
def push_gateway(status: int = 202) -> Iterator[PushGateway]:
    found = PushGateway()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if status == 202:
                found.groups.setdefault(urllib.parse.unquote(self.path), {}).update(samples(body))
            self._answer()

        def do_DELETE(self) -> None:
            found.deleted.append(self.path)
            self._answer()

        def _answer(self) -> None:
            self.send_response(status)
            self.end_headers()

    with serve(Handler) as port:
        found.port = str(port)
        yield found


@pytest.fixture
def gateway() -> Iterator[PushGateway]:
    with push_gateway() as found:
        yield found


def pushing(gateway: PushGateway, **more: str) -> dict[str, str]:
    push = "hoodie.metrics.pushgateway."
    return metrics(
        "PROMETHEUS_PUSHGATEWAY",
        **{f"{push}port": gateway.port, f"{push}delete.on.shutdown": "false", **{push + k: v for k, v in more.items()}},
    )


def test_push_gateway(tmp_path: Path, gateway: PushGateway) -> None:
    options = pushing(
        gateway, **{"job.name": "etl", "random.job.name.suffix": "false", "report.labels": "env:prod, team:a"}
    )
    mor = table(tmp_path / "t", **options)
    mor.delta([row("a0", "a", 1, "y")])
    ((path, found),) = gateway.groups.items()
    assert path == "/metrics/job/etl/env/prod/team/a"
    assert found["t_deltacommit_totalRecordsWritten"] == 1
    mor.options = {**FAST, **pushing(gateway)}
    mor.delta([row("a0", "a", 2, "y")])
    (other,) = set(gateway.groups) - {path}
    assert other.startswith(f"/metrics/job/t-{prometheus_reporter._SUFFIX}")


def test_the_job_is_deleted_when_the_process_ends(gateway: PushGateway) -> None:
    options = pushing(gateway, **{"job.name": "etl", "random.job.name.suffix": "false"})
    options["hoodie.metrics.pushgateway.delete.on.shutdown"] = "true"
    code = (
        "import json, sys; from pyhudi.config import Options; from pyhudi.metrics import ActionReport; "
        "from pyhudi.metrics.publish import publish; "
        "publish(ActionReport('clean', table_name='t', instants=('1',)), Options.parse(json.loads(sys.argv[1])))"
    )
    subprocess.run([sys.executable, "-c", code, json.dumps(options)], check=True)
    assert gateway.groups == {"/metrics/job/etl": {"t_clean_duration": 0.0}}
    assert gateway.deleted == ["/metrics/job/etl"]


def test_a_gateway_that_fails_fails_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with push_gateway(500) as broken:
        table(tmp_path / "t", **pushing(broken))
    publish(ActionReport("clean", instants=("1",)), Options.parse(pushing(broken)))  # nobody listens
    assert [record.name for record in caplog.records if "were not reported" in record.message] == ["pyhudi.metrics"] * 2
