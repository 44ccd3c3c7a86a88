"""Options of metrics (https://hudi.apache.org/docs/metrics) and of commit callbacks
(https://hudi.apache.org/docs/platform_services_post_commit_callback)."""

from __future__ import annotations

from pyhudi.config.enums import DatadogSite, MetricsReporter
from pyhudi.config.option import (
    choice,
    flag,
    integer,
    name_list,
    optional_choice,
    optional_integer,
    optional_text,
    text,
)

_PUSH = "hoodie.metrics.pushgateway."
_DATADOG = "hoodie.metrics.datadog."
_CLOUDWATCH = "hoodie.metrics.cloudwatch."
_CALLBACK = "hoodie.write.commit.callback."
_HTTP = _CALLBACK + "http."
_KAFKA = _CALLBACK + "kafka."

METRICS_ON = flag("hoodie.metrics.on", False, "If true, writes and table services report metrics.")
METRICS_REPORTER = choice(
    "hoodie.metrics.reporter.type",
    MetricsReporter.GRAPHITE,
    "Destination of metrics: GRAPHITE, INMEMORY, CONSOLE, SLF4J (the log `pyhudi.metrics`), PROMETHEUS (a server that "
    "Prometheus scrapes, or a text file), PROMETHEUS_PUSHGATEWAY, DATADOG or CLOUDWATCH.",
    refused=(MetricsReporter.JMX, MetricsReporter.M3),
)
METRICS_REPORTER_CLASS = optional_text(
    "hoodie.metrics.reporter.class",
    "Refused: a reporter in Java. Register a function by `pyhudi.metrics.add_listener`.",
)
GRAPHITE_HOST = text("hoodie.metrics.graphite.host", "localhost", "Host of the Graphite server.")
GRAPHITE_PORT = integer(
    "hoodie.metrics.graphite.port", 4756, "Port of the Graphite server's plaintext protocol.", minimum=1, maximum=65535
)
GRAPHITE_PREFIX = optional_text("hoodie.metrics.graphite.metric.prefix", "Prefix of metric names in Graphite.")
METRICS_PREFIX = optional_text(
    "hoodie.metrics.reporter.metricsname.prefix", "Prefix of metric names. Default: the name of the table."
)
PUSHGATEWAY_HOST = text(_PUSH + "host", "localhost", "Host of the push gateway.")
PUSHGATEWAY_PORT = integer(_PUSH + "port", 9091, "Port of the push gateway.", minimum=1, maximum=65535)
PUSHGATEWAY_JOB = text(_PUSH + "job.name", "", "Job name of pushed metrics. Default: the name of the table.")
PUSHGATEWAY_RANDOM_SUFFIX = flag(
    _PUSH + "random.job.name.suffix", True, "If true, a random number per process is appended to the job name."
)
PUSHGATEWAY_DELETE = flag(
    _PUSH + "delete.on.shutdown", True, "If true, the job is deleted from the push gateway when the process ends."
)
PUSHGATEWAY_LABELS = text(_PUSH + "report.labels", "", "Labels of all pushed metrics, as `name:value,name:value`.")
PROMETHEUS_PORT = integer(
    "hoodie.metrics.prometheus.port", 9090, "Port that Prometheus scrapes.", minimum=1, maximum=65535
)
METRICS_TEXTFILE = optional_text(
    "pyhudi.metrics.textfile",
    "File (`*.prom`) that the reporter PROMETHEUS writes for the textfile collector of Prometheus's node "
    "exporter, instead of opening a port.",
)
DATADOG_SITE = optional_choice(_DATADOG + "api.site", DatadogSite, "Site of Datadog: US or EU.")
DATADOG_URL = optional_text(
    "pyhudi.metrics.datadog.api.url",
    "Address of Datadog's API for other sites, such as `https://api.us5.datadoghq.com`, or of a proxy.",
)
DATADOG_KEY = optional_text(_DATADOG + "api.key", "API key of Datadog.")
DATADOG_TIMEOUT = integer(_DATADOG + "api.timeout.seconds", 3, "Seconds to wait for Datadog.", minimum=1)
DATADOG_PREFIX = optional_text(_DATADOG + "metric.prefix", "Prefix of metric names in Datadog.")
DATADOG_HOST = optional_text(_DATADOG + "metric.host", "Host of all metrics in Datadog.")
DATADOG_TAGS = name_list(_DATADOG + "metric.tags", "Tags of all metrics in Datadog, as `name:value,name:value`.")
CLOUDWATCH_NAMESPACE = text(_CLOUDWATCH + "namespace", "Hudi", "Namespace of metrics in CloudWatch.")
CLOUDWATCH_PREFIX = optional_text(_CLOUDWATCH + "metric.prefix", "Prefix of metric names in CloudWatch.")
CLOUDWATCH_BATCH_SIZE = integer(
    _CLOUDWATCH + "maxDatumsPerRequest", 20, "Maximum number of metrics in a request.", minimum=1, maximum=1000
)

CALLBACK_ON = flag(_CALLBACK + "on", False, "If true, each commit of a write is sent to a receiver.")
CALLBACK_CLASS = text(
    _CALLBACK + "class",
    "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback",
    "Receiver by its class name in Apache Hudi: `HoodieWriteCommitHttpCallback` or `HoodieWriteCommitKafkaCallback`.",
)
CALLBACK_URL = optional_text(_HTTP + "url", "HTTP or HTTPS URL that receives a POST request with a JSON document.")
CALLBACK_TIMEOUT = integer(_HTTP + "timeout.seconds", 30, "Seconds to wait for the URL.", minimum=1)
CALLBACK_API_KEY = text(
    _HTTP + "api.key", "hudi_write_commit_http_callback", "Value of the header `HUDI-CALLBACK-KEY`."
)
CALLBACK_HEADERS = text(_HTTP + "custom.headers", "", "Further headers, as `name:value;name:value`.")
CALLBACK_KAFKA_SERVERS = optional_text(_KAFKA + "bootstrap.servers", "Servers of Kafka, as `host:port,host:port`.")
CALLBACK_KAFKA_TOPIC = optional_text(_KAFKA + "topic", "Topic that receives a JSON document for each commit.")
CALLBACK_KAFKA_PARTITION = optional_integer(
    _KAFKA + "partition", "Partition of the topic; without it, Kafka chooses one by the name of the table."
)
CALLBACK_KAFKA_ACKS = text(_KAFKA + "acks", "all", "Servers that must have stored a document: `all`, `1` or `0`.")
CALLBACK_KAFKA_RETRIES = integer(_KAFKA + "retries", 3, "Number of retries of a document.")
