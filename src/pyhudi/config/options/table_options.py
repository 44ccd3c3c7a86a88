"""Options that say what a table is: name, type, version, keys, partitions, merging."""

from __future__ import annotations

from pyhudi.config.enums import (
    BucketEngine,
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
    maybe_choice,
    maybe_integer,
    maybe_text,
    names,
    number,
    text,
)

_KEYGEN = "hoodie.keygen.timebased."
_WRITE = "hoodie.datasource.write."

# --- identity ------------------------------------------------------------------------------------------------------

TABLE_NAME = maybe_text(
    "hoodie.table.name",
    "Name of the table. Needed to create one; an existing table must have the same.",
    aliases=(_WRITE + "table.name",),
)
DATABASE_NAME = maybe_text("hoodie.database.name", "Database (catalog namespace) of the table.")
TABLE_TYPE = choice(
    _WRITE + "table.type",
    TableType.COPY_ON_WRITE,
    "Whether updates rewrite base files or are appended to log files.",
    any_case=False,
    aliases=(_WRITE + "storage.type", "hoodie.table.type"),
)
WRITE_TABLE_VERSION = int_choice(
    "hoodie.write.table.version",
    9,
    (6, 8, 9),
    "Format version of a new table, and of an existing one that has an earlier version. If it is not given, an "
    "existing table keeps its own.",
)
AUTO_UPGRADE = flag(
    "hoodie.write.auto.upgrade",
    True,
    "Whether a writer may upgrade an older table to the version in hoodie.write.table.version. If it is given as true, "
    "it upgrades the table also where that is not given.",
)
TIMELINE_TIMEZONE = choice(
    "hoodie.table.timeline.timezone",
    TimelineTimezone.LOCAL,
    "Zone in which instant times are told; LOCAL is the zone of the writing machine.",
    any_case=False,
)
BASE_FILE_FORMAT = choice(
    "hoodie.table.base.file.format",
    FileFormat.PARQUET,
    "Format of base files: PARQUET or ORC.",
    aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
)
POPULATE_META_FIELDS = flag(
    "hoodie.populate.meta.fields", True, "Whether files hold the five meta columns; false makes virtual keys."
)
CDC_ENABLED = flag("hoodie.table.cdc.enabled", False, "Whether writes log changes for CDC queries.")
CDC_MODE = choice("hoodie.table.cdc.supplemental.logging.mode", CdcMode.DATA_BEFORE_AFTER, "What the change log holds.")
ARCHIVE_FOLDER = text("hoodie.archivelog.folder", "archived", "Folder of the archived timeline in tables of version 6.")
PARTITION_METAFILE_BASE_FORMAT = flag(
    "hoodie.partition.metafile.use.base.format",
    False,
    "Whether partition metadata is stored as a base file instead of text.",
)
CREATE_SCHEMA = maybe_text("hoodie.table.create.schema", "Avro schema that the table was created with.")

# --- keys and partitions -------------------------------------------------------------------------------------------

RECORDKEY_FIELD = names(
    _WRITE + "recordkey.field",
    "Columns of the record key; none: keys are generated. Nested fields are written with dots.",
    aliases=("hoodie.table.recordkey.fields",),
)
PARTITIONPATH_FIELD = names(
    _WRITE + "partitionpath.field",
    "Columns of the partition path, for the custom key generator as column:simple or column:timestamp.",
    aliases=("hoodie.table.partition.fields",),
)
PRECOMBINE_FIELD = names(
    _WRITE + "precombine.field",
    "Ordering columns: of two records with one key the greater wins. Given, a new table orders by event time.",
    aliases=("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
)
ORDERING_FIELDS = PRECOMBINE_FIELD
KEYGENERATOR_CLASS = maybe_text(
    _WRITE + "keygenerator.class",
    "Key generator by Apache Hudi's class name; decided from the key and partition columns when not given.",
    aliases=("hoodie.table.keygenerator.class",),
)
KEYGENERATOR_TYPE = maybe_text(
    _WRITE + "keygenerator.type",
    "Key generator by type name. Kept for compatibility: as in Apache Hudi the class or the key columns decide.",
    aliases=("hoodie.table.keygenerator.type",),
)
KEYGEN_CONSISTENT_LOGICAL_TIMESTAMP = flag(
    _WRITE + "keygenerator.consistent.logical.timestamp.enabled",
    False,
    "Whether timestamps in keys and partition paths are written as text instead of epoch microseconds.",
)
COMPLEX_KEYGEN_NEW_ENCODING = flag(
    "hoodie.write.complex.keygen.new.encoding",
    False,
    "For tables up to version 8 with the complex generator and one key field: value only instead of field:value.",
)
COMPLEX_KEYGEN_VALIDATION = flag(
    "hoodie.write.complex.keygen.validation.enable",
    True,
    "Whether a write to such a table is refused until its encoding of keys is known.",
)
HIVE_STYLE_PARTITIONING = flag(
    _WRITE + "hive_style_partitioning", False, "Whether partition folders are named column=value."
)
URL_ENCODE_PARTITIONING = flag(
    _WRITE + "partitionpath.urlencode", False, "Whether special characters of partition values are percent-encoded."
)
SLASH_SEPARATED_DATE_PARTITIONING = flag(
    _WRITE + "slash.separated.date.partitioning", False, "Whether a date 2024-01-05 makes the folders 2024/01/05."
)
DROP_PARTITION_COLUMNS = flag(
    _WRITE + "drop.partition.columns", False, "Whether partition columns are left out of the files."
)
TIMESTAMP_TYPE = maybe_choice(
    _KEYGEN + "timestamp.type", TimestampType, "What the timestamp generator's input column holds."
)
TIMESTAMP_SCALAR_UNIT = choice(
    _KEYGEN + "timestamp.scalar.time.unit", TimeUnit.SECONDS, "Unit of the input when its type is SCALAR."
)
TIMESTAMP_INPUT_FORMAT = text(_KEYGEN + "input.dateformat", "", "Java date pattern (or a list) of text input.")
TIMESTAMP_INPUT_FORMAT_DELIMITER = text(
    _KEYGEN + "input.dateformat.list.delimiter.regex", ",", "What separates the input patterns, a regular expression."
)
TIMESTAMP_INPUT_TIMEZONE = maybe_text(_KEYGEN + "input.timezone", "Zone of text input without a zone.")
TIMESTAMP_OUTPUT_FORMAT = text(_KEYGEN + "output.dateformat", "", "Java date pattern of the partition path.")
TIMESTAMP_OUTPUT_TIMEZONE = maybe_text(_KEYGEN + "output.timezone", "Zone in which the partition path is told.")
TIMESTAMP_TIMEZONE = text(_KEYGEN + "timezone", "UTC", "Zone of input and output where they have none of their own.")

# --- merging -------------------------------------------------------------------------------------------------------

MERGE_MODE = maybe_choice(
    "hoodie.write.record.merge.mode",
    MergeMode,
    "Which of two records with one key wins; decided from the ordering columns when not given.",
    aliases=("hoodie.record.merge.mode",),
)
MERGE_STRATEGY_ID = maybe_text(
    "hoodie.write.record.merge.strategy.id",
    "Id of the merger for the mode CUSTOM.",
    aliases=("hoodie.datasource.write.record.merger.strategy", "hoodie.record.merge.strategy.id"),
)
MERGER_CLASSES = names(
    "hoodie.write.record.merge.custom.implementation.classes",
    "Java classes of mergers, of which Apache Hudi takes the one with the strategy id. They are not used here: "
    "pyhudi.register_merger makes a merger in Python known for that id.",
    aliases=("hoodie.datasource.write.record.merger.impls",),
)
PAYLOAD_CLASS = maybe_text(
    _WRITE + "payload.class",
    "Payload class of older releases; known ones are mapped to a merge mode. Overrides the merge mode.",
)
PARTIAL_UPDATE_MODE = maybe_choice(
    "hoodie.table.partial.update.mode", PartialUpdateMode, "Set by the payload class of a new table."
)
PAYLOAD_DELETE_FIELD = maybe_text(
    "hoodie.payload.delete.field", "Column whose value marks a record as a delete; goes with the marker."
)
PAYLOAD_DELETE_MARKER = maybe_text("hoodie.payload.delete.marker", "The value of that column which means delete.")
PAYLOAD_ORDERING_FIELD = maybe_text(
    "hoodie.payload.ordering.field", "Ordering column as older payload classes name it."
)
PAYLOAD_EVENT_TIME_FIELD = maybe_text("hoodie.payload.event.time.field", "Column of the event time, for statistics.")
PARTITION_EXTRACTOR_CLASS = maybe_text(
    "hoodie.datasource.hive_sync.partition_extractor_class",
    "Hint for catalog sync how a partition path becomes values; decided from the partitioning when not given.",
    aliases=("hoodie.datasource.partition_extractor_class", "hoodie.table.partition_extractor_class"),
)
PAYLOAD_UNAVAILABLE_VALUE = text(
    "hoodie.write.partial.update.unavailable.value",
    "__debezium_unavailable_value",
    "Text that stands for an unchanged value with FILL_UNAVAILABLE.",
)
MULTIPLE_BASE_FILE_FORMATS = flag(
    "hoodie.table.multiple.base.file.formats.enable", False, "Tables of several base file formats are refused."
)
INITIAL_BUCKETS = integer(
    "hoodie.bucket.index.num.buckets", 256, "Buckets of a partition, for the bucket index.", least=1
)
BUCKET_HASH_FIELD = names("hoodie.bucket.index.hash.field", "Key columns that choose the bucket; all when not given.")
BUCKET_ENGINE = choice("hoodie.index.bucket.engine", BucketEngine.SIMPLE, "How buckets are laid out.", any_case=False)
BUCKET_MAX = maybe_integer(
    "hoodie.bucket.index.max.num.buckets",
    "Buckets up to which clustering splits those of a partition, with consistent hashing; when not given, as many as a "
    "partition begins with.",
)
BUCKET_MIN = maybe_integer(
    "hoodie.bucket.index.min.num.buckets",
    "Buckets down to which clustering merges those of a partition, with consistent hashing; when not given, as many as "
    "a partition begins with.",
)
BUCKET_SPLIT_THRESHOLD = number(
    "hoodie.bucket.index.split.threshold",
    2.0,
    "Size of a bucket, in full base files, above which clustering splits it, with consistent hashing.",
)
BUCKET_MERGE_THRESHOLD = number(
    "hoodie.bucket.index.merge.threshold",
    0.2,
    "Size of a bucket, in full base files, up to which clustering merges it with its neighbours, with consistent "
    "hashing.",
)
BUCKET_PARTITION_EXPRESSIONS = maybe_text(
    "hoodie.bucket.index.partition.expressions",
    "Numbers of buckets of partitions: ``expression,number`` pairs with semicolons between; the first that fits holds.",
)
BUCKET_PARTITION_RULE = text(
    "hoodie.bucket.index.partition.rule.type", "regex", "What these expressions are; regex is the only kind."
)
BUCKET_PRUNING = flag(
    "hoodie.bucket.index.query.pruning", True, "Whether reads leave out buckets that cannot hold what is asked for."
)
