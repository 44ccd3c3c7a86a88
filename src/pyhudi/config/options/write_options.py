"""Options of a write: operation, deduplication, indexes, files, schema."""

from __future__ import annotations

from pyhudi.config.enums import (
    BloomType,
    DuplicatePolicy,
    IndexType,
    LogBlockFormat,
    Operation,
    OrcCodec,
    OutputTimestampType,
    ParquetCodec,
    SortMode,
    SqlInsertMode,
)
from pyhudi.config.option import choice, flag, integer, name_list, number, optional_choice, optional_text, text

_WRITE = "hoodie.datasource.write."
_MB = 1024 * 1024

OPERATION = choice(
    _WRITE + "operation",
    Operation.UPSERT,
    "Write operation.",
    refused=(
        Operation.UPSERT_PREPPED,
        Operation.INSERT_PREPPED,
        Operation.BULK_INSERT_PREPPED,
        Operation.DELETE_PREPPED,
        Operation.BUCKET_RESCALE,
    ),
)
PARTITIONS_TO_DELETE = name_list(
    _WRITE + "partitions.to.delete",
    "Partitions that delete_partition drops; * matches any text. Default: those of the input.",
)
STATIC_OVERWRITE_PARTITIONS = name_list(
    "hoodie.static.overwrite.partition.paths", "Partitions that insert_overwrite replaces, regardless of the input."
)
OVERWRITE_MODE = optional_text("hoodie.datasource.overwrite.mode", "STATIC or DYNAMIC, for SQL INSERT OVERWRITE.")
SQL_INSERT_INTO_OPERATION = optional_text(
    "hoodie.spark.sql.insert.into.operation",
    "Operation of SQL INSERT INTO: insert, bulk_insert or upsert. Default: insert.",
)
SQL_BULK_INSERT_ENABLE = flag(
    "hoodie.sql.bulk.insert.enable",
    False,
    "Whether SQL INSERT INTO does a bulk_insert, where hoodie.spark.sql.insert.into.operation is not given.",
)
SQL_INSERT_MODE = optional_choice(
    "hoodie.sql.insert.mode",
    SqlInsertMode,
    "What SQL INSERT INTO does, where hoodie.spark.sql.insert.into.operation is not given: upsert; strict: insert, and "
    "fail if a copy-on-write table has a key already; non-strict: insert.",
)
COMMIT_METADATA_KEY_PREFIX = text(
    _WRITE + "commitmeta.key.prefix", "_", "Options with this prefix are stored in the extra metadata of the commit."
)
ROLLING_METADATA_KEYS = name_list(
    "hoodie.write.rolling.metadata.keys",
    "Keys of extra metadata that every commit and clean takes over from the newest one that has them.",
)
ROLLING_METADATA_TIMELINE_LOOKBACK_COMMITS = integer(
    "hoodie.write.rolling.metadata.timeline.lookback.commits",
    10,
    "Number of completed writes, and of completed cleans, in which hoodie.write.rolling.metadata.keys are searched.",
)
ALLOW_EMPTY_COMMIT = flag("hoodie.allow.empty.commit", True, "If true, a write without records makes a commit.")
ALLOW_OPERATION_FIELD = flag(
    "hoodie.allow.operation.metadata.field", False, "If true, records keep their change operation as a meta column."
)

# --- deduplication -------------------------------------------------------------------------------------------------

COMBINE_BEFORE_INSERT = flag(
    "hoodie.combine.before.insert", False, "If true, insert first merges records with the same key."
)
COMBINE_BEFORE_UPSERT = flag(
    "hoodie.combine.before.upsert", True, "If true, upsert first merges records with the same key."
)
COMBINE_BEFORE_DELETE = flag("hoodie.combine.before.delete", True, "If true, delete first removes duplicate keys.")
INSERT_DROP_DUPLICATES = flag(
    _WRITE + "insert.drop.duplicates", False, "If true, insert drops records whose keys exist in the table."
)
INSERT_DUP_POLICY = choice(
    "hoodie.datasource.insert.dup.policy",
    DuplicatePolicy.NONE,
    "Treatment by insert of keys that exist in the table: none, drop, fail.",
)
MERGE_ALLOW_DUPLICATE_ON_INSERTS = flag(
    "hoodie.merge.allow.duplicate.on.inserts", True, "If true, insert keeps duplicates when it fills small files."
)

# --- layout of files -----------------------------------------------------------------------------------------------

BULKINSERT_SORT_MODE = choice("hoodie.bulkinsert.sort.mode", SortMode.NONE, "Order of the rows of bulk_insert.")
BULKINSERT_PARALLELISM = integer(
    "hoodie.bulkinsert.shuffle.parallelism",
    0,
    "Number of tasks of bulk_insert; 0: at most that of the input, fewer if not needed.",
)
BULKINSERT_SORT_COLUMNS = name_list(
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns", "Columns by which bulk_insert sorts instead of the key."
)
BULKINSERT_SORT_SUFFIX_RECORD_KEY = flag(
    "hoodie.bulkinsert.sort.suffix.record_key", False, "If true, the record key is appended to those columns."
)
UPSERT_PARALLELISM = integer("hoodie.upsert.shuffle.parallelism", 0, "Number of tasks of upsert; 0: that of the input.")
INSERT_PARALLELISM = integer("hoodie.insert.shuffle.parallelism", 0, "Number of tasks of insert; 0: that of the input.")
DELETE_PARALLELISM = integer("hoodie.delete.shuffle.parallelism", 0, "Number of tasks of delete; 0: that of the input.")
PARQUET_MAX_FILE_SIZE = integer(
    "hoodie.parquet.max.file.size", 120 * _MB, "Maximum size of a Parquet base file, in bytes.", minimum=1
)
PARQUET_SMALL_FILE_LIMIT = integer(
    "hoodie.parquet.small.file.limit",
    100 * _MB,
    "Size in bytes below which a base file receives inserts first; 0 or -1: never.",
    minimum=-1,
)
INSERT_SPLIT_SIZE = integer(
    "hoodie.copyonwrite.insert.split.size",
    500_000,
    "Number of rows per new file if the record size is unknown.",
    minimum=1,
)
INSERT_AUTO_SPLIT = flag(
    "hoodie.copyonwrite.insert.auto.split",
    True,
    "If true, the number of rows per new file is derived from the size of earlier records.",
)
RECORD_SIZE_ESTIMATE = integer(
    "hoodie.copyonwrite.record.size.estimate", 1024, "Assumed size of a record in bytes if it is unknown.", minimum=1
)
RECORD_SIZE_ESTIMATION_THRESHOLD = number(
    "hoodie.record.size.estimation.threshold",
    1.0,
    "Minimum size of a commit that is used to estimate the record size, as a fraction of the small-file limit.",
)
PARQUET_BLOCK_SIZE = integer("hoodie.parquet.block.size", 120 * _MB, "Size of a Parquet row group in bytes.", minimum=1)
PARQUET_PAGE_SIZE = integer("hoodie.parquet.page.size", _MB, "Size of a Parquet page in bytes.", minimum=1)
PARQUET_CODEC = choice(
    "hoodie.parquet.compression.codec",
    ParquetCodec.ZSTD,
    "Compression of Parquet files. (Apache Hudi's default is gzip.)",
)
PARQUET_DICTIONARY = flag("hoodie.parquet.dictionary.enabled", True, "If true, Parquet pages use dictionary encoding.")
PARQUET_TIMESTAMP_TYPE = choice(
    "hoodie.parquet.outputtimestamptype",
    OutputTimestampType.TIMESTAMP_MICROS,
    "Physical type of timestamps.",
    refused=(OutputTimestampType.TIMESTAMP_MILLIS, OutputTimestampType.INT96),
)
ORC_MAX_FILE_SIZE = integer(
    "hoodie.orc.max.file.size", 120 * _MB, "Maximum size of an ORC base file, in bytes.", minimum=1
)
ORC_STRIPE_SIZE = integer("hoodie.orc.stripe.size", 64 * _MB, "Size of an ORC stripe in bytes.", minimum=1)
ORC_CODEC = choice("hoodie.orc.compression.codec", OrcCodec.ZLIB, "Compression of ORC files.")

# --- log files -----------------------------------------------------------------------------------------------------

LOG_BLOCK_FORMAT = choice(
    "hoodie.logfile.data.block.format",
    LogBlockFormat.PARQUET,
    "Format of the records in log blocks. Tables that compare texts of an ordering field have Avro by default, as "
    "Apache Hudi 1.x merges their Parquet blocks wrongly. Apache Hudi writes Avro by default and reads all of them.",
)
LOG_MAX_SIZE = integer(
    "hoodie.logfile.max.size", 1024 * _MB, "Size in bytes at which a write continues in another log file.", minimum=1
)
LOG_BLOCK_MAX_SIZE = integer(
    "hoodie.logfile.data.block.max.size",
    256 * _MB,
    "Approximate size of a log block in bytes, which a task keeps in memory.",
    minimum=1,
)
WRITE_RECORD_POSITIONS = flag(
    "hoodie.write.record.positions",
    True,
    "If true, log blocks hold the positions of their records in the base file (from table version 8 on).",
)
PARTIAL_UPDATE_SCHEMA = optional_text(
    "hoodie.write.partial.update.schema",
    "Merge-on-read tables, upsert: Avro schema with the only columns of the input; records keep the values of all "
    "others.",
)
SMALL_FILE_GROUP_CANDIDATES = integer(
    "hoodie.merge.small.file.group.candidates.limit",
    1,
    "Merge-on-read tables: number of small base files per partition, the smallest first, that receive new records.",
)

# --- bloom filters and indexes -------------------------------------------------------------------------------------

BLOOM_ENABLED = flag(
    "hoodie.parquet.bloom.filter.enabled", True, "If true, base files have a bloom filter of record keys."
)
BLOOM_NUM_ENTRIES = integer(
    "hoodie.index.bloom.num_entries", 60_000, "Initial number of keys of a bloom filter.", minimum=1
)
BLOOM_FPP = number("hoodie.index.bloom.fpp", 0.000000001, "False positive rate of a bloom filter.", maximum=1.0)
BLOOM_TYPE = choice("hoodie.bloom.index.filter.type", BloomType.DYNAMIC_V0, "Type of bloom filter.")
BLOOM_DYNAMIC_MAX_ENTRIES = integer(
    "hoodie.bloom.index.filter.dynamic.max.entries", 100_000, "Maximum number of keys of a dynamic filter.", minimum=1
)
BLOOM_PRUNE_BY_RANGES = flag(
    "hoodie.bloom.index.prune.by.ranges", True, "If true, files are pruned by their key range."
)
BLOOM_USE_METADATA = flag(
    "hoodie.bloom.index.use.metadata",
    False,
    "If true, bloom filters and key ranges are read from the metadata table if it has them.",
)
INDEX_TYPE = choice(
    "hoodie.index.type",
    IndexType.SIMPLE,
    "Index that finds the current location of a key.",
    any_case=False,
    refused=(IndexType.INMEMORY, IndexType.FLINK_STATE),
)
BLOOM_UPDATE_PARTITION_PATH = flag(
    "hoodie.bloom.index.update.partition.path",
    True,
    "With GLOBAL_BLOOM: if true, a record moves if its partition changed; if false, it is updated in its old "
    "partition.",
)
SIMPLE_UPDATE_PARTITION_PATH = flag(
    "hoodie.simple.index.update.partition.path",
    True,
    "With GLOBAL_SIMPLE: if true, a record moves if its partition changed; if false, it is updated in its old "
    "partition.",
)
RECORD_INDEX_UPDATE_PARTITION_PATH = flag(
    "hoodie.record.index.update.partition.path", False, "The same for the global record index."
)
BLOOM_INDEX_PARALLELISM = integer("hoodie.bloom.index.parallelism", 0, "Number of tasks of key lookups; 0: automatic.")

# --- schema --------------------------------------------------------------------------------------------------------

SCHEMA_CONFLICT_RESOLUTION = flag(
    "hoodie.write.concurrency.schema.conflict.resolution.enable",
    True,
    "If true, a write takes into account columns that another write has added or changed since it began.",
)
RECONCILE_SCHEMA = flag(
    _WRITE + "reconcile.schema", False, "If true, the schema of the table is used if the input lacks columns."
)
SET_NULL_FOR_MISSING_COLUMNS = flag(
    "hoodie.write.set.null.for.missing.columns", False, "If true, columns that the input lacks become null."
)
SCHEMA_ALLOW_COLUMN_DROP = flag(
    _WRITE + "schema.allow.auto.evolution.column.drop", False, "If true, columns that the input lacks are dropped."
)
SCHEMA_EVOLUTION_ENABLE = flag(
    "hoodie.schema.on.read.enable",
    False,
    "If true, ALTER TABLE may start a history of the schemas of the table, for renaming, dropping, moving and "
    "changing columns. A table with such a history always uses it; in Apache Hudi only if this is true.",
)
WRITE_SCHEMA = optional_text("hoodie.write.schema", "Avro schema with which to write instead of that of the input.")

# --- validation ------------------------------------------------------------------------------------------------------

_VALIDATORS = "hoodie.precommit.validators"
PRECOMMIT_VALIDATORS = text(
    _VALIDATORS,
    "",
    "Validators that check a write before it is published, separated by commas, by Apache Hudi's class names "
    "`org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator`, `…SqlQueryEqualityPreCommitValidator` "
    "and `…SqlQueryInequalityPreCommitValidator`. A write that one refuses is rolled back. Queries see the partitions "
    "that the write changes.",
)
SINGLE_RESULT_QUERIES = text(
    f"{_VALIDATORS}.single.value.sql.queries",
    "",
    "Queries on `<TABLE_NAME>` and the value that each must return after the write: `query1#value1;query2#value2`.",
)
EQUALITY_QUERIES = text(
    f"{_VALIDATORS}.equality.sql.queries",
    "",
    "Queries on `<TABLE_NAME>` that must return the same rows before and after the write, separated by `;`.",
)
INEQUALITY_QUERIES = text(
    f"{_VALIDATORS}.inequality.sql.queries",
    "",
    "Queries on `<TABLE_NAME>` that must not return the same rows before and after the write, separated by `;`.",
)

# --- streaming -------------------------------------------------------------------------------------------------------

STREAMING_CHECKPOINT_IDENTIFIER = text(
    _WRITE + "streaming.checkpoint.identifier",
    "default_single_writer",
    "Identifier under which commits record the micro-batches of a stream. Each stream into a table needs a "
    "different one.",
)
STREAMING_RETRY_COUNT = integer(_WRITE + "streaming.retry.count", 3, "Number of attempts to write a micro-batch.")
STREAMING_RETRY_INTERVAL_MS = integer(
    _WRITE + "streaming.retry.interval.ms", 2000, "Wait before the second attempt; each further wait is twice as long."
)
STREAMING_IGNORE_FAILED_BATCH = flag(
    _WRITE + "streaming.ignore.failed.batch",
    False,
    "If true, a micro-batch that cannot be written is skipped and its rows are lost, instead of stopping the stream.",
)
STREAMING_DISABLE_COMPACTION = flag(
    _WRITE + "streaming.disable.compaction", False, "If true, a stream neither plans nor runs compaction."
)
