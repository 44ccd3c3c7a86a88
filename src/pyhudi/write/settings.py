"""What options and the table's configuration mean for the files of a write."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.values import FileFormat, Operation
from pyhudi.errors import InvalidOptionError
from pyhudi.format.basefile import BloomOptions
from pyhudi.format.parquet import ParquetOptions
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
    """How parquet files are written."""
    level = opts.get_typed(options.PARQUET_CODEC_LEVEL)
    try:
        codec_level = int(level) if level else None
    except ValueError:
        raise InvalidOptionError(options.PARQUET_CODEC_LEVEL.key, level, "a whole number, or empty") from None
    return ParquetOptions(
        codec=opts.get_typed(options.PARQUET_CODEC).value,
        level=codec_level,
        block_size=opts.get_typed(options.PARQUET_BLOCK_SIZE),
        page_size=opts.get_typed(options.PARQUET_PAGE_SIZE),
        dictionary=opts.get_typed(options.PARQUET_DICTIONARY),
    )


def bloom_options(opts: Options) -> BloomOptions | None:
    """How bloom filters are made; None: files carry none."""
    if not opts.get_typed(options.BLOOM_ENABLED):
        return None
    return BloomOptions(
        num_entries=opts.get_typed(options.BLOOM_NUM_ENTRIES),
        fpp=opts.get_typed(options.BLOOM_FPP),
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
        UnsupportedTableError: the write merges rows by a merger that is not registered.
    """
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
        orc_codec=opts.get_typed(options.ORC_CODEC).value.lower(),
        bloom=bloom_options(opts),
        max_file_size=max_file_size(opts, config.base_file_format),
        partition_metadata_format=config.base_file_format if config.partition_metafile_base_format else None,
    )
