"""Settings of a sync, from the options and the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pyhudi.catalog_sync.catalogs.catalog_kinds import CatalogKind
from pyhudi.catalog_sync.partitions.partition_extractors import PartitionExtractor, partition_extractor
from pyhudi.config import Options, options, property_keys
from pyhudi.config.enums import FileFormat, SyncTableStrategy, TableType
from pyhudi.errors import InvalidOptionError
from pyhudi.table.config.table_config import TableConfig

_DEFAULT_DATABASE = "default"
_RO, _RT = "_ro", "_rt"


@dataclass(frozen=True, slots=True)
class SyncedName:
    """A name by which a table is synced.

    Attributes:
        table: Name.
        realtime: Queries merge log files.
        read_optimized: Queries of Spark read base files only.
    """

    table: str
    realtime: bool = False
    read_optimized: bool = False


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Form of the entries of a table.

    Attributes:
        file_format: Format of base files.
        partition_fields: Partition columns.
        extractor: Values of partitions from their paths.
        decodes_paths: Paths of partitions are URL-encoded, and their values are decoded.
        adds_partitions: Partitions are added to the catalog.
        has_meta_columns: Columns ``_hoodie_…`` are synced.
        has_timestamps: Timestamps are timestamps, not numbers; None: as in the entry.
        new_timestamps: The same of new entries where ``has_timestamps`` is None.
        has_comments: Comments of columns are synced.
        is_managed: New tables are managed by Hive.
        is_datasource: Entries have what Spark needs to read them as Hudi tables.
        pre_apache: Input formats are those of com.uber.hoodie.
        properties: Further properties of tables.
        serde_properties: Further properties of SerDes.
        schema_part_length: Length of a part of the schema for Spark.
        spark_version: Version of Spark; empty: not recorded.
    """

    file_format: FileFormat
    partition_fields: tuple[str, ...]
    extractor: PartitionExtractor
    decodes_paths: bool = False
    adds_partitions: bool = True
    has_meta_columns: bool = True
    has_timestamps: bool | None = None
    new_timestamps: bool = False
    has_comments: bool = False
    is_managed: bool = False
    is_datasource: bool = True
    pre_apache: bool = False
    properties: Mapping[str, str] | None = None
    serde_properties: Mapping[str, str] | None = None
    schema_part_length: int = 4000
    spark_version: str = ""

    @classmethod
    def from_options(cls, opts: Options, config: TableConfig) -> Self:
        """Return the layout of a table.

        Raises:
            ConfigError: An option is invalid.
        """
        fields = opts.get_typed(options.HIVE_SYNC_PARTITION_FIELDS)
        named = opts.get_typed(options.PARTITION_EXTRACTOR_CLASS)
        decodes = opts.get_typed(options.META_SYNC_DECODE_PARTITION)
        if not fields:
            fields = tuple(field.name for field in config.partition_fields)
            named = named or config.properties.get(property_keys.PARTITION_EXTRACTOR_CLASS)
        return cls(
            _file_format(opts, config.base_file_format),
            fields,
            partition_extractor(named, len(fields), hive_style=config.hive_style),
            decodes_paths=config.url_encode if decodes is None else decodes,
            adds_partitions=not opts.get_typed(options.META_SYNC_NO_PARTITION_METADATA),
            has_meta_columns=not opts.get_typed(options.HIVE_SYNC_OMIT_METADATA_FIELDS),
            has_timestamps=opts.get_typed(options.HIVE_SYNC_SUPPORT_TIMESTAMP),
            has_comments=opts.get_typed(options.HIVE_SYNC_COMMENT),
            is_managed=opts.get_typed(options.HIVE_SYNC_CREATE_MANAGED_TABLE),
            is_datasource=opts.get_typed(options.HIVE_SYNC_AS_DATASOURCE),
            pre_apache=opts.get_typed(options.HIVE_SYNC_PRE_APACHE_INPUT_FORMAT),
            properties=_pairs(opts, options.HIVE_SYNC_TABLE_PROPERTIES.key),
            serde_properties=_pairs(opts, options.HIVE_SYNC_SERDE_PROPERTIES.key),
            schema_part_length=opts.get_typed(options.HIVE_SYNC_SCHEMA_STRING_LENGTH),
            spark_version=opts.get_typed(options.META_SYNC_SPARK_VERSION),
        )


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Settings of a sync.

    Attributes:
        database: Database of the entries.
        names: Tables of the entries.
        layout: How entries look.
        creates_database: A database that does not exist is created.
        is_incremental: Partitions are those that changed since the last sync.
        is_conditional: The last commit is recorded only if something else changed.
        touches_partitions: Written partitions are touched.
        recreates_on_error: A table that cannot be changed is created again.
    """

    database: str
    names: tuple[SyncedName, ...]
    layout: TableLayout
    creates_database: bool
    is_incremental: bool
    is_conditional: bool
    touches_partitions: bool
    recreates_on_error: bool

    @classmethod
    def from_options(cls, opts: Options, config: TableConfig, kind: CatalogKind) -> Self:
        """Return the settings of a sync of a table.

        Args:
            opts: Options of Apache Hudi, and settings of Hive by name.
            config: Configuration of the table.
            kind: The catalog.

        Raises:
            ConfigError: An option is invalid.
        """
        glue = kind is CatalogKind.GLUE
        database = opts.get_typed(options.GLUE_DATABASE) if glue else None
        table = opts.get_typed(options.GLUE_TABLE) if glue else None
        return cls(
            database or opts.get_typed(options.HIVE_SYNC_DATABASE) or config.database or _DEFAULT_DATABASE,
            _names(table or opts.get_typed(options.HIVE_SYNC_TABLE) or config.name, config, opts),
            TableLayout.from_options(opts, config),
            creates_database=opts.get_typed(options.HIVE_SYNC_AUTO_CREATE_DATABASE),
            is_incremental=opts.get_typed(options.META_SYNC_INCREMENTAL),
            is_conditional=opts.get_typed(options.META_SYNC_CONDITIONAL),
            touches_partitions=opts.get_typed(options.META_SYNC_TOUCH_PARTITIONS),
            recreates_on_error=opts.get_typed(options.HIVE_SYNC_RECREATE_ON_ERROR),
        )


def is_sync_enabled(opts: Options) -> bool:
    """Return True if the options request a sync after each write."""
    return opts.get_typed(options.HIVE_SYNC_ENABLE) or opts.get_typed(options.META_SYNC_ENABLE)


def check_options(opts: Options) -> None:
    """Check what can be checked of the options of a sync before there is a table.

    Raises:
        ConfigError: An option is invalid.
    """
    partition_extractor(opts.get_typed(options.PARTITION_EXTRACTOR_CLASS), 1, hive_style=False)
    _file_format(opts, opts.get_typed(options.BASE_FILE_FORMAT))
    for option in (options.HIVE_SYNC_TABLE_PROPERTIES, options.HIVE_SYNC_SERDE_PROPERTIES):
        _pairs(opts, option.key)


def _names(name: str, config: TableConfig, opts: Options) -> tuple[SyncedName, ...]:
    if config.table_type is TableType.COPY_ON_WRITE:
        return (SyncedName(name),)
    read_optimized, latest = SyncedName(name, read_optimized=True), SyncedName(name, realtime=True)
    strategy = opts.get_typed(options.HIVE_SYNC_TABLE_STRATEGY)
    if strategy is not SyncTableStrategy.ALL:
        return (read_optimized if strategy is SyncTableStrategy.RO else latest,)
    with_suffix = SyncedName(name + _RT, realtime=True)
    if opts.get_typed(options.HIVE_SYNC_SKIP_RO_SUFFIX):
        return read_optimized, with_suffix  # the name of the table is taken
    named = SyncedName(name + _RO, read_optimized=True), with_suffix
    return (*named, latest) if opts.get_typed(options.META_SYNC_SNAPSHOT_WITH_TABLE_NAME) else named


def _file_format(opts: Options, of_table: FileFormat) -> FileFormat:
    option = options.HIVE_SYNC_BASE_FILE_FORMAT
    named = (opts.get_typed(option) or of_table.value).upper()
    if named not in (FileFormat.PARQUET.value, FileFormat.ORC.value):
        raise InvalidOptionError(opts.spelling(option), named, "PARQUET, ORC")
    return FileFormat(named)


def _pairs(opts: Options, key: str) -> dict[str, str]:
    """Return the pairs of an option with ``key=value`` in each line."""
    pairs = {}
    for line in opts.get(key, "").splitlines():
        if line.strip():
            name, equal, value = line.partition("=")
            if not equal:
                raise InvalidOptionError(key, line, "key=value in each line")
            pairs[name.strip()] = value.strip()
    return pairs
