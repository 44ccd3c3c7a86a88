"""Publication of reports: one line in the log, the callbacks, and the reporter in the options."""

from __future__ import annotations

import logging

from pyhudi.config import Options, options
from pyhudi.config.enums import MetricsReporter
from pyhudi.errors import ConfigError
from pyhudi.metrics.action_report import ActionReport
from pyhudi.metrics.cloudwatch_reporter import check_cloudwatch, send_to_cloudwatch
from pyhudi.metrics.datadog_reporter import check_datadog, send_to_datadog
from pyhudi.metrics.graphite_reporter import send_to_graphite
from pyhudi.metrics.hudi_metric_names import named_gauges
from pyhudi.metrics.listeners import notify
from pyhudi.metrics.memory_reporter import keep_in_memory
from pyhudi.metrics.prometheus_reporter import check_prometheus, expose_gauges, push

_REFUSED = (MetricsReporter.JMX, MetricsReporter.M3)
_log = logging.getLogger("pyhudi.actions")
_metrics_log = logging.getLogger("pyhudi.metrics")


def check_metrics_options(opts: Options) -> None:
    """Check the options of metrics, before anything is done.

    Raises:
        ConfigError: The reporter is not supported, or its options are invalid.
        SetupError: The reporter requires a package that is not installed.
    """
    if not opts.get_typed(options.METRICS_ON):
        return
    java_class = opts.get_typed(options.METRICS_REPORTER_CLASS)
    if java_class:
        raise ConfigError(
            f"{options.METRICS_REPORTER_CLASS.key}={java_class} is not supported, because it is a Java class; register "
            "a function with pyhudi.metrics.add_listener(), and remove the option"
        )
    match opts.get_typed(options.METRICS_REPORTER):
        case MetricsReporter.PROMETHEUS | MetricsReporter.PROMETHEUS_PUSHGATEWAY:
            check_prometheus(opts)
        case MetricsReporter.DATADOG:
            check_datadog(opts)
        case MetricsReporter.CLOUDWATCH:
            check_cloudwatch(opts)
        case reporter if reporter in _REFUSED:
            names = ", ".join(each for each in MetricsReporter if each not in _REFUSED)
            raise ConfigError(
                f"{options.METRICS_REPORTER.key}={reporter} is not supported ({names}); set one of these, or register "
                "a function with pyhudi.metrics.add_listener() and send its reports, or set "
                f"{options.METRICS_ON.key}=false"
            )


def publish(report: ActionReport, opts: Options | None = None) -> None:
    """Log a report, call the listeners of the process, and report its metrics, if ``hoodie.metrics.on``. Failures are
    logged, because the action is completed."""
    level = logging.INFO if report.instants else logging.DEBUG
    try:
        _log.log(level, "%s", report.line(), extra={"pyhudi_report": report})
        notify(report)
        if opts is not None and opts.get_typed(options.METRICS_ON):
            _send(report, opts)
    except Exception as failure:
        _metrics_log.warning("metrics of %s at %s were not reported: %s", report.action, report.table, failure)


def _send(report: ActionReport, opts: Options) -> None:
    values = named_gauges(report, opts)
    if not values:
        return
    match opts.get_typed(options.METRICS_REPORTER):
        case MetricsReporter.GRAPHITE:
            send_to_graphite(values, opts)
        case MetricsReporter.INMEMORY:
            keep_in_memory(values)
        case MetricsReporter.CONSOLE:
            print("\n".join(f"{name} = {value:g}" for name, value in values.items()))
        case MetricsReporter.SLF4J:
            for name, value in values.items():
                _metrics_log.info("type=GAUGE, name=%s, value=%g", name, value)
        case MetricsReporter.PROMETHEUS:
            expose_gauges(values, opts)
        case MetricsReporter.PROMETHEUS_PUSHGATEWAY:
            push(values, opts, report.table_name)
        case MetricsReporter.DATADOG:
            send_to_datadog(values, opts)
        case MetricsReporter.CLOUDWATCH:
            send_to_cloudwatch(values, opts)
        case reporter:
            raise ConfigError(f"{options.METRICS_REPORTER.key}={reporter} is not supported")
