"""Options of metrics (https://hudi.apache.org/docs/metrics)."""

from __future__ import annotations

from pyhudi.config.enums import MetricsReporter
from pyhudi.config.option import choice, flag, integer, maybe_text, text

_PUSH = "hoodie.metrics.pushgateway."

METRICS_ON = flag("hoodie.metrics.on", False, "Whether writes and table services report metrics.")
METRICS_REPORTER = choice(
    "hoodie.metrics.reporter.type",
    MetricsReporter.GRAPHITE,
    "Where metrics go: INMEMORY, CONSOLE, SLF4J (the log `pyhudi.metrics`), PROMETHEUS (a server that Prometheus "
    "scrapes, or a text file) or PROMETHEUS_PUSHGATEWAY. Others of Apache Hudi's, its default among them, are refused.",
)
METRICS_PREFIX = maybe_text(
    "hoodie.metrics.reporter.metricsname.prefix", "What metric names begin with; the table's name when not given."
)
PUSHGATEWAY_HOST = text(_PUSH + "host", "localhost", "Host of the push gateway.")
PUSHGATEWAY_PORT = integer(_PUSH + "port", 9091, "Port of the push gateway.", least=1, most=65535)
PUSHGATEWAY_JOB = text(_PUSH + "job.name", "", "Job that metrics are pushed under; the table's name when empty.")
PUSHGATEWAY_RANDOM_SUFFIX = flag(
    _PUSH + "random.job.name.suffix", True, "Whether a number at random, one for each process, ends the job's name."
)
PUSHGATEWAY_DELETE = flag(
    _PUSH + "delete.on.shutdown", True, "Whether the job is deleted from the push gateway when the process ends."
)
PUSHGATEWAY_LABELS = text(
    _PUSH + "report.labels", "", "Labels of all metrics that are pushed, as `name:value,name:value`."
)
PROMETHEUS_PORT = integer("hoodie.metrics.prometheus.port", 9090, "Port that Prometheus scrapes.", least=1, most=65535)
METRICS_TEXTFILE = maybe_text(
    "pyhudi.metrics.textfile",
    "File (`*.prom`) that the reporter PROMETHEUS writes for the textfile collector of Prometheus's node exporter, "
    "instead of opening a port.",
)
