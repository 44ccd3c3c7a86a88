"""Metrics for Amazon CloudWatch, with the library boto3.

As in Apache Hudi's reporter, the first part of a metric's name, usually the table, is the dimension ``Table``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyhudi.config import Options, options
from pyhudi.config.aws_settings import aws_credentials, aws_region
from pyhudi.errors import ConfigError, SetupError

if TYPE_CHECKING:
    from botocore.client import BaseClient

_TIMEOUT_SECONDS = 5


def check_cloudwatch(opts: Options) -> None:
    """Check the requirements of the reporter.

    Raises:
        ConfigError: The region or the credentials are incomplete.
        SetupError: The package boto3 is not installed.
    """
    _client_for(opts)


def send_to_cloudwatch(values: Mapping[str, float], opts: Options) -> None:
    """Send gauges to CloudWatch in the region of the AWS configuration. Errors are those of boto3."""
    client = _client_for(opts)
    data = metric_data(values, opts.get_typed(options.CLOUDWATCH_PREFIX), datetime.now(UTC))
    namespace, size = opts.get_typed(options.CLOUDWATCH_NAMESPACE), opts.get_typed(options.CLOUDWATCH_BATCH_SIZE)
    for first in range(0, len(data), size):
        client.put_metric_data(Namespace=namespace, MetricData=data[first : first + size])


def metric_data(values: Mapping[str, float], prefix: str | None, timestamp: datetime) -> list[dict[str, Any]]:
    """Return gauges as the argument of the request PutMetricData."""
    start = f"{prefix}." if prefix else ""
    data = []
    for name, value in values.items():
        table, _, metric = name.partition(".")
        data.append(
            {
                "MetricName": start + metric,
                "Dimensions": [{"Name": "Table", "Value": table}, {"Name": "Metric Type", "Value": "gauge"}],
                "Timestamp": timestamp,
                "Value": value,
                "Unit": "None",
            }
        )
    return data


def _client_for(opts: Options) -> BaseClient:
    return _client(aws_region(), tuple(aws_credentials(opts).items()))


@lru_cache(maxsize=8)
def _client(region: str | None, credentials: tuple[tuple[str, str], ...]) -> BaseClient:
    try:
        from boto3.session import Session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise SetupError(
            f"{options.METRICS_REPORTER.key}=CLOUDWATCH requires the package boto3: pip install 'pyhudi[cloudwatch]'"
        ) from error
    limits = Config(connect_timeout=_TIMEOUT_SECONDS, read_timeout=_TIMEOUT_SECONDS, retries={"total_max_attempts": 1})
    try:
        return Session().client("cloudwatch", region_name=region, config=limits, **dict(credentials))
    except (BotoCoreError, ValueError) as error:
        raise ConfigError(f"cannot connect to CloudWatch ({error}); set the environment variable AWS_REGION") from error
