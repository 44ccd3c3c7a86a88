"""Names of metrics as in Apache Hudi: ``<prefix>.<action>.<metric>``.

Names and meanings are those of ``org.apache.hudi.metrics.HoodieMetrics`` and ``HoodieMetricsConfig`` (release 1.2),
which set gauges after every commit, clean, rollback and archival.
"""

from __future__ import annotations

from pyhudi.config import Options, options
from pyhudi.metrics.action_report import ActionReport


def named_gauges(report: ActionReport, opts: Options) -> dict[str, float]:
    """Return the gauges of a report by their full names; none if there was nothing to do."""
    if not report.instants:
        return {}
    prefix = opts.get_typed(options.METRICS_PREFIX)
    # The separator must not be part of the prefix.
    prefix = (report.table_name if prefix is None else prefix).replace(".", "_")
    start = f"{prefix}.{report.action}." if prefix else f"{report.action}."
    return {
        f"{start}{name}": float(value) for name, value in {**report.gauges, "duration": report.duration_millis}.items()
    }
