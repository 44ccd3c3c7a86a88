"""Names of metrics as Apache Hudi reports them: ``<prefix>.<action>.<metric>``.

Names and meanings are those of ``org.apache.hudi.metrics.HoodieMetrics`` and ``HoodieMetricsConfig`` (releases 0.15 to
1.2), which set one gauge for each after every commit, clean, rollback and archival.
"""

from __future__ import annotations

from pyhudi.config import Options, options
from pyhudi.metrics.action_report import ActionReport

_ACTIONS = {"clustering": "replacecommit"}
"""Actions that Apache Hudi reports under another name."""


def named_gauges(report: ActionReport, opts: Options) -> dict[str, float]:
    """The gauges of a report by their full names; none if nothing was done."""
    if not report.instants:
        return {}
    prefix = opts.get_typed(options.METRICS_PREFIX)
    # the separator is not to be part of the prefix
    prefix = (report.table_name if prefix is None else prefix).replace(".", "_")
    action = _ACTIONS.get(report.action, report.action)
    start = f"{prefix}.{action}." if prefix else f"{action}."
    return {
        f"{start}{name}": float(value) for name, value in {**report.gauges, "duration": report.duration_millis}.items()
    }
