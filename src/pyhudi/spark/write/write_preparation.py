"""Preparation of writes: everything that can be checked and derived without the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import IndexType, Operation
from pyhudi.errors import ConfigError
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.keygen.key_spec import KeySpec, check_generator_usable
from pyhudi.metadata.indexes.indexed_columns import check_listed_columns
from pyhudi.read.complex_key_encoding import names_parts
from pyhudi.read.execution.file_slice_reader import column_names
from pyhudi.read.schema.table_columns import TableSchema, resolve_table_schema
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.services.indexing.index_of_write import check_index_of_write
from pyhudi.services.post_commit_services import check_services_after_commit
from pyhudi.spark.keys.deduplication import check_ordering_columns
from pyhudi.spark.keys.key_generator import check_key_columns
from pyhudi.spark.keys.time_zones import check_time_zones
from pyhudi.spark.spark_types import spark_schema
from pyhudi.spark.write.dml_commit import NewRecords, RowChanges
from pyhudi.spark.write.plans.bulk_insert.bulk_insert_sort import check_sort_columns
from pyhudi.spark.write.stored_keys import identifies_records, keep_stored_keys
from pyhudi.spark.write.write_input import as_in_table, own_columns, unused_by_deletes, without_collations, write_schema
from pyhudi.spark.write.write_job import ExistingTable, RowKeys, WriteJob
from pyhudi.storage import Storage
from pyhudi.table.bucket_index_detection import check_not_bucketed
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.sql_timestamps import has_sql_timestamps
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.transaction.locks.lock_factory import check_lock_provider
from pyhudi.write.column_checks import check_partial
from pyhudi.write.settings.write_target import WriteTarget
from pyhudi.write.write_checks import check_writable, warn_of_old_partitions

_ENCRYPTION = "parquet.crypto.factory.class"
"""The setting by which Parquet's Java library encrypts files."""


def key_spec(table: TableSnapshot, opts: Options) -> KeySpec:
    """Return the specification of the keys of a table. Samples stored keys, if their form depends on the writer."""
    spec = partition_path_spec(table.storage, table.config, opts)
    named = names_parts(table, opts, spec)
    return spec if named is None else replace(spec, named_parts=named)


def key_spec_of_write(target: WriteTarget, pinned: TableSnapshot | None) -> KeySpec:
    """Return the specification of the keys of a write.

    Args:
        target: The table and the options of the write.
        pinned: The table before the write; None: it is new.
    """
    config, opts = target.config, target.opts
    spec = KeySpec.from_config(config, opts) if pinned is None else key_spec(pinned, opts)
    return spec.at(target.storage)


def partition_path_spec(storage: Storage, config: TableConfig, opts: Options) -> KeySpec:
    """Return the specification of the keys of a table, in which the form of record keys may be another one."""
    spec = KeySpec.from_config(config, opts)
    return replace(spec, sql_timestamps=True) if has_sql_timestamps(storage, config) else spec


@dataclass(frozen=True, slots=True)
class KeyedSnapshot:
    """Snapshot of a table that a statement has read.

    Attributes:
        table: The snapshot.
        spec: Specification of its keys (`key_spec`).
    """

    table: TableSnapshot
    spec: KeySpec


def prepare_write(
    df: DataFrame,
    table: TableMetaClient | Storage,
    operation: Operation,
    opts: Options,
    *,
    changes: RowChanges | None = None,
    pinned: KeyedSnapshot | None = None,
) -> WriteJob:
    """Check everything that can be checked without the data.

    Args:
        df: Rows to write.
        table: The table, or the storage of a new one.
        operation: Operation of the write.
        opts: Options of the write.
        changes: Differences from other writes, if the rows are changes of rows that were read.
        pinned: The table as the caller has read it; None: it is read now.

    Raises:
        ConfigError: Options contradict each other or the table.
        UnsupportedTableError: The table or the operation cannot be written.
        SchemaMismatchError: The rows lack columns, or have other types than the table.
    """
    _check_not_encrypted(df.sparkSession, opts)
    df = without_collations(df)
    client, storage = (table, table.storage) if isinstance(table, TableMetaClient) else (None, table)
    target = WriteTarget.from_options(storage, client, opts)
    config, opts = target.config, target.opts
    stored_keys = changes is None and _has_stored_keys(df, client, config, operation)
    located = changes is not None and changes.located
    keeps_keys = changes is not None and changes.keeps_keys
    adds_records = changes is not None and changes.new_records is not NewRecords.NONE
    _check_operation(target, operation, located=located or stored_keys, adds_records=adds_records)
    snapshot = None if pinned is None else pinned.table
    if snapshot is None and client is not None:
        snapshot = TableSnapshot.load(client)
    if snapshot is not None:
        _check_table(snapshot, operation, opts, keeps_keys=keeps_keys)
    spec = key_spec_of_write(target, snapshot) if pinned is None else pinned.spec.at(storage)
    by_key = stored_keys and operation is Operation.DELETE  # needs no other column
    by_path = operation is Operation.DELETE_PARTITION and bool(opts.get_typed(options.PARTITIONS_TO_DELETE))
    rows = own_columns(df, may_be_none=by_key or by_path)
    _check_columns(rows, spec, target, operation, keyed=not (by_key or by_path or keeps_keys))
    check_time_zones(df.sparkSession, spec)
    stored = None if snapshot is None else resolve_table_schema(snapshot)
    if stored is not None and operation is Operation.DELETE:
        unused = unused_by_deletes(from_spark_json(rows.schema.json()), stored.schema, config, opts)
        df, rows = df.drop(*unused), rows.drop(*unused)
    incoming = from_spark_json(rows.schema.json())
    schema = write_schema(incoming, None if stored is None else stored.schema, config, operation, opts)
    # the key generator of Apache Hudi gets rows with the table's types, too
    keyed_by = [*spec.record_fields, *(field.name for field in spec.partition_fields), *target.merging.ordering_fields]
    rows = keep_stored_keys(as_in_table(df, keyed_by, schema)) if stored_keys else as_in_table(rows, keyed_by, schema)
    existing = None if client is None or snapshot is None else _existing(client, snapshot, stored, schema)
    bucketing = _bucketing(target, snapshot)
    check_generator_usable(spec, config, bucketed=bucketing is not None)
    check_listed_columns(remove_meta_columns(schema), opts)
    check_index_of_write(storage, target.config, remove_meta_columns(schema), opts)
    job = WriteJob(rows, target, existing, operation, RowKeys(spec, stored_keys), schema, bucketing)
    job.check_file_options()
    if operation not in (Operation.DELETE, Operation.DELETE_PARTITION) and job.combines:
        check_ordering_columns(spark_schema(remove_meta_columns(schema)), target.merging)
    return job


def _has_stored_keys(df: DataFrame, client: TableMetaClient | None, config: TableConfig, operation: Operation) -> bool:
    """Return True if rows change records of a table with generated keys, which they have in their meta columns."""
    generated = not config.record_keys and client is not None and config.populate_meta_fields
    return generated and operation.changes_records and identifies_records(df.columns)


def _check_columns(rows: DataFrame, spec: KeySpec, target: WriteTarget, operation: Operation, *, keyed: bool) -> None:
    """Check that rows have the columns that the keys, the operation and its options require.

    Args:
        rows: Rows, without meta columns.
        spec: Specification of keys.
        target: The table and the options of the write.
        operation: Operation of the write.
        keyed: Record keys and partition paths are made of the rows' columns.
    """
    if keyed:
        check_key_columns(rows, spec)
    if operation is Operation.BULK_INSERT:
        check_sort_columns(rows.schema, target.opts)
    check_partial(target.config, operation, target.opts, rows.columns)


def _check_not_encrypted(spark: SparkSession, opts: Options) -> None:
    """Refuse Parquet's columnar encryption if the options or the session's settings request it."""
    session = (spark.conf.get(key, None) for key in (_ENCRYPTION, f"spark.hadoop.{_ENCRYPTION}"))
    requested = opts.get(_ENCRYPTION) or next(filter(None, session), None)
    if requested:
        raise ConfigError(
            f"{_ENCRYPTION}={requested}: pyhudi cannot encrypt Parquet files, and would write the rows in clear text; "
            "remove the setting and encrypt the storage instead"
        )


def _check_operation(target: WriteTarget, operation: Operation, *, located: bool, adds_records: bool) -> None:
    """Check, before a table is created, that an operation fits the options.

    Args:
        target: The table and the options of the write.
        operation: Operation of the write.
        located: The file groups of the rows are known, or their keys.
        adds_records: Some rows are new records nevertheless.
    """
    check_lock_provider(target.opts)
    check_writable(target.config, target.merging, operation, target.opts, located=located, adds_records=adds_records)
    check_services_after_commit(target.config, target.opts)


def _check_table(table: TableSnapshot, operation: Operation, opts: Options, *, keeps_keys: bool) -> None:
    """Check that an operation fits the partitions and the index of the table.

    Args:
        table: The table before the write.
        operation: Operation of the write.
        opts: Options of the write.
        keeps_keys: All records stay in their file groups, whatever index has put them there.
    """
    warn_of_old_partitions(table.config, operation, opts)
    bucketed = opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET
    if operation is not Operation.DELETE_PARTITION and not bucketed and not keeps_keys:
        check_not_bucketed(table)


def _existing(
    client: TableMetaClient, pinned: TableSnapshot, table: TableSchema | None, schema: pa.Schema
) -> ExistingTable:
    """Return the table before a write of files with the columns ``schema``. ``table``: its columns, if it has any."""
    if table is None:
        return ExistingTable(client, pinned.active)
    names_at = column_names(pinned, schema) if table.has_history else None
    return ExistingTable(client, pinned.active, table.recorded, names_at)


def _bucketing(target: WriteTarget, pinned: TableSnapshot | None) -> BucketIndex | None:
    """Distribution of rows over buckets, with the numbers of buckets that the table keeps."""
    bucketing = BucketIndex.from_options(target.config, target.opts)
    if bucketing is None or pinned is None:
        return bucketing
    return bucketing.with_stored_counts(target.storage, pinned.active.timeline)
