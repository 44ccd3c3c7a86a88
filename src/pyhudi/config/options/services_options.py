"""Options of transactions and table services: times, locks, markers, rollback, clean, archive, metadata table."""

from __future__ import annotations

from pyhudi.config.enums import CompactionTrigger, ConcurrencyMode, FailedWritesPolicy, MarkerType, TimeGeneratorType
from pyhudi.config.option import choice, flag, integer, maybe_choice, maybe_flag, maybe_integer, maybe_text, names, text

_LOCK = "hoodie.write.lock."

# --- instant times -------------------------------------------------------------------------------------------------

TIME_GENERATOR_TYPE = choice(
    "hoodie.time.generator.type", TimeGeneratorType.WAIT_TO_ADJUST_SKEW, "How instant times are issued."
)
TIME_GENERATOR_MAX_CLOCK_SKEW_MS = integer(
    "hoodie.time.generator.max_expected_clock_skew_ms",
    200,
    "How far apart the clocks of writers may be; an issued time is waited out so long.",
)

# --- concurrency ---------------------------------------------------------------------------------------------------

CONCURRENCY_MODE = choice(
    "hoodie.write.concurrency.mode", ConcurrencyMode.SINGLE_WRITER, "How many writers a table may have at a time."
)
LOCK_PROVIDER = maybe_text(
    _LOCK + "provider",
    "Lock provider by Apache Hudi's class name. When it is not given, the writers of one machine share a lock of the "
    "local file system, and several writers (`hoodie.write.concurrency.mode`) of an object store the "
    "StorageBasedLockProvider.",
)
LOCK_WAIT_TIME_MS = integer(_LOCK + "wait_time_ms", 60_000, "How long one attempt waits for the lock.")
LOCK_NUM_RETRIES = integer(_LOCK + "num_retries", 15, "Retries inside a lock provider.")
LOCK_RETRY_WAIT_MS = integer(_LOCK + "wait_time_ms_between_retry", 1000, "First wait between them.")
LOCK_RETRY_MAX_WAIT_MS = integer(_LOCK + "max_wait_time_ms_between_retry", 16_000, "Longest wait between them.")
LOCK_CLIENT_NUM_RETRIES = integer(_LOCK + "client.num_retries", 50, "Attempts to take the lock after the first.")
LOCK_CLIENT_RETRY_WAIT_MS = integer(
    _LOCK + "client.wait_time_ms_between_retry", 5000, "Wait between attempts to take the lock."
)
LOCK_HEARTBEAT_INTERVAL_MS = integer(_LOCK + "heartbeat_interval_ms", 60_000, "How often a held lock is renewed.")
LOCK_FILESYSTEM_PATH = maybe_text(_LOCK + "filesystem.path", "Folder of the lock file; .hoodie when not given.")
LOCK_FILESYSTEM_EXPIRE_MIN = integer(
    _LOCK + "filesystem.expire", 0, "Minutes after which a lock file is stale; 0: never."
)
LOCK_STORAGE_VALIDITY_SECS = integer(
    _LOCK + "storage.validity.timeout.secs",
    300,
    "Seconds for which the storage-based lock holds without renewal.",
    least=1,
)
LOCK_STORAGE_RENEW_SECS = integer(
    _LOCK + "storage.renew.interval.secs", 30, "Seconds between renewals of the storage-based lock.", least=1
)
CONFLICT_RESOLUTION_STRATEGY = text(
    _LOCK + "conflict.resolution.strategy",
    "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy",
    "How overlapping commits are told, by Apache Hudi's class name.",
)
NUM_RETRIES_ON_CONFLICT = integer(
    "hoodie.write.num.retries.on.conflict.failures", 0, "How often a write that lost to another one is tried again."
)
HEARTBEAT_INTERVAL_MS = integer(
    "hoodie.client.heartbeat.interval_in_ms", 60_000, "How often a writer says that it is alive.", least=1
)
HEARTBEAT_TOLERABLE_MISSES = integer(
    "hoodie.client.heartbeat.tolerable.misses", 2, "Missed heartbeats after which a writer counts as dead."
)

# --- markers and rollback ------------------------------------------------------------------------------------------

MARKERS_TYPE = maybe_choice(
    "hoodie.write.markers.type",
    MarkerType,
    "How files about to be written are marked. There is no timeline server here, so markers are always DIRECT.",
)
FAILED_WRITES_POLICY = choice(
    "hoodie.clean.failed.writes.policy",
    FailedWritesPolicy.EAGER,
    "When leftovers of failed writes are rolled back: at the next write, by cleaning, or never.",
    any_case=False,
)
ROLLBACK_USING_MARKERS = flag(
    "hoodie.rollback.using.markers", True, "Whether a rollback finds the files to delete by their markers."
)
ROLLBACK_PARALLELISM = integer("hoodie.rollback.parallelism", 100, "Tasks of a rollback.", least=1)
MARKERS_DELETE_PARALLELISM = integer("hoodie.markers.delete.parallelism", 100, "Tasks that delete markers.", least=1)
FAIL_ON_DUPLICATE_DATA_FILES = flag(
    "hoodie.fail.job.on.duplicate.data.file.detection",
    False,
    "Whether a leftover of a repeated task makes the write fail instead of being deleted.",
)

# --- services after a write ----------------------------------------------------------------------------------------

TABLE_SERVICES_ENABLED = flag("hoodie.table.services.enabled", True, "Whether a write may run table services.")
FAIL_ON_INLINE_SERVICE_ERROR = flag(
    "hoodie.fail.writes.on.inline.table.service.exception",
    True,
    "Whether an error of a service after a commit is raised, if it is set; else it is logged. The write is committed "
    "either way.",
)

# --- compaction ----------------------------------------------------------------------------------------------------

COMPACT_INLINE = flag(
    "hoodie.compact.inline",
    False,
    "Whether a write runs compaction after its commit, when it is due. Not given at all, writes to merge-on-read "
    "tables do, unless one of the options that leave it to another process is given as true.",
)
COMPACT_ASYNC = flag(
    "hoodie.datasource.compaction.async.enable",
    True,
    "Whether compaction is left to another process, if it is given: streaming writes do so by default.",
)
COMPACT_SCHEDULE_INLINE = flag(
    "hoodie.compact.schedule.inline",
    False,
    "Whether a write plans a compaction after its commit and leaves it to another process to run.",
)
COMPACT_TRIGGER = choice(
    "hoodie.compact.inline.trigger.strategy",
    CompactionTrigger.NUM_COMMITS,
    "When compaction is due.",
)
COMPACT_MAX_DELTA_COMMITS = integer(
    "hoodie.compact.inline.max.delta.commits", 5, "Delta commits after which compaction is due.", least=1
)
COMPACT_MAX_DELTA_SECONDS = integer(
    "hoodie.compact.inline.max.delta.seconds",
    3600,
    "Seconds after the last compaction, or after the first delta commit, from which compaction is due.",
    least=1,
)
COMPACTION_STRATEGY = text(
    "hoodie.compaction.strategy",
    "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",
    "Which file slices are compacted, by Apache Hudi's class names; several, separated by commas, one after the other.",
)
COMPACTION_TARGET_IO = integer(
    "hoodie.compaction.target.io", 512_000, "Megabytes that one compaction reads and writes, about."
)
COMPACTION_LOG_SIZE_THRESHOLD = integer(
    "hoodie.compaction.logfile.size.threshold", 0, "Bytes of log files from which a file slice is compacted."
)
COMPACTION_LOG_NUM_THRESHOLD = integer(
    "hoodie.compaction.logfile.num.threshold", 0, "Log files from which a file slice is compacted."
)
COMPACTION_DAY_PARTITIONS = integer(
    "hoodie.compaction.daybased.target.partitions", 10, "Days whose partitions strategies by day look at."
)
COMPACTION_PARTITION_REGEX = maybe_text(
    "hoodie.compaction.partition.path.regex", "Partition paths that PartitionRegexBasedCompactionStrategy compacts."
)
COMPACTION_MEMORY = maybe_integer(
    "hoodie.memory.compaction.max.size",
    "Bytes of log records that the compaction of a file slice keeps in memory before it puts them on disk; "
    "hoodie.memory.merge.max.size when not given.",
)
LOG_COMPACTION_INLINE = flag(
    "hoodie.log.compaction.inline", False, "Whether a write runs log compaction after its commit."
)
LOG_COMPACTION_BLOCKS_THRESHOLD = integer(
    "hoodie.log.compaction.blocks.threshold",
    5,
    "Log blocks of a file slice, and delta commits of the table, from which log compaction is due.",
    least=1,
)
INCREMENTAL_SERVICES = flag(
    "hoodie.table.services.incremental.enabled",
    True,
    "Whether plans name the partitions that they leave out, so that Apache Hudi's next plan looks at them again.",
)

# --- metadata table ------------------------------------------------------------------------------------------------

METADATA_ENABLE = flag("hoodie.metadata.enable", True, "Whether the metadata table is used.")
METADATA_COLUMN_STATS_ENABLE = flag(
    "hoodie.metadata.index.column.stats.enable", True, "Whether the metadata table holds column statistics."
)
METADATA_COLUMN_STATS_COLUMNS = names(
    "hoodie.metadata.index.column.stats.column.list",
    "Columns that column statistics are kept of, leaves of structs with dots; the first ones of the table when not "
    "given.",
)
METADATA_COLUMN_STATS_MAX_COLUMNS = integer(
    "hoodie.metadata.index.column.stats.max.columns.to.index",
    32,
    "How many columns column statistics are kept of when no columns are named.",
    least=1,
)
METADATA_COLUMN_STATS_FILE_GROUPS = integer(
    "hoodie.metadata.index.column.stats.file.group.count",
    2,
    "File groups of the column statistics, when they are built.",
    least=1,
)
METADATA_PARTITION_STATS_ENABLE = maybe_flag(
    "hoodie.metadata.index.partition.stats.enable",
    "Whether the metadata table of a partitioned table holds statistics of whole partitions; they come with column "
    "statistics, unless this is false.",
)
METADATA_PARTITION_STATS_FILE_GROUPS = integer(
    "hoodie.metadata.index.partition.stats.file.group.count",
    1,
    "File groups of the partition statistics, when they are built.",
    least=1,
)
METADATA_BLOOM_ENABLE = flag(
    "hoodie.metadata.index.bloom.filter.enable", False, "Whether the metadata table holds bloom filters."
)
METADATA_BLOOM_FILE_GROUPS = integer(
    "hoodie.metadata.index.bloom.filter.file.group.count",
    4,
    "File groups of the bloom filters, when they are built.",
    least=1,
)
METADATA_EXPRESSION_FILE_GROUPS = integer(
    "hoodie.metadata.index.expression.file.group.count",
    2,
    "File groups of an expression index, when it is built.",
    least=1,
)
METADATA_COMPACT_MAX_DELTA_COMMITS = integer(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    "Delta commits after which the metadata table is compacted.",
    least=1,
)
METADATA_GLOBAL_RECORD_INDEX_ENABLE = flag(
    "hoodie.metadata.global.record.level.index.enable",
    False,
    "Whether the metadata table holds the record index.",
    aliases=("hoodie.metadata.record.index.enable",),
)
METADATA_RECORD_INDEX_MIN_GROUPS = integer(
    "hoodie.metadata.global.record.level.index.min.filegroup.count",
    10,
    "Least number of file groups of a record index.",
    least=1,
    aliases=("hoodie.metadata.record.index.min.filegroup.count",),
)
METADATA_RECORD_INDEX_MAX_GROUPS = integer(
    "hoodie.metadata.global.record.level.index.max.filegroup.count",
    10_000,
    "Greatest number of file groups of a record index.",
    least=1,
    aliases=("hoodie.metadata.record.index.max.filegroup.count",),
)
METADATA_PARTITIONED_RECORD_INDEX_ENABLE = flag(
    "hoodie.metadata.record.level.index.enable",
    False,
    "Whether the metadata table holds a record index that knows keys by partition (from table version 9 on).",
)
METADATA_PARTITIONED_RECORD_INDEX_MIN_GROUPS = integer(
    "hoodie.metadata.record.level.index.min.filegroup.count",
    1,
    "Least number of file groups for each partition in a partitioned record index.",
    least=1,
    aliases=("hoodie.metadata.partitioned.record.index.min.filegroup.count",),
)
METADATA_PARTITIONED_RECORD_INDEX_MAX_GROUPS = integer(
    "hoodie.metadata.record.level.index.max.filegroup.count",
    10,
    "Greatest number of file groups for each partition in a partitioned record index, when it is built.",
    least=1,
    aliases=("hoodie.metadata.partitioned.record.index.max.filegroup.count",),
)
EMBEDDED_TIMELINE_SERVER = flag(
    "hoodie.embed.timeline.server", True, "Kept for compatibility; there is no timeline server here."
)
