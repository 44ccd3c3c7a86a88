"""Options of the sync of tables to a Hive metastore or to AWS Glue."""

from __future__ import annotations

from pyhudi.config.enums import SyncTableStrategy
from pyhudi.config.option import choice, flag, integer, name_list, optional_flag, optional_text, text

_HIVE = "hoodie.datasource.hive_sync."
_META = "hoodie.meta.sync."
_GLUE = "hoodie.datasource.meta.sync.glue."

# --- whether and where -----------------------------------------------------------------------------------------------

HIVE_SYNC_ENABLE = flag(
    _HIVE + "enable", False, "If true, the table is synced to a Hive metastore after each write (`pyhudi[hive]`)."
)
META_SYNC_ENABLE = flag(
    "hoodie.datasource.meta.sync.enable", False, "The same as `hoodie.datasource.hive_sync.enable`."
)
META_SYNC_TOOL_CLASS = text(
    _META + "client.tool.class",
    "org.apache.hudi.hive.HiveSyncTool",
    "Catalogs to sync, by Apache Hudi's class names with commas between: org.apache.hudi.hive.HiveSyncTool, "
    "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool (`pyhudi[glue]`).",
)
HIVE_SYNC_MODE = optional_text(
    _HIVE + "mode",
    "How the catalog is changed: `hms`, by requests to the metastore, is the default here; `glue`: in AWS Glue.",
)
HIVE_SYNC_USE_JDBC = optional_flag(_HIVE + "use_jdbc", "Refused if true: HiveServer2 is not asked; see the mode.")
HIVE_SYNC_USE_SPARK_CATALOG = flag(
    _HIVE + "use_spark_catalog", False, "Refused if true: Spark's catalog is not synced, but a metastore."
)
HIVE_SYNC_METASTORE_URIS = optional_text(
    _HIVE + "metastore.uris",
    "Addresses of the metastore, `thrift://host:port,…`; the first one that answers is used. Default: "
    "`hive.metastore.uris` of the Spark session (also as `spark.hadoop.hive.metastore.uris`) or of hive-site.xml.",
)
HIVE_SYNC_DATABASE = optional_text(
    _HIVE + "database", "Database of the synced table. Default: that of the table (`hoodie.database.name`), or default."
)
HIVE_SYNC_TABLE = optional_text(_HIVE + "table", "Name of the synced table. Default: the name of the table.")
HIVE_SYNC_AUTO_CREATE_DATABASE = flag(
    _HIVE + "auto_create_database", True, "If true, a database that does not exist is created."
)
HIVE_SYNC_IGNORE_EXCEPTIONS = flag(
    _HIVE + "ignore_exceptions", False, "If true, a failed sync after a write is logged instead of raised."
)
META_SYNC_INCREMENTAL = flag(
    _META + "incremental",
    True,
    "If true, a sync takes the partitions that changed since the previous one from the timeline, and does nothing if "
    "there was no commit; otherwise all partitions are compared.",
)
META_SYNC_CONDITIONAL = flag(
    "hoodie.datasource.meta_sync.condition.sync",
    False,
    "If true, the time of the last synced commit is recorded only if columns, properties or partitions changed.",
)

# --- which tables ----------------------------------------------------------------------------------------------------

HIVE_SYNC_TABLE_STRATEGY = choice(
    _HIVE + "table.strategy",
    SyncTableStrategy.ALL,
    "Entries of a merge-on-read table: its read-optimized rows (RO) or its latest rows (RT) by the name of the table, "
    "or both, with the suffixes `_ro` and `_rt` (ALL).",
)
HIVE_SYNC_SKIP_RO_SUFFIX = flag(
    _HIVE + "skip_ro_suffix",
    False,
    "If true, the table of read-optimized rows has the name of the table, without `_ro`, with the strategy ALL.",
)
META_SYNC_SNAPSHOT_WITH_TABLE_NAME = flag(
    _META + "sync_snapshot_with_table_name",
    True,
    "If true, a merge-on-read table is also synced by its own name, with its latest rows, with the strategy ALL.",
)

# --- what a table looks like -----------------------------------------------------------------------------------------

HIVE_SYNC_BASE_FILE_FORMAT = optional_text(_HIVE + "base_file_format", "PARQUET or ORC. Default: that of the table.")
HIVE_SYNC_PARTITION_FIELDS = name_list(
    _HIVE + "partition_fields", "Partition columns of the synced table. Default: those of the table."
)
META_SYNC_DECODE_PARTITION = optional_flag(
    _META + "decode_partition",
    "If true, values of partitions are those of URL-encoded paths, decoded; otherwise the texts in the paths. Default: "
    "true if the paths of the table are URL-encoded.",
)
META_SYNC_METADATA_FILE_LISTING = optional_flag(
    _META + "metadata_file_listing",
    "If true, partitions are listed in the metadata table, otherwise in storage. Default: `hoodie.metadata.enable`.",
)
META_SYNC_NO_PARTITION_METADATA = flag(
    _META + "no_partition_metadata", False, "If true, partitions are not added to the metastore."
)
META_SYNC_TOUCH_PARTITIONS = flag(
    _META + "touch.partitions.enabled",
    False,
    "If true, partitions that were written since the previous sync are touched in the metastore if nothing else of "
    "them changed, so that listeners of the metastore see them.",
)
HIVE_SYNC_BATCH_NUM = integer(_HIVE + "batch_num", 1000, "Number of partitions in a request.", minimum=1)
HIVE_SYNC_OMIT_METADATA_FIELDS = flag(
    _HIVE + "omit_metadata_fields", False, "If true, the synced table has no columns `_hoodie_…`."
)
HIVE_SYNC_SUPPORT_TIMESTAMP = optional_flag(
    _HIVE + "support_timestamp",
    "If true, timestamps have the Hive type timestamp, otherwise bigint. Default: as in the entry; in a new one "
    "bigint, by `CALL hive_sync` timestamp, as in Apache Hudi.",
)
HIVE_SYNC_CREATE_MANAGED_TABLE = flag(
    _HIVE + "create_managed_table",
    False,
    "If true, a managed table is created: Hive deletes its files when it is dropped. Otherwise an external one.",
)
HIVE_SYNC_TABLE_PROPERTIES = text(
    _HIVE + "table_properties", "", "Further properties of the synced table, `key=value` in each line."
)
HIVE_SYNC_SERDE_PROPERTIES = text(
    _HIVE + "serde_properties", "", "Further properties of the SerDe of the synced table, `key=value` in each line."
)
HIVE_SYNC_AS_DATASOURCE = flag(
    _HIVE + "sync_as_datasource", True, "If true, Spark with Apache Hudi's jar reads the synced table as a Hudi table."
)
HIVE_SYNC_SCHEMA_STRING_LENGTH = integer(
    _HIVE + "schema_string_length_thresh",
    4000,
    "Length of the properties that hold the parts of the schema for Spark.",
    minimum=1,
)
META_SYNC_SPARK_VERSION = text(
    "hoodie.meta_sync.spark.version", "", "Version of Spark that the synced table names as its creator."
)
HIVE_SYNC_COMMENT = flag(_HIVE + "sync_comment", False, "If true, comments of columns are synced.")
HIVE_SYNC_PRE_APACHE_INPUT_FORMAT = flag(
    _HIVE + "use_pre_apache_input_format", False, "If true, the input formats are those of the package com.uber.hoodie."
)
HIVE_SYNC_RECREATE_ON_ERROR = flag(
    _HIVE + "recreate_table_on_error",
    False,
    "If true, a table in the metastore that cannot be changed, as to incompatible types, is dropped and created again. "
    "Files are not touched.",
)

# --- AWS Glue --------------------------------------------------------------------------------------------------------

GLUE_DATABASE = optional_text(
    _GLUE + "database_name", "Database in AWS Glue. Default: as of `hoodie.datasource.hive_sync.database`."
)
GLUE_TABLE = optional_text(
    _GLUE + "table_name", "Table in AWS Glue. Default: as of `hoodie.datasource.hive_sync.table`."
)
GLUE_CATALOG_ID = optional_text(_GLUE + "catalogId", "Account of the catalog. Default: that of the credentials.")
GLUE_SKIP_TABLE_ARCHIVE = flag(
    _GLUE + "skip_table_archive", True, "If true, AWS Glue keeps no earlier version of a table that is changed."
)
GLUE_METADATA_FILE_LISTING = flag(
    _GLUE + "metadata_file_listing", False, "If true, Athena lists the files of the table in its metadata table."
)
GLUE_REGION = optional_text("hoodie.aws.glue.region", "Region of AWS Glue. Default: that of the AWS configuration.")
GLUE_ENDPOINT = optional_text("hoodie.aws.glue.endpoint", "Address of AWS Glue. Default: that of the region.")
