"""Keys of ``hoodie.properties``, named as in Apache Hudi's ``HoodieTableConfig``.

`pyhudi.table.config.typed_properties` reads their values with types and defaults.
"""

from __future__ import annotations

# --- identity ------------------------------------------------------------------------------------------------------

NAME = "hoodie.table.name"
DATABASE_NAME = "hoodie.database.name"
TYPE = "hoodie.table.type"
VERSION = "hoodie.table.version"
INITIAL_VERSION = "hoodie.table.initial.version"
TABLE_FORMAT = "hoodie.table.format"
TABLE_CHECKSUM = "hoodie.table.checksum"
CREATE_SCHEMA = "hoodie.table.create.schema"

# --- timeline ------------------------------------------------------------------------------------------------------

TIMELINE_LAYOUT_VERSION = "hoodie.timeline.layout.version"
TIMELINE_PATH = "hoodie.timeline.path"
TIMELINE_HISTORY_PATH = "hoodie.timeline.history.path"
TIMELINE_TIMEZONE = "hoodie.table.timeline.timezone"
ARCHIVELOG_FOLDER = "hoodie.archivelog.folder"

# --- files ---------------------------------------------------------------------------------------------------------

BASE_FILE_FORMAT = "hoodie.table.base.file.format"
MULTIPLE_BASE_FILE_FORMATS = "hoodie.table.multiple.base.file.formats.enable"
POPULATE_META_FIELDS = "hoodie.populate.meta.fields"
PARTITION_METAFILE_USE_BASE_FORMAT = "hoodie.partition.metafile.use.base.format"
DROP_PARTITION_COLUMNS = "hoodie.datasource.write.drop.partition.columns"
CDC_ENABLED = "hoodie.table.cdc.enabled"
CDC_SUPPLEMENTAL_LOGGING_MODE = "hoodie.table.cdc.supplemental.logging.mode"

# --- keys and partitions -------------------------------------------------------------------------------------------

RECORDKEY_FIELDS = "hoodie.table.recordkey.fields"
PARTITION_FIELDS = "hoodie.table.partition.fields"
KEY_GENERATOR_CLASS = "hoodie.table.keygenerator.class"
KEY_GENERATOR_TYPE = "hoodie.table.keygenerator.type"
HIVE_STYLE_PARTITIONING = "hoodie.datasource.write.hive_style_partitioning"
URL_ENCODE_PARTITIONING = "hoodie.datasource.write.partitionpath.urlencode"
SLASH_SEPARATED_DATE_PARTITIONING = "hoodie.datasource.write.slash.separated.date.partitioning"
PARTITION_EXTRACTOR_CLASS = "hoodie.table.partition_extractor_class"

TIMESTAMP_KEYGEN_PREFIX = "hoodie.keygen.timebased."
"""Prefix of the settings of the timestamp key generator."""
TIMESTAMP_OUTPUT_FORMAT = f"{TIMESTAMP_KEYGEN_PREFIX}output.dateformat"

# --- merging -------------------------------------------------------------------------------------------------------

ORDERING_FIELDS = "hoodie.table.ordering.fields"
PRECOMBINE_FIELD = "hoodie.table.precombine.field"
"""Name of the ordering columns in tables up to version 8."""
RECORD_MERGE_MODE = "hoodie.record.merge.mode"
RECORD_MERGE_STRATEGY_ID = "hoodie.record.merge.strategy.id"
RECORD_MERGER_STRATEGY = "hoodie.compaction.record.merger.strategy"
"""Name of the strategy id in tables up to version 6."""
RECORD_MERGE_PROPERTY_PREFIX = "hoodie.record.merge.property."
"""Prefix of the settings that the payload class of a table implies."""
PARTIAL_UPDATE_MODE = "hoodie.table.partial.update.mode"
PAYLOAD_CLASS = "hoodie.compaction.payload.class"
LEGACY_PAYLOAD_CLASS = "hoodie.table.legacy.payload.class"

# --- indexes and bootstrap -----------------------------------------------------------------------------------------

METADATA_PARTITIONS = "hoodie.table.metadata.partitions"
METADATA_PARTITIONS_INFLIGHT = "hoodie.table.metadata.partitions.inflight"
INDEX_DEFINITIONS_PATH = "hoodie.table.index.defs.path"
BOOTSTRAP_INDEX_CLASS = "hoodie.bootstrap.index.class"
BOOTSTRAP_INDEX_TYPE = "hoodie.bootstrap.index.type"
BOOTSTRAP_UNFINISHED = "pyhudi.bootstrap.unfinished"
"""``true`` from the creation of a bootstrapped table until all rows of its source are committed. Apache Hudi ignores
it."""
