"""Options of the metadata table and of its indexes."""

from __future__ import annotations

from pyhudi.config.option import flag, integer, name_list, optional_flag, optional_text

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
METADATA_SECONDARY_ENABLE = flag(
    "hoodie.metadata.index.secondary.enable",
    True,
    "If true, a write builds the index of hoodie.metadata.index.secondary.column.",
)
METADATA_SECONDARY_COLUMN = optional_text(
    "hoodie.metadata.index.secondary.column",
    "Column of which a write builds a secondary index, unless it has one, where the table has a global record index.",
)
INDEX_NAME = optional_text(
    "hoodie.index.name",
    "Name of the index of hoodie.metadata.index.secondary.column. Default: the name of the column.",
)
