"""Values of options and table properties, spelled as in Apache Hudi."""

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
    BUCKET_RESCALE = "bucket_rescale"

    @property
    def changes_records(self) -> bool:
        """True if it changes or deletes the stored records of its keys, which it looks up."""
        return self in (Operation.UPSERT, Operation.DELETE)


class BootstrapMode(StrEnum):
    """Result of bootstrapping the files of a partition: skeleton files with the meta columns only, or complete base
    files."""

    METADATA_ONLY = "METADATA_ONLY"
    FULL_RECORD = "FULL_RECORD"


class IndexType(StrEnum):
    """Index that a write uses to find the current location of a key."""

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
        """True if a key is unique in the whole table, not only within its partition."""
        return self in _GLOBAL_INDEXES

    @property
    def is_bloom(self) -> bool:
        """True if keys are looked up with bloom filters."""
        return self in (IndexType.BLOOM, IndexType.GLOBAL_BLOOM)

    @property
    def is_record_index(self) -> bool:
        """True if keys are looked up in the record index of the metadata table."""
        return self in (
            IndexType.RECORD_INDEX,
            IndexType.GLOBAL_RECORD_LEVEL_INDEX,
            IndexType.RECORD_LEVEL_INDEX,
        )


_GLOBAL_INDEXES = frozenset(
    {
        IndexType.GLOBAL_SIMPLE,
        IndexType.GLOBAL_BLOOM,
        IndexType.RECORD_INDEX,
        IndexType.GLOBAL_RECORD_LEVEL_INDEX,
        IndexType.INMEMORY,
    }
)


class BucketIndexEngine(StrEnum):
    """Layout of buckets (``hoodie.index.bucket.engine``): a fixed number, or hash ranges that can be split and
    merged."""

    SIMPLE = "SIMPLE"
    CONSISTENT_HASHING = "CONSISTENT_HASHING"


class SortMode(StrEnum):
    """Order of the rows of a bulk insert (``hoodie.bulkinsert.sort.mode``)."""

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
    """Type of the bloom filter in base files."""

    SIMPLE = "SIMPLE"
    DYNAMIC_V0 = "DYNAMIC_V0"


class CompactionTrigger(StrEnum):
    """Condition that makes a compaction due (``hoodie.compact.inline.trigger.strategy``): a number of delta commits,
    elapsed time, both, or either."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


class MarkerType(StrEnum):
    """Storage of the markers of files that a write creates."""

    DIRECT = "DIRECT"
    TIMELINE_SERVER_BASED = "TIMELINE_SERVER_BASED"


class DynamoDbBillingMode(StrEnum):
    """Billing mode of a table of locks in DynamoDB."""

    PAY_PER_REQUEST = "PAY_PER_REQUEST"
    PROVISIONED = "PROVISIONED"


class FailedWritesPolicy(StrEnum):
    """Policy for the rollback of failed writes."""

    EAGER = "EAGER"
    """The next write rolls them back. With a single writer, every pending write of another process has failed."""
    LAZY = "LAZY"
    """They are rolled back once their heartbeat has expired."""
    NEVER = "NEVER"


class ConcurrencyMode(StrEnum):
    """Number of writers that may write to a table concurrently."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC_CONCURRENCY_CONTROL = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING_CONCURRENCY_CONTROL = "NON_BLOCKING_CONCURRENCY_CONTROL"


class CleanPolicy(StrEnum):
    """Policy that selects the old file versions to retain."""

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


class DuplicatePolicy(StrEnum):
    """Treatment by an insert of keys that exist in the table (``hoodie.datasource.insert.dup.policy``)."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class SqlInsertMode(StrEnum):
    """Treatment by SQL INSERT INTO of keys that the table already has (``hoodie.sql.insert.mode``)."""

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
    """Treatment of invalid UTF-8 in data files (``pyhudi.read.invalid.text``)."""

    FAIL = "fail"
    REPLACE = "replace"


class Fsync(StrEnum):
    """Files of a local table that are synced to disk (``pyhudi.storage.fsync``)."""

    ALL = "all"
    COMMIT = "commit"
    NONE = "none"


class PartitionValues(StrEnum):
    """Source of partition columns in a Spark query (``pyhudi.read.partition.values``)."""

    AUTO = "auto"
    PATH = "path"
    FILE = "file"


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
