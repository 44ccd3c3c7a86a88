"""Options that define a table: name, type, version, keys, partitions, merging."""

from __future__ import annotations

from pyhudi.config.enums import (
    BucketIndexEngine,
    CdcMode,
    FileFormat,
    MergeMode,
    PartialUpdateMode,
    TableType,
    TimelineTimezone,
    TimestampType,
    TimeUnit,
)
from pyhudi.config.option import (
    choice,
    flag,
    int_choice,
    integer,
    name_list,
    number,
    optional_choice,
    optional_integer,
    optional_text,
    text,
)

_KEYGEN = "hoodie.keygen.timebased."
_STREAMER_KEYGEN = "hoodie.streamer.keygen.timebased."
"""Prefix of the same options in Apache Hudi's documentation. The code of 0.15 to 1.2 does not read it."""
_WRITE = "hoodie.datasource.write."

# --- identity ------------------------------------------------------------------------------------------------------

TABLE_NAME = optional_text(
    "hoodie.table.name",
    "Name of the table. Required to create a table; must match that of an existing one.",
    aliases=(_WRITE + "table.name",),
)
DATABASE_NAME = optional_text("hoodie.database.name", "Database (catalog namespace) of the table.")
TABLE_TYPE = choice(
    _WRITE + "table.type",
    TableType.COPY_ON_WRITE,
    "Table type: updates rewrite base files, or are appended to log files.",
    any_case=False,
    aliases=(_WRITE + "storage.type", "hoodie.table.type"),
)
WRITE_TABLE_VERSION = int_choice(
    "hoodie.write.table.version",
    9,
    (6, 8, 9),
    "Format version of a new table, or to which an existing one is upgraded. By default, an existing table keeps "
    "its version.",
)
AUTO_UPGRADE = flag(
    "hoodie.write.auto.upgrade",
    True,
    "If true, a writer may upgrade an older table to the version in hoodie.write.table.version. If set "
    "explicitly, the table is upgraded even if that option is not set.",
)
TIMELINE_TIMEZONE = choice(
    "hoodie.table.timeline.timezone",
    TimelineTimezone.LOCAL,
    "Time zone of instant times; LOCAL is that of Spark's virtual machine on the driver, or of the process if it has "
    "none: without Spark, and in Spark Connect.",
    any_case=False,
)
BASE_FILE_FORMAT = choice(
    "hoodie.table.base.file.format",
    FileFormat.PARQUET,
    "Format of base files.",
    aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
    refused=(FileFormat.HFILE, FileFormat.HOODIE_LOG, FileFormat.LANCE),
)
POPULATE_META_FIELDS = flag(
    "hoodie.populate.meta.fields", True, "If true, files hold the five meta columns; false creates virtual keys."
)
CDC_ENABLED = flag("hoodie.table.cdc.enabled", False, "If true, writes log changes for CDC queries.")
CDC_MODE = choice("hoodie.table.cdc.supplemental.logging.mode", CdcMode.DATA_BEFORE_AFTER, "Content of the CDC log.")
ARCHIVE_FOLDER = text("hoodie.archivelog.folder", "archived", "Folder of the archived timeline in tables of version 6.")
PARTITION_METAFILE_BASE_FORMAT = flag(
    "hoodie.partition.metafile.use.base.format",
    False,
    "If true, partition metadata is stored as a base file instead of text.",
)
CREATE_SCHEMA = optional_text("hoodie.table.create.schema", "Avro schema with which the table was created.")

# --- keys and partitions -------------------------------------------------------------------------------------------

RECORDKEY_FIELD = name_list(
    _WRITE + "recordkey.field",
    "Columns of the record key; without any, keys are generated. Nested fields are written with dots.",
    aliases=("hoodie.table.recordkey.fields",),
)
PARTITIONPATH_FIELD = name_list(
    _WRITE + "partitionpath.field",
    "Columns of the partition path; for the custom key generator as column:simple or column:timestamp.",
    aliases=("hoodie.table.partition.fields",),
)
PRECOMBINE_FIELD = name_list(
    _WRITE + "precombine.field",
    "Ordering columns: of two records with the same key, the one with the greater value is kept. If set, a new "
    "table merges by event time.",
    aliases=("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
)
ORDERING_FIELDS = PRECOMBINE_FIELD
KEYGENERATOR_CLASS = optional_text(
    _WRITE + "keygenerator.class",
    "Key generator by Apache Hudi's class name. Default: derived from the key and partition columns.",
    aliases=("hoodie.table.keygenerator.class",),
)
KEYGENERATOR_TYPE = optional_text(
    _WRITE + "keygenerator.type",
    "Key generator by type name. No effect: as in Apache Hudi, the class or the key columns determine it.",
    aliases=("hoodie.table.keygenerator.type",),
)
KEYGEN_CONSISTENT_LOGICAL_TIMESTAMP = flag(
    _WRITE + "keygenerator.consistent.logical.timestamp.enabled",
    False,
    "If true, timestamps in keys and partition paths are written as text instead of epoch microseconds.",
)
COMPLEX_KEYGEN_NEW_ENCODING = flag(
    "hoodie.write.complex.keygen.new.encoding",
    False,
    "For new tables up to version 8 with the complex generator and one key field: encode the value only instead of "
    "field:value. Tables with records keep the form of their keys.",
)
HIVE_STYLE_PARTITIONING = flag(
    _WRITE + "hive_style_partitioning", False, "If true, partition folders are named column=value."
)
URL_ENCODE_PARTITIONING = flag(
    _WRITE + "partitionpath.urlencode", False, "If true, special characters in partition values are percent-encoded."
)
SLASH_SEPARATED_DATE_PARTITIONING = flag(
    _WRITE + "slash.separated.date.partitioning", False, "If true, a date 2024-01-05 becomes the folders 2024/01/05."
)
DROP_PARTITION_COLUMNS = flag(
    _WRITE + "drop.partition.columns", False, "If true, partition columns are omitted from the files."
)
TIMESTAMP_TYPE = optional_choice(
    _KEYGEN + "timestamp.type",
    TimestampType,
    "Type of the timestamp generator's input column.",
    aliases=(_STREAMER_KEYGEN + "timestamp.type",),
)
TIMESTAMP_SCALAR_UNIT = choice(
    _KEYGEN + "timestamp.scalar.time.unit",
    TimeUnit.SECONDS,
    "Unit of the input when its type is SCALAR.",
    aliases=(_STREAMER_KEYGEN + "timestamp.scalar.time.unit",),
)
TIMESTAMP_INPUT_FORMAT = text(
    _KEYGEN + "input.dateformat",
    "",
    "Java date pattern, or list of patterns, of text input.",
    aliases=(_STREAMER_KEYGEN + "input.dateformat",),
)
TIMESTAMP_INPUT_FORMAT_DELIMITER = text(
    _KEYGEN + "input.dateformat.list.delimiter.regex",
    ",",
    "Separator of input patterns, a regular expression.",
    aliases=(_STREAMER_KEYGEN + "input.dateformat.list.delimiter.regex",),
)
TIMESTAMP_INPUT_TIMEZONE = optional_text(
    _KEYGEN + "input.timezone",
    "Time zone of text input without a zone.",
    aliases=(_STREAMER_KEYGEN + "input.timezone",),
)
TIMESTAMP_OUTPUT_FORMAT = text(
    _KEYGEN + "output.dateformat",
    "",
    "Java date pattern of the partition path.",
    aliases=(_STREAMER_KEYGEN + "output.dateformat",),
)
TIMESTAMP_OUTPUT_TIMEZONE = optional_text(
    _KEYGEN + "output.timezone",
    "Time zone of the partition path.",
    aliases=(_STREAMER_KEYGEN + "output.timezone",),
)
TIMESTAMP_TIMEZONE = text(
    _KEYGEN + "timezone",
    "UTC",
    "Time zone of input and output without zones of their own.",
    aliases=(_STREAMER_KEYGEN + "timezone",),
)

# --- merging -------------------------------------------------------------------------------------------------------

MERGE_MODE = optional_choice(
    "hoodie.write.record.merge.mode",
    MergeMode,
    "Merge mode, which selects one of two records with the same key. Default: derived from the ordering columns.",
    aliases=("hoodie.record.merge.mode",),
)
MERGE_STRATEGY_ID = optional_text(
    "hoodie.write.record.merge.strategy.id",
    "Strategy id of the merger for the mode CUSTOM.",
    aliases=("hoodie.datasource.write.record.merger.strategy", "hoodie.record.merge.strategy.id"),
)
MERGER_CLASSES = name_list(
    "hoodie.write.record.merge.custom.implementation.classes",
    "Java classes of mergers, which are not run; pyhudi.register_merger registers a Python merger for the strategy id.",
    aliases=("hoodie.datasource.write.record.merger.impls",),
)
PAYLOAD_CLASS = optional_text(
    _WRITE + "payload.class",
    "Payload class of older releases. Known ones are mapped to a merge mode; hoodie.record.merge.mode is left out, or "
    "has the same one or CUSTOM.",
    aliases=("hoodie.compaction.payload.class",),
)
PARTIAL_UPDATE_MODE = optional_choice(
    "hoodie.table.partial.update.mode", PartialUpdateMode, "Set by the payload class of a new table."
)
PAYLOAD_DELETE_FIELD = optional_text(
    "hoodie.payload.delete.field", "Column with a value that marks a record as deleted; used with the marker."
)
PAYLOAD_DELETE_MARKER = optional_text(
    "hoodie.payload.delete.marker", "Value of that column that marks a record as deleted."
)
PAYLOAD_EVENT_TIME_FIELD = optional_text("hoodie.payload.event.time.field", "Column of the event time, for statistics.")
PARTITION_EXTRACTOR_CLASS = optional_text(
    "hoodie.datasource.hive_sync.partition_extractor_class",
    "Extractor of values from a partition path, for catalog sync. Default: derived from the partitioning.",
    aliases=("hoodie.datasource.partition_extractor_class", "hoodie.table.partition_extractor_class"),
)
PAYLOAD_UNAVAILABLE_VALUE = text(
    "hoodie.write.partial.update.unavailable.value",
    "__debezium_unavailable_value",
    "Placeholder for an unchanged value with FILL_UNAVAILABLE.",
)
MULTIPLE_BASE_FILE_FORMATS = flag(
    "hoodie.table.multiple.base.file.formats.enable",
    False,
    "Not supported: tables with several base file formats are read, but not created or written.",
)
INITIAL_BUCKETS = integer(
    "hoodie.bucket.index.num.buckets", 256, "Number of buckets per partition, for the bucket index.", minimum=1
)
BUCKET_HASH_FIELD = name_list(
    "hoodie.bucket.index.hash.field", "Key columns that determine the bucket. Default: all key columns."
)
BUCKET_ENGINE = choice("hoodie.index.bucket.engine", BucketIndexEngine.SIMPLE, "Layout of buckets.", any_case=False)
BUCKET_MAX = optional_integer(
    "hoodie.bucket.index.max.num.buckets",
    "Maximum number of buckets of a partition up to which clustering splits them, with consistent hashing. "
    "Default: the initial number.",
)
BUCKET_MIN = optional_integer(
    "hoodie.bucket.index.min.num.buckets",
    "Minimum number of buckets of a partition down to which clustering merges them, with consistent hashing. "
    "Default: the initial number.",
)
BUCKET_SPLIT_THRESHOLD = number(
    "hoodie.bucket.index.split.threshold",
    2.0,
    "Size of a bucket, as a multiple of the maximum base file size, above which clustering splits it, with "
    "consistent hashing.",
)
BUCKET_MERGE_THRESHOLD = number(
    "hoodie.bucket.index.merge.threshold",
    0.2,
    "Size of a bucket, as a multiple of the maximum base file size, up to which clustering merges it with "
    "adjacent ones, with consistent hashing.",
)
BUCKET_PARTITION_EXPRESSIONS = optional_text(
    "hoodie.bucket.index.partition.expressions",
    "Numbers of buckets of partitions: ``expression,number`` pairs separated by semicolons; the first match applies.",
)
BUCKET_PARTITION_RULE = text(
    "hoodie.bucket.index.partition.rule.type", "regex", "Type of these expressions; only regex is supported."
)
BUCKET_PRUNING = flag(
    "hoodie.bucket.index.query.pruning", True, "If true, reads prune buckets that cannot hold the requested keys."
)
