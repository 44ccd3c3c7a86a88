"""Options of transactions and table services: instant times, locks, markers, rollback, compaction and the metadata
table."""

from __future__ import annotations

from pyhudi.config.enums import (
    CompactionTrigger,
    ConcurrencyMode,
    DynamoDbBillingMode,
    FailedWritesPolicy,
)
from pyhudi.config.option import (
    choice,
    flag,
    integer,
    name_list,
    optional_flag,
    optional_integer,
    optional_text,
    text,
)

_LOCK = "hoodie.write.lock."

# --- instant times -------------------------------------------------------------------------------------------------

TIME_GENERATOR_MAX_CLOCK_SKEW_MS = integer(
    "hoodie.time.generator.max_expected_clock_skew_ms",
    200,
    "Maximum clock skew between writers; after an instant time is issued, the next one waits for this time. Unless it "
    "is set, a single writer whose lock is that of its machine does not wait, as there is one clock.",
)

# --- concurrency ---------------------------------------------------------------------------------------------------

CONCURRENCY_MODE = choice(
    "hoodie.write.concurrency.mode",
    ConcurrencyMode.SINGLE_WRITER,
    "Number of writers that may write to the table concurrently. Non-blocking writers append log files to the same "
    "file groups of a merge-on-read table with the simple bucket index (from table version 8 on).",
)
LOCK_PROVIDER = optional_text(
    _LOCK + "provider",
    "Lock provider by Apache Hudi's class name. Default: a lock of the local file system for the writers of one "
    "machine; for several writers (`hoodie.write.concurrency.mode`) on an object store, the "
    "StorageBasedLockProvider.",
)
LOCK_WAIT_TIME_MS = integer(_LOCK + "wait_time_ms", 60_000, "Time limit of one attempt to acquire the lock.")
LOCK_RETRY_WAIT_MS = integer(_LOCK + "wait_time_ms_between_retry", 1000, "Wait between retries within one attempt.")
LOCK_CLIENT_NUM_RETRIES = integer(
    _LOCK + "client.num_retries", 50, "Number of further attempts to acquire the lock after the first one."
)
LOCK_CLIENT_RETRY_WAIT_MS = integer(
    _LOCK + "client.wait_time_ms_between_retry", 5000, "Wait between attempts to acquire the lock."
)
LOCK_FILESYSTEM_PATH = optional_text(_LOCK + "filesystem.path", "Folder of the lock file. Default: .hoodie.")
LOCK_FILESYSTEM_EXPIRE_MIN = integer(
    _LOCK + "filesystem.expire", 0, "Minutes after which a lock file is considered stale; 0: never."
)
LOCK_STORAGE_VALIDITY_SECS = integer(
    _LOCK + "storage.validity.timeout.secs",
    300,
    "Seconds for which a storage-based lock is valid without a renewal.",
    minimum=1,
)
LOCK_STORAGE_RENEW_SECS = integer(
    _LOCK + "storage.renew.interval.secs", 30, "Seconds between renewals of a storage-based lock.", minimum=1
)
LOCK_ZOOKEEPER_URL = optional_text(
    _LOCK + "zookeeper.url", "Addresses of the ZooKeeper servers, `host:port,…`, for the ZookeeperBasedLockProvider."
)
LOCK_ZOOKEEPER_PORT = optional_integer(
    _LOCK + "zookeeper.port", "Port of servers whose address has none. Default: 2181.", minimum=1
)
LOCK_ZOOKEEPER_BASE_PATH = optional_text(
    _LOCK + "zookeeper.base_path", "Path of ZooKeeper below which locks are; the same for all writers of a table."
)
LOCK_ZOOKEEPER_LOCK_KEY = optional_text(
    _LOCK + "zookeeper.lock_key", "Name of the lock below the base path. Default: the name of the table."
)
LOCK_ZOOKEEPER_SESSION_TIMEOUT_MS = integer(
    _LOCK + "zookeeper.session_timeout_ms",
    60_000,
    "Time after which ZooKeeper releases the lock of a process that no longer responds.",
    minimum=1,
)
LOCK_ZOOKEEPER_CONNECTION_TIMEOUT_MS = integer(
    _LOCK + "zookeeper.connection_timeout_ms", 15_000, "Time limit of a connection to ZooKeeper.", minimum=1
)
LOCK_HIVE_METASTORE_URIS = optional_text(
    _LOCK + "hivemetastore.uris",
    "Addresses of the Hive metastore for the HiveMetastoreBasedLockProvider, `thrift://host:port,…`. Default: "
    "`hive.metastore.uris` of hive-site.xml.",
)
LOCK_HIVE_METASTORE_DATABASE = optional_text(
    _LOCK + "hivemetastore.database", "Database of the lock in the Hive metastore; the same for all writers of a table."
)
LOCK_HIVE_METASTORE_TABLE = optional_text(
    _LOCK + "hivemetastore.table",
    "Table of the lock in the Hive metastore; the same for all writers of a table. It need not exist.",
)
LOCK_HEARTBEAT_INTERVAL_MS = integer(
    _LOCK + "heartbeat_interval_ms",
    60_000,
    "Interval of the heartbeats of a lock in the Hive metastore. For storage-based locks, "
    "`hoodie.write.lock.storage.renew.interval.secs` applies.",
    minimum=1,
)
LOCK_DYNAMODB_TABLE = text(
    _LOCK + "dynamodb.table",
    "hudi_locks",
    "Table of locks in DynamoDB, for the DynamoDBBasedLockProvider. It is created if it does not exist.",
)
LOCK_DYNAMODB_PARTITION_KEY = optional_text(
    _LOCK + "dynamodb.partition_key",
    "Name of the lock in the table of locks; the same for all writers of a table. Default: the name of the table.",
)
LOCK_DYNAMODB_REGION = optional_text(
    _LOCK + "dynamodb.region",
    "Region of the table of locks. Default: the environment variable AWS_REGION, or us-east-1.",
)
LOCK_DYNAMODB_ENDPOINT_URL = optional_text(
    _LOCK + "dynamodb.endpoint_url", "Address of DynamoDB. Default: that of the region."
)
LOCK_DYNAMODB_BILLING_MODE = choice(
    _LOCK + "dynamodb.billing_mode",
    DynamoDbBillingMode.PAY_PER_REQUEST,
    "Billing mode of a table of locks that is created.",
)
LOCK_DYNAMODB_READ_CAPACITY = integer(
    _LOCK + "dynamodb.read_capacity", 20, "Read capacity of a table of locks that is PROVISIONED.", minimum=1
)
LOCK_DYNAMODB_WRITE_CAPACITY = integer(
    _LOCK + "dynamodb.write_capacity", 10, "Write capacity of a table of locks that is PROVISIONED.", minimum=1
)
LOCK_DYNAMODB_TABLE_CREATION_TIMEOUT = integer(
    _LOCK + "dynamodb.table_creation_timeout",
    120_000,
    "Milliseconds to wait until a new table of locks can be used.",
    minimum=1,
)
AWS_ACCESS_KEY = optional_text(
    "hoodie.aws.access.key",
    "Access key for locks in DynamoDB and for AWS Glue. Default: the credentials that boto3 finds (environment, "
    "profile, role).",
)
AWS_SECRET_KEY = optional_text("hoodie.aws.secret.key", "Secret key of `hoodie.aws.access.key`.")
AWS_SESSION_TOKEN = optional_text("hoodie.aws.session.token", "Session token of `hoodie.aws.access.key`.")
AWS_ROLE_ARN = optional_text("hoodie.aws.role.arn", "Refused: set `role_arn` in a profile of `~/.aws/config`.")
CONFLICT_RESOLUTION_STRATEGY = text(
    _LOCK + "conflict.resolution.strategy",
    "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy",
    "Strategy that detects conflicts between commits, by Apache Hudi's class name.",
)
NUM_RETRIES_ON_CONFLICT = integer(
    "hoodie.write.num.retries.on.conflict.failures",
    0,
    "Number of retries of a write after a conflict. A DataFrame read from the table itself is not written again.",
)
HEARTBEAT_INTERVAL_MS = integer(
    "hoodie.client.heartbeat.interval_in_ms", 60_000, "Interval between heartbeats of a writer.", minimum=1
)
HEARTBEAT_TOLERABLE_MISSES = integer(
    "hoodie.client.heartbeat.tolerable.misses",
    2,
    "Number of missed heartbeats after which a writer is considered failed.",
)

# --- markers and rollback ------------------------------------------------------------------------------------------

FAILED_WRITES_POLICY = choice(
    "hoodie.clean.failed.writes.policy",
    FailedWritesPolicy.EAGER,
    "Policy for the rollback of failed writes: by the next write, by cleaning, or never.",
    any_case=False,
)
FAIL_ON_DUPLICATE_DATA_FILES = flag(
    "hoodie.fail.job.on.duplicate.data.file.detection",
    False,
    "If true, a file left behind by a retried task fails the write instead of being deleted.",
)

ROLLBACK_BACKUP_ENABLED = flag(
    "hoodie.rollback.instant.backup.enabled",
    False,
    "If true, rollbacks and restores copy the timeline files of the writes that they undo.",
)
ROLLBACK_BACKUP_DIR = text(
    "hoodie.rollback.instant.backup.dir", ".rollback_backup", "Folder of these copies, relative to .hoodie."
)

# --- services after a write ----------------------------------------------------------------------------------------

TABLE_SERVICES_ENABLED = flag("hoodie.table.services.enabled", True, "If true, a write may run table services.")
FAIL_ON_INLINE_SERVICE_ERROR = flag(
    "hoodie.fail.writes.on.inline.table.service.exception",
    True,
    "If true, an error in a table service after a commit is raised, if false, it is logged. The write stays "
    "committed in both cases.",
)

# --- compaction ----------------------------------------------------------------------------------------------------

COMPACT_INLINE = flag(
    "hoodie.compact.inline",
    False,
    "If true, a write runs compaction after its commit if it is due. If not set, writes to merge-on-read tables "
    "do so unless an option that leaves compaction to another process is true.",
)
COMPACT_ASYNC = flag(
    "hoodie.datasource.compaction.async.enable",
    True,
    "If true, compaction is left to another process. Streaming writes do so by default.",
)
COMPACT_SCHEDULE_INLINE = flag(
    "hoodie.compact.schedule.inline",
    False,
    "If true, a write plans a compaction after its commit; another process executes it.",
)
COMPACT_TRIGGER = choice(
    "hoodie.compact.inline.trigger.strategy",
    CompactionTrigger.NUM_COMMITS,
    "Trigger of compaction.",
)
COMPACT_MAX_DELTA_COMMITS = integer(
    "hoodie.compact.inline.max.delta.commits", 5, "Number of delta commits after which compaction is due.", minimum=1
)
COMPACT_MAX_DELTA_SECONDS = integer(
    "hoodie.compact.inline.max.delta.seconds",
    3600,
    "Seconds since the last compaction, or since the first delta commit, after which compaction is due.",
    minimum=1,
)
COMPACTION_STRATEGY = text(
    "hoodie.compaction.strategy",
    "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",
    "Strategies that select the file slices to compact, by Apache Hudi's class names. Several are separated by "
    "commas and applied one after the other.",
)
COMPACTION_TARGET_IO = integer(
    "hoodie.compaction.target.io", 512_000, "Approximate limit in megabytes on what one compaction reads and writes."
)
COMPACTION_LOG_SIZE_THRESHOLD = integer(
    "hoodie.compaction.logfile.size.threshold", 0, "Minimum size in bytes of the log files of a compacted file slice."
)
COMPACTION_LOG_NUM_THRESHOLD = integer(
    "hoodie.compaction.logfile.num.threshold", 0, "Minimum number of log files of a compacted file slice."
)
COMPACTION_DAY_PARTITIONS = integer(
    "hoodie.compaction.daybased.target.partitions", 10, "Number of days whose partitions day-based strategies select."
)
COMPACTION_PARTITION_REGEX = optional_text(
    "hoodie.compaction.partition.path.regex",
    "Regular expression for the partition paths that PartitionRegexBasedCompactionStrategy compacts.",
)
COMPACTION_MEMORY = optional_integer(
    "hoodie.memory.compaction.max.size",
    "Memory in bytes for the log records of one file slice during compaction before they are spilled to disk. "
    "Default: hoodie.memory.merge.max.size.",
)
LOG_COMPACTION_INLINE = flag(
    "hoodie.log.compaction.inline", False, "If true, a write runs log compaction after its commit."
)
LOG_COMPACTION_BLOCKS_THRESHOLD = integer(
    "hoodie.log.compaction.blocks.threshold",
    5,
    "Minimum number of log blocks of a file slice, and of delta commits of the table, for a log compaction.",
    minimum=1,
)
INCREMENTAL_SERVICES = flag(
    "hoodie.table.services.incremental.enabled",
    True,
    "If true, plans list the partitions that they omit, so that the next plan of Apache Hudi considers them again.",
)

# --- metadata table ------------------------------------------------------------------------------------------------

METADATA_ENABLE = flag("hoodie.metadata.enable", True, "If true, the metadata table is used.")
METADATA_COLUMN_STATS_ENABLE = flag(
    "hoodie.metadata.index.column.stats.enable", True, "If true, the metadata table holds column statistics."
)
METADATA_COLUMN_STATS_COLUMNS = name_list(
    "hoodie.metadata.index.column.stats.column.list",
    "Columns with column statistics; nested fields are written with dots. Default: the first columns of the table.",
)
METADATA_COLUMN_STATS_MAX_COLUMNS = integer(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    32,
    "Maximum number of columns with column statistics if no columns are named.",
    minimum=1,
)
METADATA_COLUMN_STATS_FILE_GROUPS = integer(
    "hoodie.metadata.index.column.stats.file.group.count",
    2,
    "Number of file groups of the column statistics, set when they are built.",
    minimum=1,
)
METADATA_PARTITION_STATS_ENABLE = optional_flag(
    "hoodie.metadata.index.partition.stats.enable",
    "If true, the metadata table of a partitioned table holds partition statistics. They are built together with "
    "column statistics unless this is false.",
)
METADATA_PARTITION_STATS_FILE_GROUPS = integer(
    "hoodie.metadata.index.partition.stats.file.group.count",
    1,
    "Number of file groups of the partition statistics, set when they are built.",
    minimum=1,
)
METADATA_BLOOM_ENABLE = flag(
    "hoodie.metadata.index.bloom.filter.enable", False, "If true, the metadata table holds bloom filters."
)
METADATA_BLOOM_FILE_GROUPS = integer(
    "hoodie.metadata.index.bloom.filter.file.group.count",
    4,
    "Number of file groups of the bloom filters, set when they are built.",
    minimum=1,
)
METADATA_EXPRESSION_FILE_GROUPS = integer(
    "hoodie.metadata.index.expression.file.group.count",
    2,
    "Number of file groups of an expression index, set when it is built.",
    minimum=1,
)
METADATA_COMPACT_MAX_DELTA_COMMITS = integer(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    "Number of delta commits after which the metadata table is compacted.",
    minimum=1,
)
METADATA_GLOBAL_RECORD_INDEX_ENABLE = flag(
    "hoodie.metadata.global.record.level.index.enable",
    False,
    "If true, the metadata table holds the record index.",
    aliases=("hoodie.metadata.record.index.enable",),
)
METADATA_RECORD_INDEX_MIN_GROUPS = integer(
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    10,
    "Minimum number of file groups of a record index.",
    minimum=1,
    aliases=("hoodie.metadata.record.index.min.filegroup.count",),
)
METADATA_RECORD_INDEX_MAX_GROUPS = integer(
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
    10_000,
    "Maximum number of file groups of a record index.",
    minimum=1,
    aliases=("hoodie.metadata.record.index.max.filegroup.count",),
)
METADATA_PARTITIONED_RECORD_INDEX_ENABLE = flag(
    "hoodie.metadata.record.level.index.enable",
    False,
    "If true, the metadata table holds a partitioned record index, which stores keys by partition (from table "
    "version 9 on).",
)
METADATA_PARTITIONED_RECORD_INDEX_MIN_GROUPS = integer(
    "hoodie.metadata.record.level.index.min.filegroup.count",
    1,
    "Minimum number of file groups per partition of a partitioned record index.",
    minimum=1,
    aliases=("hoodie.metadata.partitioned.record.index.min.filegroup.count",),
)
METADATA_PARTITIONED_RECORD_INDEX_MAX_GROUPS = integer(
    "hoodie.metadata.record.level.index.max.filegroup.count",
    10,
    "Maximum number of file groups per partition of a partitioned record index, set when it is built.",
    minimum=1,
    aliases=("hoodie.metadata.partitioned.record.index.max.filegroup.count",),
)
