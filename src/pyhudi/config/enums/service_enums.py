"""Values of table services, the sync to catalogs and metrics."""

from __future__ import annotations

from enum import StrEnum


class CompactionTrigger(StrEnum):
    """Condition that makes a compaction due (``hoodie.compact.inline.trigger.strategy``): a number of delta commits,
    elapsed time, both, or either."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


class CleanPolicy(StrEnum):
    """Policy that selects the old file versions to retain."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


class CleanTrigger(StrEnum):
    """Trigger of cleaning."""

    NUM_COMMITS = "NUM_COMMITS"


class SyncTableStrategy(StrEnum):
    """Entries of a merge-on-read table in a synced catalog."""

    ALL = "ALL"
    RO = "RO"
    """The read-optimized rows only."""
    RT = "RT"
    """The latest rows only."""


class LayoutStrategy(StrEnum):
    """Order of clustered rows if there are several columns (``hoodie.layout.optimize.strategy``)."""

    LINEAR = "LINEAR"
    ZORDER = "ZORDER"
    HILBERT = "HILBERT"


class PartitionFilterMode(StrEnum):
    """Selection of the partitions that a clustering plan considers
    (``hoodie.clustering.plan.partition.filter.mode``)."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


class TtlStrategy(StrEnum):
    """Event from which the age of a partition is measured (``hoodie.partition.ttl.management.strategy.type``)."""

    KEEP_BY_TIME = "KEEP_BY_TIME"
    KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"


class MetricsReporter(StrEnum):
    """Destination of metrics (``hoodie.metrics.reporter.type``), named as in Apache Hudi's ``MetricsReporterType``."""

    INMEMORY = "INMEMORY"
    CONSOLE = "CONSOLE"
    SLF4J = "SLF4J"
    PROMETHEUS = "PROMETHEUS"
    PROMETHEUS_PUSHGATEWAY = "PROMETHEUS_PUSHGATEWAY"
    GRAPHITE = "GRAPHITE"
    JMX = "JMX"
    DATADOG = "DATADOG"
    CLOUDWATCH = "CLOUDWATCH"
    M3 = "M3"


class DatadogSite(StrEnum):
    """Site of Datadog (``hoodie.metrics.datadog.api.site``)."""

    US = "US"
    EU = "EU"
