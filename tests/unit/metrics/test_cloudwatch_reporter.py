"""Metrics for Amazon CloudWatch, of moto."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import moto
import pytest

from pyhudi.config import Options
from pyhudi.errors import ConfigError, SetupError
from pyhudi.metrics import ActionReport
from pyhudi.metrics import cloudwatch_reporter as reporter
from pyhudi.metrics.publish import check_metrics_options, publish

REPORT = ActionReport("clean", table_name="trips", instants=("1",), gauges={"numFilesDeleted": 7, "more": 1, "less": 2})


@pytest.fixture(autouse=True)
def region(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    reporter._client.cache_clear()
    yield
    reporter._client.cache_clear()


@pytest.fixture
def cloudwatch() -> Iterator[Any]:
    with moto.mock_aws():
        yield boto3.client(
            "cloudwatch", region_name="eu-central-1", aws_access_key_id="id", aws_secret_access_key="secret"
        )


def options(**more: str) -> Options:
    given = {
        "hoodie.metrics.on": "true",
        "hoodie.metrics.reporter.type": "CLOUDWATCH",
        "hoodie.aws.access.key": "id",
        "hoodie.aws.secret.key": "secret",
    }
    return Options.parse(given | {f"hoodie.metrics.cloudwatch.{name}": value for name, value in more.items()})


def test_gauges_arrive_in_requests_of_limited_size(cloudwatch: Any) -> None:
    opts = options(namespace="Lake", maxDatumsPerRequest="2", **{"metric.prefix": "etl"})
    check_metrics_options(opts)
    publish(REPORT, opts)
    found = cloudwatch.list_metrics(Namespace="Lake")["Metrics"]
    names = {"etl.clean.numFilesDeleted", "etl.clean.more", "etl.clean.less", "etl.clean.duration"}
    assert {one["MetricName"] for one in found} == names
    dimensions = [{"Name": "Table", "Value": "trips"}, {"Name": "Metric Type", "Value": "gauge"}]
    assert all(one["Dimensions"] == dimensions for one in found)
    now = datetime.now(UTC)
    (point,) = cloudwatch.get_metric_statistics(
        Namespace="Lake",
        MetricName="etl.clean.numFilesDeleted",
        Dimensions=dimensions,
        StartTime=now - timedelta(minutes=5),
        EndTime=now + timedelta(minutes=5),
        Period=60,
        Statistics=["Sum"],
    )["Datapoints"]
    assert point["Sum"] == 7


def test_a_region_and_a_package_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(ConfigError, match="set the environment variable AWS_REGION"):
        check_metrics_options(options())
    monkeypatch.setitem(sys.modules, "boto3.session", None)
    with pytest.raises(SetupError, match=r"pip install 'pyhudi\[cloudwatch\]'"):
        check_metrics_options(options())


def test_a_service_that_is_down_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    publish(REPORT, options())
    assert "were not reported" in caplog.text
