"""Settings for the files of a write, from options and the table's configuration."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pyhudi.arrow.arrays import is_text
from pyhudi.config import Options, options
from pyhudi.config.enums import (
    FileFormat,
    IndexType,
    LogBlockFormat,
    MergeMode,
    Operation,
    OrcCodec,
    ParquetCodec,
    TableType,
)
from pyhudi.errors import ConfigError, InvalidOptionError, SchemaError
from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.parquet_writer import CODECS, ParquetOptions
from pyhudi.format.hfile.hfile_reader import KEY_FIELD
from pyhudi.format.log import LogOptions, LogSchema
from pyhudi.format.log.cdc_schema import cdc_schema
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.metadata.indexes.indexed_columns import indexed_columns
from pyhudi.metadata.metadata_layout import COLUMN_STATS, RECORD_INDEX
from pyhudi.metadata.writer.enabled_partitions import enabled_partitions, is_metadata_enabled
from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from pyhudi.schema.meta_columns import add_meta_columns, remove_meta_columns
from pyhudi.schema.name_resolution import field_type
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.config.table_config import TableConfig
from pyhudi.write.planning.small_files import Sizing
from pyhudi.write.settings.log_settings import CdcSettings, LogSettings
from pyhudi.write.settings.write_context import BaseFileOptions, FileColumns, RowMerging, WriteContext
from pyhudi.write.settings.write_target import WriteTarget
from pyhudi.write.write_operations import REPLACING, merges_records


def max_file_size(opts: Options, file_format: FileFormat) -> int:
    """Return the maximum size of a base file in bytes."""
    return opts.get_typed(options.ORC_MAX_FILE_SIZE if file_format is FileFormat.ORC else options.PARQUET_MAX_FILE_SIZE)


def sizing(opts: Options, file_format: FileFormat) -> Sizing:
    """Return the settings for the distribution of new records over files."""
    return Sizing(
        max_file_size=max_file_size(opts, file_format),
        small_file_limit=opts.get_typed(options.PARQUET_SMALL_FILE_LIMIT),
        split_size=opts.get_typed(options.INSERT_SPLIT_SIZE),
        auto_split=opts.get_typed(options.INSERT_AUTO_SPLIT),
        default_record_size=opts.get_typed(options.RECORD_SIZE_ESTIMATE),
        estimation_threshold=opts.get_typed(options.RECORD_SIZE_ESTIMATION_THRESHOLD),
    )


def parquet_options(opts: Options) -> ParquetOptions:
    """Return the settings of Parquet files.

    Raises:
        ConfigError: The codec is not supported, or does not have the level.
    """
    codec, level = opts.get_typed(options.PARQUET_CODEC), opts.get_typed(options.PARQUET_CODEC_LEVEL)
    parquet = ParquetOptions(
        codec=codec.value,
        level=level,
        block_size=opts.get_typed(options.PARQUET_BLOCK_SIZE),
        page_size=opts.get_typed(options.PARQUET_PAGE_SIZE),
        dictionary=opts.get_typed(options.PARQUET_DICTIONARY),
    )
    if level is not None:
        _check_level(codec, level)
    return parquet


def _check_level(codec: ParquetCodec, level: int) -> None:
    name = CODECS[codec.value]
    if name == "none" or not pa.Codec.supports_compression_level(name):
        raise InvalidOptionError(options.PARQUET_CODEC_LEVEL.key, level, f"none: {codec.value} has no levels")
    lowest, highest = pa.Codec.minimum_compression_level(name), pa.Codec.maximum_compression_level(name)
    if not lowest <= level <= highest:
        raise InvalidOptionError(options.PARQUET_CODEC_LEVEL.key, level, f"{lowest} to {highest} for {codec.value}")


def bloom_options(opts: Options) -> BloomOptions | None:
    """Return the settings of bloom filters; None if files have none."""
    if not opts.get_typed(options.BLOOM_ENABLED):
        return None
    fpp = opts.get_typed(options.BLOOM_FPP)
    if not 0 < fpp < 1:
        raise InvalidOptionError(options.BLOOM_FPP.key, opts.text(options.BLOOM_FPP), "a number between 0 and 1")
    return BloomOptions(
        num_entries=opts.get_typed(options.BLOOM_NUM_ENTRIES),
        fpp=fpp,
        dynamic_max=opts.get_typed(options.BLOOM_DYNAMIC_MAX_ENTRIES),
        kind=opts.get_typed(options.BLOOM_TYPE).value,
    )


def base_file_options(config: TableConfig, opts: Options) -> BaseFileOptions:
    """Return format and sizes of base files.

    Raises:
        ConfigError: Options of the files are invalid.
    """
    orc_codec = opts.get_typed(options.ORC_CODEC)
    return BaseFileOptions(
        extension=config.base_file_format.value.lower(),
        parquet=parquet_options(opts),
        orc_codec="uncompressed" if orc_codec is OrcCodec.NONE else orc_codec.value.lower(),
        orc_stripe_size=opts.get_typed(options.ORC_STRIPE_SIZE),
        bloom=bloom_options(opts),
        max_size=max_file_size(opts, config.base_file_format),
        separates_inserts=RECORD_INDEX in config.metadata_partitions,
    )


def partial_columns(opts: Options) -> frozenset[str]:
    """Return the columns of partial updates; none: all.

    Raises:
        InvalidOptionError: The option is not an Avro schema.
    """
    text = opts.get_typed(options.PARTIAL_UPDATE_SCHEMA)
    if not text:
        return frozenset()
    try:
        return frozenset(remove_meta_columns(from_avro(text)).names)
    except SchemaError as error:
        raise InvalidOptionError(options.PARTIAL_UPDATE_SCHEMA.key, text, f"an Avro schema ({error})") from None


def log_settings(
    config: TableConfig, merging: MergeSettings, schema: pa.Schema, avro_schema: str, opts: Options
) -> LogSettings:
    """Return the settings of log files; ``schema`` has the table's own columns.

    Raises:
        ConfigError: Apache Hudi cannot read blocks of this format, or deletes cannot be written.
    """
    kinds = [(name, field_type(schema, name)) for name in merging.ordering_fields]
    compared = [kind for _, kind in kinds] if merging.mode is not MergeMode.COMMIT_TIME_ORDERING else []
    block_format = _block_format(opts, compared)
    if block_format is LogBlockFormat.HFILE:
        _check_hfile_blocks(config, schema)
    partial = None
    if changed := partial_columns(opts):
        partial = pa.schema([f for f in schema if f.name in changed])
        avro_schema = to_avro(add_meta_columns(partial), config.name)
    if len(kinds) > 1 and config.version < 9:
        raise ConfigError(
            f"the table orders records by {', '.join(merging.ordering_fields)}, but deletes in a table of version "
            f"{config.version} support only one value; upgrade the table to version 9"
        )
    return LogSettings(
        LogSchema(avro_schema, pa.schema([(name, kind) for name, kind in kinds if kind is not None]), config.version),
        LogOptions(
            max_file_size=opts.get_typed(options.LOG_MAX_SIZE),
            max_block_size=opts.get_typed(options.LOG_BLOCK_MAX_SIZE),
            data_format=block_format.value,
            parquet=parquet_options(opts),
        ),
        positions=records_positions(config, opts),
        partial=partial,
        cdc=config.cdc_enabled,
    )


def records_positions(config: TableConfig, opts: Options) -> bool:
    """Return True if log blocks of a write record the positions of rows."""
    return config.version >= 8 and opts.get_typed(options.WRITE_RECORD_POSITIONS)


def _block_format(opts: Options, ordering_types: Iterable[pa.DataType | None]) -> LogBlockFormat:
    """Return the format of log blocks.

    Apache Hudi (1.0.2 to 1.2.0) merges the records of Parquet blocks wrongly if it compares texts, also those of its
    own blocks. Avro blocks and other types have no such fault.

    Args:
        opts: Options of the write.
        ordering_types: Types of the ordering values that readers compare.
    """
    orders_by_text = any(kind is not None and is_text(kind) for kind in ordering_types)
    if orders_by_text and not opts.is_set(options.LOG_BLOCK_FORMAT):
        return LogBlockFormat.AVRO
    return opts.get_typed(options.LOG_BLOCK_FORMAT)


def _check_hfile_blocks(config: TableConfig, schema: pa.Schema) -> None:
    """Check that records can be written to HFile blocks, in which the column ``key`` is that of the metadata table: it
    is omitted, because the key of the entry has its value."""
    setting = f"{options.LOG_BLOCK_FORMAT.key}={LogBlockFormat.HFILE}"
    if config.version >= 8:
        raise ConfigError(f"{setting}: Apache Hudi 1.x cannot read such records; use avro or parquet")
    if not config.populate_meta_fields:
        raise ConfigError(f"{setting}: the table does not store record keys; use avro or parquet")
    if KEY_FIELD in schema.names:
        raise ConfigError(f"{setting}: the values of the column {KEY_FIELD!r} would be lost; use avro or parquet")


def cdc_settings(config: TableConfig, opts: Options, avro_schema: str) -> CdcSettings | None:
    """Return the settings of CDC logs, if the table has them."""
    if not config.cdc_enabled:
        return None
    schema = LogSchema(cdc_schema(config.cdc_mode, avro_schema), pa.schema([]), config.version)
    limits = LogOptions(
        max_file_size=opts.get_typed(options.LOG_MAX_SIZE), max_block_size=opts.get_typed(options.LOG_BLOCK_MAX_SIZE)
    )
    return CdcSettings(config.cdc_mode, schema, limits)


def write_context(target: WriteTarget, operation: Operation, instant: str, schema: pa.Schema) -> WriteContext:
    """Return the context for the tasks of a write.

    Args:
        target: The table and the settings of the write.
        operation: Operation of the write.
        instant: Requested instant of the write.
        schema: The table's own columns as stored in files.

    Raises:
        ConfigError: Options of the files are invalid.
        UnsupportedTableError: The merger of the table is not registered.
    """
    config, merging, opts = target.config, target.merging, target.opts
    updates = operation.changes_records
    avro_schema = to_avro(add_meta_columns(schema), config.name)
    logs = None
    # With the bucket index, new records of a bucket are written to its log files, too.
    appends = opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET and operation not in REPLACING
    if (updates or appends) and config.table_type is TableType.MERGE_ON_READ:
        logs = log_settings(config, merging, schema, avro_schema, opts)
    # inserts into log files are merged by readers
    merges = merges_records(operation, opts) and (updates or logs is None)
    return WriteContext(
        storage=target.storage,
        instant=instant,
        columns=FileColumns(schema, avro_schema, config.populate_meta_fields, _indexed(config, schema, opts)),
        merging=RowMerging(
            MergeRules.for_table(merging) if merges else MergeRules(), hard_deletes=operation is Operation.DELETE
        ),
        files=base_file_options(config, opts),
        partition_metadata_format=config.partition_metadata_format,
        logs=logs,
        cdc=cdc_settings(config, opts, avro_schema),
        invalid_text=opts.get_typed(options.READ_INVALID_TEXT),
    )


def _indexed(config: TableConfig, schema: pa.Schema, opts: Options) -> pa.Schema | None:
    """Return the columns whose bounds the metadata table stores."""
    if not is_metadata_enabled(opts) or COLUMN_STATS not in {
        *enabled_partitions(config, opts),
        *config.metadata_partitions,
    }:
        return None
    return indexed_columns(config, schema, opts)
