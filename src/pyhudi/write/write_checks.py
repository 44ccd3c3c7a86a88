"""Checks that refuse unsupported writes before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.config import Options, options
from pyhudi.config.enums import IndexType, MergeMode, Operation, TableType
from pyhudi.errors import (
    ConfigError,
    NotAHudiTableError,
    PartitionValueWarning,
    SchemaMismatchError,
    UnsupportedTableError,
    warn,
)
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.config.table_config import TableConfig
from pyhudi.write.write_operations import DELETING
from pyhudi.write.write_settings import partial_columns

FILLING = frozenset({Operation.INSERT, Operation.UPSERT, Operation.DELETE})
"""Operations that write new versions of existing base files, or log files."""
_PARTITIONED_INDEXES = 9
"""The first table version whose record index may be partitioned."""
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
"""Indexes for key lookup. In a table without a record index keys are looked up in its files, as in the original."""
_GLOBAL_RECORD_INDEXES = frozenset({IndexType.RECORD_INDEX, IndexType.GLOBAL_RECORD_LEVEL_INDEX})


def check_writable(
    config: TableConfig, merging: MergeSettings, operation: Operation, opts: Options, *, placed: bool = False
) -> None:
    """Refuse a write that could not be done as Apache Hudi does it. ``placed``: rows say which records of the table
    they are, by their places or by the keys that they were read with.

    Raises:
        UnsupportedTableError: names the feature, and what can be done instead.
    """
    name = operation.value
    config.check_readable()
    config.check_writable()
    if operation in (Operation.UPSERT, Operation.DELETE):
        MergeRules.of_table(merging)  # the merger that the table asks for is there
    index = opts.get_typed(options.INDEX_TYPE)
    _check_index(index, operation)
    check_record_index(config, opts)
    copies = config.table_type is TableType.COPY_ON_WRITE and not config.populate_meta_fields
    if index is IndexType.BUCKET and copies and operation in FILLING:
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}=BUCKET: base files without keys (hoodie.populate.meta.fields=false) cannot be "
            "merged with rows that are told by their keys alone; make the table MERGE_ON_READ, or with meta fields"
        )
    if not config.record_keys and not placed and operation in (Operation.UPSERT, Operation.DELETE):
        raise ConfigError(
            f"{name} needs record keys, and table {config.name!r} generates its own; give rows that were read from it, "
            f"with their columns {RECORD_KEY} and {PARTITION_PATH}, or use insert, bulk_insert, UPDATE, DELETE or "
            f"MERGE; a new table can have {options.RECORDKEY_FIELD.key}"
        )


def check_record_index(config: TableConfig, opts: Options) -> None:
    """Refuse to have a record index that tables of that version cannot have.

    Raises:
        UnsupportedTableError: the options ask for one that knows keys by partition.
    """
    if opts.get_typed(options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE) and config.version < _PARTITIONED_INDEXES:
        raise UnsupportedTableError(
            f"{options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE.key}=true: tables of version {config.version} "
            "cannot have a record index that knows keys by partition, which came with Apache Hudi 1.1; use "
            f"{options.METADATA_GLOBAL_RECORD_INDEX_ENABLE.key}, or a table of version {_PARTITIONED_INDEXES}"
        )


def warn_of_old_partitions(config: TableConfig, operation: Operation, opts: Options) -> None:
    """Warn that a write leaves records in their old partitions and drops the incoming values, unless the options say
    what is wanted."""
    wanted = options.RECORD_INDEX_UPDATE_PARTITION_PATH
    index = opts.get_typed(options.INDEX_TYPE)
    if index not in _GLOBAL_RECORD_INDEXES or operation is not Operation.UPSERT or not config.is_partitioned:
        return
    if not opts.is_set(wanted):
        fields = ", ".join(field.name for field in config.partition_fields)
        warn(
            f"with {options.INDEX_TYPE.key}={index} a record whose key is in another partition is updated there, and "
            f"its incoming {fields} is dropped; set {wanted.key} to true to move it, to false to have it so",
            PartitionValueWarning,
        )


def check_partial(config: TableConfig, operation: Operation, opts: Options, names: Iterable[str]) -> None:
    """Refuse updates of some columns that could not be written, or whose columns ``names`` are not those announced.

    Raises:
        ConfigError: they go with upserts of merge-on-read tables from version 8 on, only with an index that leaves
            records in their partitions, and only with the columns that say which version of a record wins.
        SchemaMismatchError: the input has other columns.
    """
    changed = partial_columns(opts)
    if not changed:
        return
    key = options.PARTIAL_UPDATE_SCHEMA.key
    if config.table_type is not TableType.MERGE_ON_READ or config.version < 8 or operation is not Operation.UPSERT:
        raise ConfigError(
            f"{key}: only upserts of merge-on-read tables of version 8 or later can leave columns as they are, this is "
            f"{operation.value} of a {config.table_type} table of version {config.version}; give all columns"
        )
    if opts.get_typed(options.INDEX_TYPE).is_global:
        raise ConfigError(
            f"{key}: with {options.INDEX_TYPE.key}={opts.text(options.INDEX_TYPE)} a record may move to another "
            "partition, where all its columns are needed; give all columns, or take the index SIMPLE or BLOOM"
        )
    ordered = config.merging.mode is MergeMode.EVENT_TIME_ORDERING
    tops = {name if name in changed else name.split(".")[0] for name in config.merging.ordering_fields if ordered}
    if missing := sorted(tops - changed):
        raise ConfigError(
            f"{key} lacks {', '.join(missing)}, by which records are ordered: without it every version that is stored "
            "would win over the update; add it"
        )
    other = sorted(changed.symmetric_difference(names))
    if other:
        raise SchemaMismatchError(
            f"{key} and the input differ in the columns {', '.join(other)}; they must be the same"
        )


def _check_index(index: IndexType, operation: Operation) -> None:
    known = (*KNOWN_INDEXES, IndexType.BUCKET)
    if index in (IndexType.INMEMORY, IndexType.FLINK_STATE) and operation in FILLING:
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}={index}: this index lives in the memory of one writer and forgets all keys when "
            f"that ends, so that they would be written twice; use one of {', '.join(sorted(known))}"
        )
    if index not in known and operation in (Operation.UPSERT, Operation.DELETE):
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}={index} is not supported yet; use one of {', '.join(sorted(known))}"
        )


def check_table_exists(uri: str, operation: Operation) -> None:
    """Refuse operations that have nothing to work on; called when there is no table.

    Raises:
        NotAHudiTableError: the operation deletes.
    """
    if operation in DELETING:
        raise NotAHudiTableError(f"there is no Hudi table at {uri!r}, so {operation.value} has nothing to work on")


def check_log_free(log_slices: int) -> None:
    """Refuse merging base files whose newer versions are in log files; copy-on-write tables have none.

    Raises:
        UnsupportedTableError: there are such file slices.
    """
    if log_slices:
        raise UnsupportedTableError(
            f"{log_slices} file slices of a COPY_ON_WRITE table have log files, as if its type had been changed; "
            "compact the table as MERGE_ON_READ first"
        )
