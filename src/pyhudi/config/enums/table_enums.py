"""Values that define a table: its type, formats and merging of records."""

from __future__ import annotations

from enum import StrEnum


class TableType(StrEnum):
    """Table type, which determines how updates are stored."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class MergeMode(StrEnum):
    """Rule that selects the record to keep among records with the same key (``hoodie.record.merge.mode``)."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class PartialUpdateMode(StrEnum):
    """Representation of an unchanged column value (``hoodie.table.partial.update.mode``)."""

    IGNORE_DEFAULTS = "IGNORE_DEFAULTS"
    FILL_UNAVAILABLE = "FILL_UNAVAILABLE"


class FileFormat(StrEnum):
    """Format of base files."""

    PARQUET = "PARQUET"
    ORC = "ORC"
    HFILE = "HFILE"
    HOODIE_LOG = "HOODIE_LOG"
    LANCE = "LANCE"


class TimelineTimezone(StrEnum):
    """Time zone of instant times."""

    LOCAL = "LOCAL"
    UTC = "UTC"


class CdcMode(StrEnum):
    """Content of change data capture logs in addition to operation and key."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


class BucketIndexEngine(StrEnum):
    """Layout of buckets (``hoodie.index.bucket.engine``): a fixed number, or hash ranges that can be split and
    merged."""

    SIMPLE = "SIMPLE"
    CONSISTENT_HASHING = "CONSISTENT_HASHING"


class BootstrapMode(StrEnum):
    """Result of bootstrapping the files of a partition: skeleton files with the meta columns only, or complete base
    files."""

    METADATA_ONLY = "METADATA_ONLY"
    FULL_RECORD = "FULL_RECORD"
