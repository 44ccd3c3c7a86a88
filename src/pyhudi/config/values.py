"""The values that options and table properties choose from, spelled as Apache Hudi spells them."""

from __future__ import annotations

from enum import StrEnum


class TableType(StrEnum):
    """How updates are stored."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class MergeMode(StrEnum):
    """Which of two records with one key wins (``hoodie.record.merge.mode``)."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class PartialUpdateMode(StrEnum):
    """What a column value that says "unchanged" looks like (``hoodie.table.partial.update.mode``)."""

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
    """Zone in which instant times are told."""

    LOCAL = "LOCAL"
    UTC = "UTC"


class CdcMode(StrEnum):
    """What change data capture logs beside the operation and the key."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"


class Operation(StrEnum):
    """What a write does (``hoodie.datasource.write.operation``)."""

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


class IndexType(StrEnum):
    """How the current place of a key is found."""

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
        """Whether a key is there once in the whole table, not once in each partition."""
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
    """How buckets are laid out (``hoodie.index.bucket.engine``): a fixed number, or ranges of hashes that split."""

    SIMPLE = "SIMPLE"
    CONSISTENT_HASHING = "CONSISTENT_HASHING"


class SortMode(StrEnum):
    """How bulk_insert arranges rows (``hoodie.bulkinsert.sort.mode``)."""

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
    """What the records of a log block are written as."""

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
    """When compaction is due (``hoodie.compact.inline.trigger.strategy``): after so many delta commits, after so much
    time, after both, or after either."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


class MarkerType(StrEnum):
    """How a write marks the files that it is about to create."""

    DIRECT = "DIRECT"
    TIMELINE_SERVER_BASED = "TIMELINE_SERVER_BASED"


class FailedWritesPolicy(StrEnum):
    """When leftovers of failed writes are rolled back."""

    EAGER = "EAGER"
    LAZY = "LAZY"
    NEVER = "NEVER"


class ConcurrencyMode(StrEnum):
    """How many writers a table may have at a time."""

    SINGLE_WRITER = "SINGLE_WRITER"
    OPTIMISTIC_CONCURRENCY_CONTROL = "OPTIMISTIC_CONCURRENCY_CONTROL"
    NON_BLOCKING_CONCURRENCY_CONTROL = "NON_BLOCKING_CONCURRENCY_CONTROL"


class CleanPolicy(StrEnum):
    """Which old file versions cleaning keeps."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"


class TimeGeneratorType(StrEnum):
    """How instant times are issued."""

    WAIT_TO_ADJUST_SKEW = "WAIT_TO_ADJUST_SKEW"


class QueryType(StrEnum):
    """What a read returns (``hoodie.datasource.query.type``)."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class IncrementalFormat(StrEnum):
    """What an incremental query returns."""

    LATEST_STATE = "latest_state"
    CDC = "cdc"


class ReadMergeType(StrEnum):
    """Whether a snapshot of a merge-on-read table merges log records (``hoodie.datasource.merge.type``)."""

    PAYLOAD_COMBINE = "payload_combine"
    SKIP_MERGE = "skip_merge"


class HollowPolicy(StrEnum):
    """What a query does at a pending instant between completed ones."""

    FAIL = "FAIL"
    BLOCK = "BLOCK"
    USE_TRANSITION_TIME = "USE_TRANSITION_TIME"


class DuplicatePolicy(StrEnum):
    """What insert does with keys that the table has already (``hoodie.datasource.insert.dup.policy``)."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class TimestampType(StrEnum):
    """What the input of the timestamp key generator is."""

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
    """Who reads base files for a Spark query (``pyhudi.read.engine``)."""

    AUTO = "auto"
    SPARK = "spark"
    ARROW = "arrow"


class PartitionValues(StrEnum):
    """Where a Spark query takes partition columns from (``pyhudi.read.partition.values``)."""

    AUTO = "auto"
    PATH = "path"
    FILE = "file"
