"""Values of concurrent writers: locks, markers, failed writes, instant times, durability."""

from __future__ import annotations

from enum import StrEnum


class ConcurrencyMode(StrEnum):
    """Number of writers that may write to a table concurrently."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC_CONCURRENCY_CONTROL = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING_CONCURRENCY_CONTROL = "NON_BLOCKING_CONCURRENCY_CONTROL"


class FailedWritesPolicy(StrEnum):
    """Policy for the rollback of failed writes."""

    EAGER = "EAGER"
    """The next write rolls them back. With a single writer, every pending write of another process has failed."""
    LAZY = "LAZY"
    """They are rolled back once their heartbeat has expired."""
    NEVER = "NEVER"


class MarkerType(StrEnum):
    """Storage of the markers of files that a write creates."""

    DIRECT = "DIRECT"
    TIMELINE_SERVER_BASED = "TIMELINE_SERVER_BASED"


class TimeGeneratorType(StrEnum):
    """Source of instant times."""

    WAIT_TO_ADJUST_SKEW = "WAIT_TO_ADJUST_SKEW"


class DynamoDbBillingMode(StrEnum):
    """Billing mode of a table of locks in DynamoDB."""

    PAY_PER_REQUEST = "PAY_PER_REQUEST"
    PROVISIONED = "PROVISIONED"


class Fsync(StrEnum):
    """Files of a local table that are synced to disk (``pyhudi.storage.fsync``)."""

    ALL = "all"
    COMMIT = "commit"
    NONE = "none"
