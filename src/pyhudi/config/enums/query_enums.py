"""Values that define a query."""

from __future__ import annotations

from enum import StrEnum


class QueryType(StrEnum):
    """Query type (``hoodie.datasource.query.type``)."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class IncrementalFormat(StrEnum):
    """Format of the result of an incremental query."""

    LATEST_STATE = "latest_state"
    CDC = "cdc"


class ReadMergeType(StrEnum):
    """Treatment of log records in a snapshot query of a merge-on-read table (``hoodie.datasource.merge.type``)."""

    PAYLOAD_COMBINE = "payload_combine"
    SKIP_MERGE = "skip_merge"


class HollowPolicy(StrEnum):
    """Behaviour of a query if an instant between completed ones is pending."""

    FAIL = "FAIL"
    BLOCK = "BLOCK"
    USE_TRANSITION_TIME = "USE_TRANSITION_TIME"


class ReadEngine(StrEnum):
    """Reader of base files in a Spark query (``pyhudi.read.engine``)."""

    AUTO = "auto"
    SPARK = "spark"
    ARROW = "arrow"


class InvalidText(StrEnum):
    """Treatment of invalid UTF-8 in data files (``pyhudi.read.invalid.text``)."""

    FAIL = "fail"
    REPLACE = "replace"


class PartitionValues(StrEnum):
    """Source of partition columns in a Spark query (``pyhudi.read.partition.values``)."""

    AUTO = "auto"
    PATH = "path"
    FILE = "file"
