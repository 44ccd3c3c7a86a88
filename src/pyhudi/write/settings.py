"""What options and the table's configuration mean for the files of a write."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.values import FileFormat, Operation, OrcCodec, ParquetCodec
from pyhudi.errors import InvalidOptionError
from pyhudi.format.basefile import BloomOptions
from pyhudi.format.parquet import CODECS, ParquetOptions
from pyhudi.merge.rules import Rules
from pyhudi.schema.arrow_avro import to_avro
from pyhudi.schema.meta import add_meta_columns
from pyhudi.storage import Storage
from pyhudi.table.config import TableConfig
from pyhudi.table.merging import MergeSettings
from pyhudi.write.context import WriteContext
from pyhudi.write.profile import Sizing


def max_file_size(opts: Options, file_format: FileFormat) -> int:
    """Bytes at which a base file is full."""
    return opts.get_typed(options.ORC_MAX_FILE_SIZE if file_format is FileFormat.ORC else options.PARQUET_MAX_FILE_SIZE)


def sizing(opts: Options, file_format: FileFormat) -> Sizing:
    """How new records are spread over files."""
    return Sizing(
        max_file_size=max_file_size(opts, file_format),
        small_file_limit=opts.get_typed(options.PARQUET_SMALL_FILE_LIMIT),
        split_size=opts.get_typed(options.INSERT_SPLIT_SIZE),
        auto_split=opts.get_typed(options.INSERT_AUTO_SPLIT),
        default_record_size=opts.get_typed(options.RECORD_SIZE_ESTIMATE),
        estimation_threshold=opts.get_typed(options.RECORD_SIZE_ESTIMATION_THRESHOLD),
    )


def parquet_options(opts: Options) -> ParquetOptions:
    """How parquet files are written.

    Raises:
        ConfigError: a codec that cannot be written, or a level that it does not have.
    """
    codec, level = opts.get_typed(options.PARQUET_CODEC), opts.get_typed(options.PARQUET_CODEC_LEVEL)
    found = ParquetOptions(
        codec=codec.value,
        level=level,
        block_size=opts.get_typed(options.PARQUET_BLOCK_SIZE),
        page_size=opts.get_typed(options.PARQUET_PAGE_SIZE),
        dictionary=opts.get_typed(options.PARQUET_DICTIONARY),
    )
    if level is not None:
        _check_level(codec, level)
    return found


def _check_level(codec: ParquetCodec, level: int) -> None:
    name = CODECS[codec.value]
    if name == "none" or not pa.Codec.supports_compression_level(name):
        raise InvalidOptionError(options.PARQUET_CODEC_LEVEL.key, level, f"none: {codec.value} has no levels")
    least, most = pa.Codec.minimum_compression_level(name), pa.Codec.maximum_compression_level(name)
    if not least <= level <= most:
        raise InvalidOptionError(options.PARQUET_CODEC_LEVEL.key, level, f"{least} to {most} for {codec.value}")


def bloom_options(opts: Options) -> BloomOptions | None:
    """How bloom filters are made; None: files carry none."""
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


def write_context(
    storage: Storage,
    config: TableConfig,
    merging: MergeSettings,
    opts: Options,
    operation: Operation,
    instant: str,
    schema: pa.Schema,
) -> WriteContext:
    """What the tasks of a write need; ``schema`` has the table's own columns as they stand in the files.

    Raises:
        ConfigError: options of the files are wrong.
        UnsupportedTableError: the write merges rows by a merger that is not registered.
    """
    orc_codec = opts.get_typed(options.ORC_CODEC)
    merges = operation in (Operation.UPSERT, Operation.DELETE)
    return WriteContext(
        storage=storage,
        instant=instant,
        schema=schema,
        avro_schema=to_avro(add_meta_columns(schema), config.name),
        rules=Rules.of_table(merging) if merges else Rules(),
        hard_deletes=operation is Operation.DELETE,
        populate_meta_fields=config.populate_meta_fields,
        extension=config.base_file_format.value.lower(),
        parquet=parquet_options(opts),
        orc_codec="uncompressed" if orc_codec is OrcCodec.NONE else orc_codec.value.lower(),
        orc_stripe_size=opts.get_typed(options.ORC_STRIPE_SIZE),
        bloom=bloom_options(opts),
        max_file_size=max_file_size(opts, config.base_file_format),
        partition_metadata_format=config.base_file_format if config.partition_metafile_base_format else None,
    )
