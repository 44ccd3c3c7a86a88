"""Checks of appends in sessions without pyhudi: what requires Spark jobs or Spark's functions is refused."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import FailedWritesPolicy, IndexType, Operation, SortMode
from pyhudi.config.option import Option
from pyhudi.errors import UnsupportedTableError
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.keygen.partition_path_formatter import partition_paths
from pyhudi.keygen.record_key_formatter import new_record_keys
from pyhudi.metadata.metadata_layout import FILE_PARTITIONS
from pyhudi.read.schema.table_columns import TableSchema, resolve_table_schema
from pyhudi.services.upgrade.auto_upgrade import required_version
from pyhudi.table.config.key_generator_type import PartitionKind
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.transaction.concurrency_mode import failed_writes_policy

ACTIVATE = "call pyhudi.activate(spark) first"
_BULK_INSERT = f"{options.OPERATION.key}={Operation.BULK_INSERT}"
_NEEDS_JOBS: tuple[Option[bool], ...] = (
    options.COMBINE_BEFORE_INSERT,
    options.INSERT_DROP_DUPLICATES,
    options.METADATA_GLOBAL_RECORD_INDEX_ENABLE,
    options.METADATA_PARTITIONED_RECORD_INDEX_ENABLE,
    options.COMPACT_INLINE,
    options.COMPACT_SCHEDULE_INLINE,
    options.LOG_COMPACTION_INLINE,
    options.CLUSTERING_INLINE,
    options.CLUSTERING_SCHEDULE_INLINE,
    options.TTL_INLINE,
    options.SCHEMA_EVOLUTION_ENABLE,
)


def check_operation(opts: Options, *, keyed: bool) -> None:
    """Refuse operations that read records of the table, also if they are the default."""
    operation = opts.get_typed(options.OPERATION)
    if operation is Operation.BULK_INSERT or not (keyed or opts.is_set(options.OPERATION)):
        return
    default_hint = "" if opts.is_set(options.OPERATION) else ", the default operation of tables with record keys,"
    raise UnsupportedTableError(
        f"format('hudi') in a session without pyhudi only appends rows: {operation}{default_hint} requires jobs "
        f"that read the table's records. Use {_BULK_INSERT} if no key is in the table yet, or {ACTIVATE}"
    )


def check_options(config: TableConfig, opts: Options) -> None:
    """Refuse options for unsupported work."""
    wanted = [f"{option.key}=true" for option in _NEEDS_JOBS if opts.is_set(option) and opts.get_typed(option)]
    index = opts.get_typed(options.INDEX_TYPE)
    if index is IndexType.BUCKET or index.is_record_index:
        wanted.append(f"{options.INDEX_TYPE.key}={index}")
    if opts.get_typed(options.BULKINSERT_SORT_MODE) is not SortMode.NONE:
        wanted.append(f"{options.BULKINSERT_SORT_MODE.key}={opts.get_typed(options.BULKINSERT_SORT_MODE)}")
    if opts.get_typed(options.BULKINSERT_SORT_COLUMNS):
        wanted.append(options.BULKINSERT_SORT_COLUMNS.key)
    if required_version(config, opts) is not None:
        wanted.append(f"an upgrade to version {required_version(config, opts)}")
    if wanted:
        raise UnsupportedTableError(
            f"{wanted[0]} requires Spark jobs, which a Python data source cannot run; leave it out, or {ACTIVATE}"
        )
    policy = failed_writes_policy(opts)
    if policy is not FailedWritesPolicy.EAGER:
        raise UnsupportedTableError(
            f"failed writes are rolled back {policy} ({options.CONCURRENCY_MODE.key}, "
            f"{options.FAILED_WRITES_POLICY.key}), which requires heartbeats; a Python data source has no process "
            f"for them. Use a single writer at a time, or {ACTIVATE}"
        )


def check_indexes(config: TableConfig) -> None:
    """Refuse tables with indexes that a write updates by Spark jobs."""
    more = sorted(set(config.metadata_partitions) - set(FILE_PARTITIONS))
    if more:
        raise UnsupportedTableError(
            f"the table has the index {more[0]!r}, which a write updates by a Spark job, but a Python data source "
            f"cannot run jobs; {ACTIVATE}"
        )


def check_keys(spec: KeySpec) -> None:
    """Refuse keys and partition paths that Spark's functions make."""
    if spec.key_class or spec.path_class:
        raise UnsupportedTableError(f"{spec.key_class or spec.path_class} makes keys by Spark's functions; {ACTIVATE}")
    formatted = [field.name for field in spec.partition_fields if field.kind is PartitionKind.TIMESTAMP]
    if formatted or spec.consistent_timestamps:
        what = f"the partition field {formatted[0]!r}" if formatted else "the record key"
        raise UnsupportedTableError(f"{what} holds formatted times, which require Spark's functions; {ACTIVATE}")


def check_key_columns(incoming: pa.Schema, spec: KeySpec) -> None:
    """Refuse missing key columns and unsupported types of keys."""
    nothing = pa.RecordBatch.from_pylist([], incoming)
    if not spec.auto_keys:
        new_record_keys(nothing, spec)
    partition_paths(nothing, spec)


def columns_without_history(pinned: TableSnapshot | None) -> TableSchema | None:
    """Return the columns of a table, None if it has none yet; refuse a table with a schema history."""
    columns = None if pinned is None else resolve_table_schema(pinned)
    if columns is not None and columns.has_history:
        raise UnsupportedTableError(f"the table has a schema history, which a write must continue; {ACTIVATE}")
    return columns
