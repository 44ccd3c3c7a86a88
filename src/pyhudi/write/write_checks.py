"""Checks that refuse unsupported writes before anything is changed."""

from __future__ import annotations

from pyhudi.config import Options, options, property_keys
from pyhudi.config.enums import (
    BucketIndexEngine,
    ConcurrencyMode,
    DuplicatePolicy,
    IndexType,
    Operation,
    TableType,
)
from pyhudi.errors import (
    ConfigError,
    NotAHudiTableError,
    PartitionValueWarning,
    UnsupportedTableError,
    warn,
)
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionKind
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.config.table_config import TableConfig
from pyhudi.transaction.concurrency_mode import is_non_blocking
from pyhudi.write.write_operations import DELETING, REPLACING, merges_records

FILLING = frozenset({Operation.INSERT, Operation.UPSERT, Operation.DELETE})
"""Operations that write new versions of existing base files, or log files."""
_INDEXES_OF_KEYS = (RECORD_INDEX, "secondary_index_")
"""Beginnings of the names of metadata partitions with locations of records."""
_NO_LOOKUP = frozenset(
    {
        Operation.BULK_INSERT,
        Operation.INSERT_OVERWRITE,
        Operation.INSERT_OVERWRITE_TABLE,
        Operation.BUCKET_RESCALE,
    }
)
"""Operations that add records whose keys they do not look up."""
_DATE_PARSERS = ("hoodie.keygen.datetime.parser.class", "hoodie.deltastreamer.keygen.datetime.parser.class")
"""Option of the class that parses and formats dates of the timestamp key generator, and its old name."""
_DATE_PARSER = "org.apache.hudi.keygen.parser.HoodieDateTimeParser"
_PARTITIONED_INDEXES = 9
"""First table version that supports a partitioned record index."""
KNOWN_INDEXES = frozenset(
    {
        IndexType.SIMPLE,
        IndexType.GLOBAL_SIMPLE,
        IndexType.BLOOM,
        IndexType.GLOBAL_BLOOM,
        IndexType.RECORD_INDEX,
        IndexType.GLOBAL_RECORD_LEVEL_INDEX,
        IndexType.RECORD_LEVEL_INDEX,
    }
)
"""Indexes for key lookup. In a table without a record index, keys are looked up in its files, as in Apache Hudi."""


def check_writable(
    config: TableConfig,
    merging: MergeSettings,
    operation: Operation,
    opts: Options,
    *,
    located: bool = False,
    adds_records: bool = False,
) -> None:
    """Refuse a write that cannot be done like in Apache Hudi. ``located``: rows contain the locations of their records
    in the table, or the keys with which they were read. ``adds_records``: except new ones among them.

    Raises:
        UnsupportedTableError: The message has the feature and an alternative.
        ConfigError: Options contradict the operation or the table.
    """
    name = operation.value
    config.check_readable()
    config.check_writable()
    if merges_records(operation, opts):
        MergeRules.for_table(merging)  # Check that the merger of the table is registered.
    index = opts.get_typed(options.INDEX_TYPE)
    _check_index(index, operation)
    _check_duplicate_policy(operation, opts)
    check_record_index(config, opts)
    _check_date_parser(config, opts)
    _check_concurrency_mode(config, operation, opts)
    copies = config.table_type is TableType.COPY_ON_WRITE and not config.populate_meta_fields
    if index is IndexType.BUCKET and copies and operation in FILLING:
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}=BUCKET: base files without keys (hoodie.populate.meta.fields=false) cannot "
            "be merged with rows that are identified by key; create the table as MERGE_ON_READ, or with meta "
            "fields"
        )
    if config.keys_are_of_writer and (adds_records or not located) and operation is not Operation.DELETE_PARTITION:
        raise UnsupportedTableError(
            f"table {config.name!r} does not record how keys and partition paths are made of columns (its writer "
            "passed them, as with Apache Hudi's Java client), so new rows cannot be written; set "
            f"{property_keys.RECORDKEY_FIELDS}, {property_keys.PARTITION_FIELDS} and "
            f"{property_keys.KEY_GENERATOR_TYPE} by services.change_properties. UPDATE, DELETE and table services work "
            "without them"
        )
    if not config.record_keys and not located and operation.changes_records:
        raise ConfigError(
            f"{name} requires record keys, but table {config.name!r} generates its own; pass rows that were read "
            f"from it, with their columns {RECORD_KEY} and {PARTITION_PATH}, or use insert, bulk_insert, UPDATE, "
            f"DELETE or MERGE; a new table can have {options.RECORDKEY_FIELD.key}"
        )


def _check_date_parser(config: TableConfig, opts: Options) -> None:
    """Refuse a parser of dates in Java: partition paths of timestamps would differ from those of other writers."""
    is_timestamp = any(field.kind is PartitionKind.TIMESTAMP for field in config.partition_fields)
    if not is_timestamp and config.keygen is not KeyGenType.TIMESTAMP:
        return
    found = (source[key] for source in (opts, config.properties) for key in _DATE_PARSERS if source.get(key))
    parser = next(found, _DATE_PARSER)
    if parser.strip() != _DATE_PARSER:
        raise UnsupportedTableError(
            f"{_DATE_PARSERS[0]}={parser}: parsers of dates are Java classes, which pyhudi cannot run; leave it out, "
            f"and describe the dates by {options.TIMESTAMP_INPUT_FORMAT.key} and {options.TIMESTAMP_OUTPUT_FORMAT.key}"
        )


def _check_concurrency_mode(config: TableConfig, operation: Operation, opts: Options) -> None:
    if not is_non_blocking(opts):
        return
    mode = f"{options.CONCURRENCY_MODE.key}={ConcurrencyMode.NON_BLOCKING_CONCURRENCY_CONTROL}"
    bucketed = opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET
    bucketed &= opts.get_typed(options.BUCKET_ENGINE) is BucketIndexEngine.SIMPLE
    if config.table_type is not TableType.MERGE_ON_READ or config.version < 8 or not bucketed:
        raise ConfigError(
            f"{mode} requires a merge-on-read table of version 8 or later with the simple bucket index, but this is a "
            f"{config.table_type} table of version {config.version} with {options.INDEX_TYPE.key}="
            f"{opts.text(options.INDEX_TYPE)}; use OPTIMISTIC_CONCURRENCY_CONTROL"
        )
    if config.cdc_enabled:
        raise UnsupportedTableError(
            f"{mode}: CDC logs do not record in which order concurrent writes change a record; use "
            "OPTIMISTIC_CONCURRENCY_CONTROL"
        )
    if operation in REPLACING:
        raise UnsupportedTableError(
            f"{mode}: {operation.value} replaces file groups, and the file groups that such writers create have the "
            "same ids again, so that their rows would be hidden; use OPTIMISTIC_CONCURRENCY_CONTROL, or delete rows"
        )
    indexes = [name for name in config.metadata_partitions if name.startswith(_INDEXES_OF_KEYS)]
    record_index = (options.METADATA_GLOBAL_RECORD_INDEX_ENABLE, options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE)
    if any(opts.get_typed(option) for option in record_index):
        indexes.append(RECORD_INDEX)
    if indexes:
        raise UnsupportedTableError(
            f"{mode}: the index {indexes[0]} cannot tell which of concurrent changes of a record is the last one; "
            "drop it, or use OPTIMISTIC_CONCURRENCY_CONTROL"
        )


def check_record_index(config: TableConfig, opts: Options) -> None:
    """Refuse a record index that the table version does not support.

    Raises:
        UnsupportedTableError: The options request a partitioned record index.
    """
    if opts.get_typed(options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE) and config.version < _PARTITIONED_INDEXES:
        raise UnsupportedTableError(
            f"{options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE.key}=true: tables of version {config.version} do "
            "not support a partitioned record index, which was added in Apache Hudi 1.1; use "
            f"{options.METADATA_GLOBAL_RECORD_INDEX_ENABLE.key}, or a table of version {_PARTITIONED_INDEXES}"
        )


def warn_of_old_partitions(config: TableConfig, operation: Operation, opts: Options) -> None:
    """Warn that a write leaves records in their old partitions and ignores the incoming partition values, unless the
    option is set explicitly."""
    option = options.RECORD_INDEX_UPDATE_PARTITION_PATH
    index = opts.get_typed(options.INDEX_TYPE)
    is_global = index.is_record_index and index.is_global
    if not is_global or operation is not Operation.UPSERT or not config.is_partitioned:
        return
    if not opts.is_set(option):
        fields = ", ".join(field.name for field in config.partition_fields)
        warn(
            f"with {options.INDEX_TYPE.key}={index} a record whose key is in another partition is updated there, "
            f"and its incoming {fields} is ignored; set {option.key} to true to move it, or to false to disable "
            "this warning",
            PartitionValueWarning,
        )


def _check_duplicate_policy(operation: Operation, opts: Options) -> None:
    if operation not in _NO_LOOKUP:
        return
    unsupported = {
        options.INSERT_DROP_DUPLICATES.key: opts.get_typed(options.INSERT_DROP_DUPLICATES),
        options.INSERT_DUP_POLICY.key: opts.get_typed(options.INSERT_DUP_POLICY) is not DuplicatePolicy.NONE,
    }
    for key in (key for key, is_set in unsupported.items() if is_set):
        raise ConfigError(
            f"{key}={opts[key]}: {operation.value} does not look for keys that the table has, so that it can neither "
            "drop nor refuse them; use the operation insert, or leave the option out"
        )


def _check_index(index: IndexType, operation: Operation) -> None:
    supported = (*KNOWN_INDEXES, IndexType.BUCKET)
    if index in (IndexType.INMEMORY, IndexType.FLINK_STATE) and operation in FILLING:
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}={index}: this index exists only in the memory of one writer and would be "
            f"lost when it ends, so that keys would be duplicated; use one of {', '.join(sorted(supported))}"
        )
    if index not in supported and operation.changes_records:
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}={index} is not supported yet; use one of {', '.join(sorted(supported))}"
        )


def check_table_exists(uri: str, operation: Operation) -> None:
    """Refuse operations that require an existing table. Called only if no table exists.

    Raises:
        NotAHudiTableError: The operation deletes.
    """
    if operation in DELETING:
        raise NotAHudiTableError(f"there is no Hudi table at {uri!r}, which {operation.value} requires")


def check_log_free(log_slices: int) -> None:
    """Refuse to merge base files whose newer versions are in log files, which copy-on-write tables do not have.

    Raises:
        UnsupportedTableError: There are such file slices.
    """
    if log_slices:
        raise UnsupportedTableError(
            f"{log_slices} file slices of a COPY_ON_WRITE table have log files, as if its type had been changed; "
            "compact the table as MERGE_ON_READ first"
        )
