"""What is not written here, refused before anything happens."""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.config import Options, options
from pyhudi.config.values import IndexType, MergeMode, Operation, TableType
from pyhudi.errors import ConfigError, NotAHudiTableError, SchemaMismatchError, UnsupportedTableError
from pyhudi.merge.rules import Rules
from pyhudi.table.config import TableConfig
from pyhudi.table.merging import MergeSettings
from pyhudi.write.operations import DELETING
from pyhudi.write.settings import partial_columns

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
"""How keys can be looked up. In a table without a record index they are looked for in its files, as in the original."""


def check_writable(config: TableConfig, merging: MergeSettings, operation: Operation, opts: Options) -> None:
    """Refuse a write that could not be done as Apache Hudi does it.

    Raises:
        UnsupportedTableError: names the feature, and what can be done instead.
    """
    name = operation.value
    config.check_readable()
    config.check_writable()
    if config.cdc_enabled and operation in FILLING:
        raise UnsupportedTableError(
            f"the table logs its changes (hoodie.table.cdc.enabled=true), and {name} would not log them; "
            "bulk_insert and the overwriting operations need no log"
        )
    if operation in (Operation.UPSERT, Operation.DELETE):
        Rules.of_table(merging)  # the merger that the table asks for is there
    index = opts.get_typed(options.INDEX_TYPE)
    _check_index(index, operation)
    check_record_index(config, opts)
    copies = config.table_type is TableType.COPY_ON_WRITE and not config.populate_meta_fields
    if index is IndexType.BUCKET and copies and operation in FILLING:
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}=BUCKET: base files without keys (hoodie.populate.meta.fields=false) cannot be "
            "merged with rows that are told by their keys alone; make the table MERGE_ON_READ, or with meta fields"
        )
    if opts.get_typed(options.SCHEMA_EVOLUTION_ENABLE):
        raise UnsupportedTableError(
            f"{options.SCHEMA_EVOLUTION_ENABLE.key}=true: schema-on-read evolution is not written; leave it out"
        )
    if not config.record_keys and operation in (Operation.UPSERT, Operation.DELETE):
        raise ConfigError(
            f"{name} needs record keys, and table {config.name!r} generates its own; use insert or bulk_insert, or "
            f"give a new table {options.RECORDKEY_FIELD.key}"
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
