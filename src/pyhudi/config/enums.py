"""The values that options and table properties choose from, spelled as Apache Hudi spells them."""

from __future__ import annotations

from enum import StrEnum


class TableType(StrEnum):
    """Storage type of a table, which decides how updates are stored."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class MergeMode(StrEnum):
    """Rule that picks the record to keep among records with one key (``hoodie.record.merge.mode``)."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class PartialUpdateMode(StrEnum):
    """Mark of a column value that means "unchanged" (``hoodie.table.partial.update.mode``)."""

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
    """Content of change data capture logs beside the operation and the key."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


class Operation(StrEnum):
    """Write operation (``hoodie.datasource.write.operation``)."""

    UPSERT = "upsert"
    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"
    UPSERT_PREPPED = "upsert_prepped"
    INSERT_PREPPED = "insert_prepped"
    BULK_INSERT_PREPPED = "bulk_insert_prepped"
    DELETE_PREPPED = "delete_prepped"
    BOOTSTRAP = "bootstrap"


class BootstrapMode(StrEnum):
    """What a bootstrap makes of a partition's files: base files of meta columns that go with them, or whole ones."""

    METADATA_ONLY = "METADATA_ONLY"
    FULL_RECORD = "FULL_RECORD"


class IndexType(StrEnum):
    """Index by which a write finds the current location of a key."""

    SIMPLE = "SIMPLE"
    GLOBAL_SIMPLE = "GLOBAL_SIMPLE"
    BLOOM = "BLOOM"
    GLOBAL_BLOOM = "GLOBAL_BLOOM"
    BUCKET = "BUCKET"
    RECORD_INDEX = "RECORD_INDEX"
    GLOBAL_RECORD_LEVEL_INDEX = "GLOBAL_RECORD_LEVEL_INDEX"
    RECORD_LEVEL_INDEX = "RECORD_LEVEL_INDEX"
    INMEMORY = "INMEMORY"
    FLINK_STATE = "FLINK_STATE"

    @property
    def is_global(self) -> bool:
        """True if a key is there once in the whole table, not once in each partition."""
        return self in _GLOBAL_INDEXES


_GLOBAL_INDEXES = frozenset(
    {
        IndexType.GLOBAL_SIMPLE,
        IndexType.GLOBAL_BLOOM,
        IndexType.RECORD_INDEX,
        IndexType.GLOBAL_RECORD_LEVEL_INDEX,
        IndexType.INMEMORY,
    }
)


class BucketEngine(StrEnum):
    """Layout of buckets (``hoodie.index.bucket.engine``): a fixed number, or ranges of hashes that split."""

    SIMPLE = "SIMPLE"
    CONSISTENT_HASHING = "CONSISTENT_HASHING"


class SortMode(StrEnum):
    """Arrangement of the rows of a bulk insert (``hoodie.bulkinsert.sort.mode``)."""

    NONE = "NONE"
    GLOBAL_SORT = "GLOBAL_SORT"
    PARTITION_SORT = "PARTITION_SORT"
    PARTITION_PATH_REPARTITION = "PARTITION_PATH_REPARTITION"
    PARTITION_PATH_REPARTITION_AND_SORT = "PARTITION_PATH_REPARTITION_AND_SORT"


class ParquetCodec(StrEnum):
    """Compression of parquet pages."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    GZIP = "gzip"
    LZ4 = "lz4"
    LZ4_RAW = "lz4_raw"
    BROTLI = "brotli"
    UNCOMPRESSED = "uncompressed"


class LogBlockFormat(StrEnum):
    """Encoding of the records of a log block."""

    AVRO = "avro"
    PARQUET = "parquet"
    HFILE = "hfile"


class OrcCodec(StrEnum):
    """Compression of ORC stripes."""

    ZLIB = "ZLIB"
    ZSTD = "ZSTD"
    SNAPPY = "SNAPPY"
    LZ4 = "LZ4"
    NONE = "NONE"


class BloomType(StrEnum):
    """Kind of the bloom filter in base files."""

    SIMPLE = "SIMPLE"
    DYNAMIC_V0 = "DYNAMIC_V0"


class CompactionTrigger(StrEnum):
    """Condition for a compaction to be due (``hoodie.compact.inline.trigger.strategy``): a number of delta commits, an
    elapsed time, both, or either."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


class MarkerType(StrEnum):
    """Storage of the markers that announce the files of a write."""

    DIRECT = "DIRECT"
    TIMELINE_SERVER_BASED = "TIMELINE_SERVER_BASED"


class FailedWritesPolicy(StrEnum):
    """Time at which failed writes are rolled back."""

    EAGER = "EAGER"
    """By the next write: there is one writer, so every pending write of another has failed."""
    LAZY = "LAZY"
    """When the heartbeat of the write has stopped."""
    NEVER = "NEVER"


class ConcurrencyMode(StrEnum):
    """Number of writers that a table may have at a time."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC_CONCURRENCY_CONTROL = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING_CONCURRENCY_CONTROL = "NON_BLOCKING_CONCURRENCY_CONTROL"


class CleanPolicy(StrEnum):
    """Rule for the old file versions that cleaning keeps."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


class CleanTrigger(StrEnum):
    """Trigger of cleaning."""

    NUM_COMMITS = "NUM_COMMITS"


class TimeGeneratorType(StrEnum):
    """Source of instant times."""

    WAIT_TO_ADJUST_SKEW = "WAIT_TO_ADJUST_SKEW"


class QueryType(StrEnum):
    """Kind of rows that a read returns (``hoodie.datasource.query.type``)."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class IncrementalFormat(StrEnum):
    """Form of the rows that an incremental query returns."""

    LATEST_STATE = "latest_state"
    CDC = "cdc"


class ReadMergeType(StrEnum):
    """Handling of log records in a snapshot of a merge-on-read table (``hoodie.datasource.merge.type``)."""

    PAYLOAD_COMBINE = "payload_combine"
    SKIP_MERGE = "skip_merge"


class HollowPolicy(StrEnum):
    """Behaviour of a query at a pending instant between completed ones."""

    FAIL = "FAIL"
    BLOCK = "BLOCK"
    USE_TRANSITION_TIME = "USE_TRANSITION_TIME"


class DuplicatePolicy(StrEnum):
    """Handling of keys that the table already has by an insert (``hoodie.datasource.insert.dup.policy``)."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class SqlInsertMode(StrEnum):
    """What SQL INSERT INTO does with keys that the table already has (``hoodie.sql.insert.mode``)."""

    UPSERT = "upsert"
    STRICT = "strict"
    NON_STRICT = "non-strict"


class TimestampType(StrEnum):
    """Type of the input of the timestamp key generator."""

    UNIX_TIMESTAMP = "UNIX_TIMESTAMP"
    DATE_STRING = "DATE_STRING"
    MIXED = "MIXED"
    EPOCHMILLISECONDS = "EPOCHMILLISECONDS"
    EPOCHMICROSECONDS = "EPOCHMICROSECONDS"
    SCALAR = "SCALAR"


class TimeUnit(StrEnum):
    """Unit of a SCALAR timestamp."""

    NANOSECONDS = "NANOSECONDS"
    MICROSECONDS = "MICROSECONDS"
    MILLISECONDS = "MILLISECONDS"
    SECONDS = "SECONDS"
    MINUTES = "MINUTES"
    HOURS = "HOURS"
    DAYS = "DAYS"


class OutputTimestampType(StrEnum):
    """Physical type of timestamps in parquet (``hoodie.parquet.outputtimestamptype``)."""

    TIMESTAMP_MICROS = "TIMESTAMP_MICROS"
    TIMESTAMP_MILLIS = "TIMESTAMP_MILLIS"
    INT96 = "INT96"


class ReadEngine(StrEnum):
    """Reader of base files in a Spark query (``pyhudi.read.engine``)."""

    AUTO = "auto"
    SPARK = "spark"
    ARROW = "arrow"


class InvalidText(StrEnum):
    """Handling of text in data files that is not UTF-8 (``pyhudi.read.invalid.text``)."""

    FAIL = "fail"
    REPLACE = "replace"


class Fsync(StrEnum):
    """Parts of a local table that are synced to disk (``pyhudi.storage.fsync``)."""

    ALL = "all"
    COMMIT = "commit"
    NONE = "none"


class PartitionValues(StrEnum):
    """Source of partition columns in a Spark query (``pyhudi.read.partition.values``)."""

    AUTO = "auto"
    PATH = "path"
    FILE = "file"


class LayoutStrategy(StrEnum):
    """Order of clustered rows by several columns (``hoodie.layout.optimize.strategy``)."""

    LINEAR = "LINEAR"
    ZORDER = "ZORDER"
    HILBERT = "HILBERT"


class PartitionFilterMode(StrEnum):
    """Choice of the partitions that a clustering plan looks at (``hoodie.clustering.plan.partition.filter.mode``)."""

    NONE = "NONE"
    RECENT_DAYS = "RECENT_DAYS"
    SELECTED_PARTITIONS = "SELECTED_PARTITIONS"
    DAY_ROLLING = "DAY_ROLLING"


class TtlStrategy(StrEnum):
    """What the age of a partition is counted from (``hoodie.partition.ttl.management.strategy.type``)."""

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
