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
from pyhudi.config.option import choice, flag, integer, maybe_choice, maybe_text, names, number, text

_WRITE = "hoodie.datasource.write."
_MB = 1024 * 1024

OPERATION = choice(_WRITE + "operation", Operation.UPSERT, "What the write does.")
PARTITIONS_TO_DELETE = names(
    _WRITE + "partitions.to.delete",
    "Partitions that delete_partition drops; * stands for any text. None given: those of the input.",
)
STATIC_OVERWRITE_PARTITIONS = names(
    "hoodie.static.overwrite.partition.paths", "Partitions that insert_overwrite replaces, whatever the input holds."
)
OVERWRITE_MODE = maybe_text("hoodie.datasource.overwrite.mode", "STATIC or DYNAMIC, for SQL INSERT OVERWRITE.")
SQL_INSERT_INTO_OPERATION = maybe_text(
    "hoodie.spark.sql.insert.into.operation",
    "What SQL INSERT INTO does: insert, bulk_insert or upsert; insert when not given.",
)
SQL_BULK_INSERT_ENABLE = flag(
    "hoodie.sql.bulk.insert.enable",
    False,
    "Whether SQL INSERT INTO does a bulk_insert, where hoodie.spark.sql.insert.into.operation is not given.",
)
SQL_INSERT_MODE = maybe_choice(
    "hoodie.sql.insert.mode",
    SqlInsertMode,
    "What SQL INSERT INTO does, where hoodie.spark.sql.insert.into.operation is not given: upsert; strict: insert, and "
    "fail if a copy-on-write table has a key already; non-strict: insert.",
)
COMMIT_METADATA_KEY_PREFIX = text(
    _WRITE + "commitmeta.key.prefix", "_", "Options that start with this go into the commit's extra metadata."
)
ALLOW_EMPTY_COMMIT = flag("hoodie.allow.empty.commit", True, "Whether a write without records makes a commit.")
ALLOW_OPERATION_FIELD = flag(
    "hoodie.allow.operation.metadata.field", False, "Whether records keep their change operation as a meta column."
)
ROW_WRITER_ENABLE = flag(_WRITE + "row.writer.enable", True, "Kept for compatibility; there is one writer here.")

# --- deduplication -------------------------------------------------------------------------------------------------

COMBINE_BEFORE_INSERT = flag("hoodie.combine.before.insert", False, "Whether insert merges records of one key first.")
COMBINE_BEFORE_UPSERT = flag("hoodie.combine.before.upsert", True, "Whether upsert merges records of one key first.")
COMBINE_BEFORE_DELETE = flag("hoodie.combine.before.delete", True, "Whether delete drops repeated keys first.")
INSERT_DROP_DUPLICATES = flag(
    _WRITE + "insert.drop.duplicates", False, "Whether insert leaves out keys that the table has already."
)
INSERT_DUP_POLICY = choice(
    "hoodie.datasource.insert.dup.policy",
    DuplicatePolicy.NONE,
    "What insert does with keys that the table has already: none, drop, fail.",
)
MERGE_ALLOW_DUPLICATE_ON_INSERTS = flag(
    "hoodie.merge.allow.duplicate.on.inserts", True, "Whether insert keeps duplicates when it fills small files."
)

# --- layout of files -----------------------------------------------------------------------------------------------

BULKINSERT_SORT_MODE = choice("hoodie.bulkinsert.sort.mode", SortMode.NONE, "How bulk_insert arranges rows.")
BULKINSERT_PARALLELISM = integer(
    "hoodie.bulkinsert.shuffle.parallelism", 0, "Tasks of bulk_insert; 0: as the input has, at most needed."
)
BULKINSERT_SORT_COLUMNS = names(
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns", "Columns by which bulk_insert sorts instead of the key."
)
BULKINSERT_SORT_SUFFIX_RECORD_KEY = flag(
    "hoodie.bulkinsert.sort.suffix.record_key", False, "Whether the record key is added to those columns."
)
UPSERT_PARALLELISM = integer("hoodie.upsert.shuffle.parallelism", 0, "Tasks of upsert; 0: as the input has.")
INSERT_PARALLELISM = integer("hoodie.insert.shuffle.parallelism", 0, "Tasks of insert; 0: as the input has.")
DELETE_PARALLELISM = integer("hoodie.delete.shuffle.parallelism", 0, "Tasks of delete; 0: as the input has.")
PARQUET_MAX_FILE_SIZE = integer(
    "hoodie.parquet.max.file.size", 120 * _MB, "Size at which a parquet base file is full, in bytes.", least=1
)
PARQUET_SMALL_FILE_LIMIT = integer(
    "hoodie.parquet.small.file.limit", 100 * _MB, "Inserts go to base files below this size first; 0: never."
)
INSERT_SPLIT_SIZE = integer(
    "hoodie.copyonwrite.insert.split.size", 500_000, "Rows of a new file while nothing is known of their size.", least=1
)
INSERT_AUTO_SPLIT = flag(
    "hoodie.copyonwrite.insert.auto.split", True, "Whether rows of a new file follow from the size of earlier rows."
)
RECORD_SIZE_ESTIMATE = integer(
    "hoodie.copyonwrite.record.size.estimate", 1024, "Bytes of a row while nothing is known of them.", least=1
)
RECORD_SIZE_ESTIMATION_THRESHOLD = number(
    "hoodie.record.size.estimation.threshold",
    1.0,
    "A commit's bytes count for the estimate from this part of the small-file limit on.",
)
PARQUET_BLOCK_SIZE = integer("hoodie.parquet.block.size", 120 * _MB, "Bytes of a parquet row group.", least=1)
PARQUET_PAGE_SIZE = integer("hoodie.parquet.page.size", _MB, "Bytes of a parquet page.", least=1)
PARQUET_CODEC = choice(
    "hoodie.parquet.compression.codec",
    ParquetCodec.ZSTD,
    "Compression of parquet files. (Apache Hudi's own default is gzip.)",
)
PARQUET_DICTIONARY = flag("hoodie.parquet.dictionary.enabled", True, "Whether parquet pages use dictionaries.")
PARQUET_TIMESTAMP_TYPE = choice(
    "hoodie.parquet.outputtimestamptype", OutputTimestampType.TIMESTAMP_MICROS, "Physical type of timestamps."
)
ORC_MAX_FILE_SIZE = integer(
    "hoodie.orc.max.file.size", 120 * _MB, "Size at which an ORC base file is full, in bytes.", least=1
)
ORC_STRIPE_SIZE = integer("hoodie.orc.stripe.size", 64 * _MB, "Bytes of an ORC stripe.", least=1)
ORC_BLOCK_SIZE = integer("hoodie.orc.block.size", 120 * _MB, "Bytes of a file system block, for ORC.", least=1)
ORC_CODEC = choice("hoodie.orc.compression.codec", OrcCodec.ZLIB, "Compression of ORC files.")

# --- log files -----------------------------------------------------------------------------------------------------

LOG_BLOCK_FORMAT = choice(
    "hoodie.logfile.data.block.format",
    LogBlockFormat.PARQUET,
    "Format of the records in log blocks. Apache Hudi writes Avro by default and reads all of them.",
)
LOG_MAX_SIZE = integer(
    "hoodie.logfile.max.size", 1024 * _MB, "Size at which a write goes on with another log file, in bytes.", least=1
)
LOG_BLOCK_MAX_SIZE = integer(
    "hoodie.logfile.data.block.max.size",
    256 * _MB,
    "Bytes of a log block, about, which a task keeps in memory.",
    least=1,
)
WRITE_RECORD_POSITIONS = flag(
    "hoodie.write.record.positions",
    True,
    "Whether log blocks say at which rows of the base file their records are (from table version 8 on).",
)
PARTIAL_UPDATE_SCHEMA = maybe_text(
    "hoodie.write.partial.update.schema",
    "Merge-on-read tables, upsert: the input has only the columns of this Avro schema, and records keep the values of "
    "all others.",
)
SMALL_FILE_GROUP_CANDIDATES = integer(
    "hoodie.merge.small.file.group.candidates.limit",
    1,
    "Merge-on-read tables: how many small base files of a partition, the smallest first, take new records.",
)

# --- bloom filters and indexes -------------------------------------------------------------------------------------

BLOOM_ENABLED = flag("hoodie.parquet.bloom.filter.enabled", True, "Whether base files carry a bloom filter of keys.")
BLOOM_NUM_ENTRIES = integer("hoodie.index.bloom.num_entries", 60_000, "Keys a bloom filter starts with.", least=1)
BLOOM_FPP = number("hoodie.index.bloom.fpp", 0.000000001, "False positives of a bloom filter.", most=1.0)
BLOOM_TYPE = choice("hoodie.bloom.index.filter.type", BloomType.DYNAMIC_V0, "Kind of bloom filter.")
BLOOM_DYNAMIC_MAX_ENTRIES = integer(
    "hoodie.bloom.index.filter.dynamic.max.entries", 100_000, "Keys up to which a dynamic filter grows.", least=1
)
BLOOM_PRUNE_BY_RANGES = flag(
    "hoodie.bloom.index.prune.by.ranges", True, "Whether files are left out whose key range cannot hold a key."
)
BLOOM_USE_METADATA = flag(
    "hoodie.bloom.index.use.metadata",
    False,
    "Whether bloom filters and key ranges are looked up in the metadata table, if it has them.",
)
INDEX_TYPE = choice("hoodie.index.type", IndexType.SIMPLE, "How the current place of a key is found.", any_case=False)
BLOOM_UPDATE_PARTITION_PATH = flag(
    "hoodie.bloom.index.update.partition.path",
    True,
    "With GLOBAL_BLOOM: whether a record whose partition changed moves there, or is updated where it is.",
)
SIMPLE_UPDATE_PARTITION_PATH = flag(
    "hoodie.simple.index.update.partition.path",
    True,
    "With GLOBAL_SIMPLE: whether a record whose partition changed moves there, or is updated where it is.",
)
RECORD_INDEX_UPDATE_PARTITION_PATH = flag(
    "hoodie.record.index.update.partition.path", False, "The same for the global record index."
)
SIMPLE_INDEX_PARALLELISM = integer("hoodie.simple.index.parallelism", 0, "Tasks of key look-ups; 0: automatic.")
GLOBAL_SIMPLE_INDEX_PARALLELISM = integer(
    "hoodie.global.simple.index.parallelism", 0, "Tasks of global key look-ups; 0: automatic."
)
BLOOM_INDEX_PARALLELISM = integer("hoodie.bloom.index.parallelism", 0, "Tasks of key look-ups; 0: automatic.")

# --- schema --------------------------------------------------------------------------------------------------------

SCHEMA_CONFLICT_RESOLUTION = flag(
    "hoodie.write.concurrency.schema.conflict.resolution.enable",
    True,
    "Whether a write heeds columns that another one has added or changed since it began.",
)
RECONCILE_SCHEMA = flag(
    _WRITE + "reconcile.schema", False, "Whether the table's schema wins where the input lacks columns."
)
SET_NULL_FOR_MISSING_COLUMNS = flag(
    "hoodie.write.set.null.for.missing.columns", False, "Whether columns that the input lacks become null."
)
SCHEMA_ALLOW_COLUMN_DROP = flag(
    _WRITE + "schema.allow.auto.evolution.column.drop", False, "Whether columns that the input lacks are dropped."
)
SCHEMA_EVOLUTION_ENABLE = flag(
    "hoodie.schema.on.read.enable",
    False,
    "Whether ALTER TABLE may begin a history of the table's schemas, for renames, drops, moves and other types. A "
    "table that has one is read and written by it, whatever this says; Apache Hudi does so with true only.",
)
AVRO_SCHEMA_VALIDATE = flag(
    "hoodie.avro.schema.validate", False, "Whether an incoming schema must be compatible with the table's."
)
WRITE_SCHEMA = maybe_text("hoodie.write.schema", "Avro schema to write with instead of the input's.")

# --- streaming -------------------------------------------------------------------------------------------------------

STREAMING_CHECKPOINT_IDENTIFIER = text(
    _WRITE + "streaming.checkpoint.identifier",
    "default_single_writer",
    "Under which name commits record the micro-batches of a stream; each stream into a table needs one of its own.",
)
STREAMING_RETRY_COUNT = integer(_WRITE + "streaming.retry.count", 3, "Attempts to write a micro-batch.")
STREAMING_RETRY_INTERVAL_MS = integer(
    _WRITE + "streaming.retry.interval.ms", 2000, "Wait before the second attempt; each further wait is twice as long."
)
STREAMING_IGNORE_FAILED_BATCH = flag(
    _WRITE + "streaming.ignore.failed.batch",
    False,
    "Whether a micro-batch that cannot be written is left out, and its rows lost, instead of ending the stream.",
)
STREAMING_DISABLE_COMPACTION = flag(
    _WRITE + "streaming.disable.compaction", False, "Whether a stream neither plans nor runs compaction."
)
