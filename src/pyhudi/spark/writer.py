"""Writes DataFrames to Hudi tables: ``write`` is the way in for every operation and save mode."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from pyhudi.config import Options, options
from pyhudi.config.values import IndexType, Operation
from pyhudi.errors import ConfigError, InvalidOptionError, NotAHudiTableError, TableExistsError, UnsupportedTableError
from pyhudi.keygen import KeySpec
from pyhudi.read.pinned import PinnedTable
from pyhudi.read.table_schema import TableSchema, table_schema
from pyhudi.schema.meta import remove_meta_columns
from pyhudi.services.inline import after_deltacommit, check_inline
from pyhudi.spark.bulk_insert import check_sort_columns
from pyhudi.spark.compaction import spark_runner
from pyhudi.spark.dedupe import batch_order
from pyhudi.spark.group_plan import combines
from pyhudi.spark.keygen import with_keys
from pyhudi.spark.overwrite import overwrite_table
from pyhudi.spark.recordbuild import ensure_record_index
from pyhudi.spark.types import spark_schema
from pyhudi.spark.write_buckets import write_buckets
from pyhudi.spark.write_bulk import bulk_insert
from pyhudi.spark.write_groups import write_groups
from pyhudi.spark.write_input import own_columns, write_schema
from pyhudi.spark.write_job import WriteJob
from pyhudi.spark.write_partitions import delete_partitions
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config import TableConfig
from pyhudi.table.keygen_type import KeyGenType
from pyhudi.table.merging import with_delete_marker
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.write.existing import check_not_bucketed, sample_keys
from pyhudi.write.guards import check_partial, check_table_exists, check_writable
from pyhudi.write.operations import check_operation, type_name
from pyhudi.write.result import WriteResult
from pyhudi.write.served import check_served

__all__ = ["WriteResult", "write"]

APPEND, OVERWRITE, IGNORE, ERROR = "append", "overwrite", "ignore", "errorifexists"
_MODES = {APPEND: APPEND, OVERWRITE: OVERWRITE, IGNORE: IGNORE, ERROR: ERROR, "error": ERROR, "default": ERROR}


def write(
    df: DataFrame, target: TableMetaClient | str, given: Mapping[str, object] | None = None, mode: str = APPEND
) -> WriteResult:
    """Write a DataFrame.

    ``target`` is the table or its path; ``given`` are Apache Hudi's options; ``mode`` is a save mode of Spark: append,
    overwrite (a new table in place of the old one), ignore, errorifexists. A table that is not there is created.
    Whatever can be said to be wrong without looking at the data is said before anything is written; a write that fails
    later is rolled back.
    """
    opts = Options.parse(given or {})
    check_served(opts)
    chosen = _MODES.get(mode.lower())
    if chosen is None:
        raise InvalidOptionError("mode", mode, ", ".join(sorted(_MODES)))
    storage = target.storage if isinstance(target, TableMetaClient) else open_storage(target, opts)
    client = _open(storage, opts)
    keyed = bool(opts.get_typed(options.RECORDKEY_FIELD) if client is None else client.config.record_keys)
    operation = _operation(opts, keyed=keyed)
    if client is not None and chosen == IGNORE:
        return WriteResult(storage.uri(), type_name(operation))
    if client is not None and chosen == ERROR:
        raise TableExistsError(
            f"there is a Hudi table at {storage.uri()!r} already; write with mode 'append' to add to it, 'overwrite' "
            "to replace it, 'ignore' to leave it"
        )
    replaces = chosen == OVERWRITE and operation is not Operation.INSERT_OVERWRITE_TABLE
    if replaces and operation in (Operation.DELETE, Operation.DELETE_PARTITION):
        raise ConfigError(f"{operation.value} goes with the save mode 'append' only, not with {mode!r}")
    if client is None:
        check_table_exists(storage.uri(), operation)
    fresh = client is None or replaces
    job = _prepare(df, storage, None if fresh else client, opts, operation)
    if client is not None and replaces:
        result = overwrite_table(client, job)
        ensure_record_index(df.sparkSession, storage, job.opts)
        return result
    result = _run(job)
    if result.instant is not None:
        after_deltacommit(storage, job.opts, spark_runner(df.sparkSession))
        ensure_record_index(df.sparkSession, storage, job.opts)
    return result


def _operation(opts: Options, *, keyed: bool) -> Operation:
    """What the options mean to do; records without keys of their own can only be added."""
    operation = opts.get_typed(options.OPERATION)
    check_operation(operation)
    if not opts.is_set(options.OPERATION) and not keyed:
        return Operation.BULK_INSERT
    if opts.get_typed(options.INSERT_DROP_DUPLICATES) and operation is Operation.UPSERT:
        return Operation.INSERT  # as in the original: nothing is left to be updated
    return operation


def _open(storage: Storage, opts: Options) -> TableMetaClient | None:
    try:
        return TableMetaClient.open(storage, opts)
    except NotAHudiTableError:
        return None


def _prepare(
    df: DataFrame, storage: Storage, client: TableMetaClient | None, opts: Options, operation: Operation
) -> WriteJob:
    """Check everything that can be checked without the data."""
    if client is None:
        config = TableConfig.for_new_table(opts)
    else:
        config = client.config
        opts = config.validate_against(opts)
    merging = with_delete_marker(config.merging_for(opts.get_typed(options.PAYLOAD_CLASS)), opts)
    check_writable(config, merging, operation, opts)
    check_inline(config, opts)
    bucketed = opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET
    if client is not None and operation is not Operation.DELETE_PARTITION and not bucketed:
        check_not_bucketed(client)
    spec = KeySpec.from_config(config, opts)
    if client is not None and spec.keygen is KeyGenType.COMPLEX and len(spec.record_fields) == 1 and config.version < 9:
        spec = spec.matching(*sample_keys(client))
    rows = own_columns(df)
    if operation is not Operation.DELETE_PARTITION or not opts.get_typed(options.PARTITIONS_TO_DELETE):
        with_keys(rows, spec, "")  # refuses missing key and partition columns; the frame itself is made later
    if operation is Operation.BULK_INSERT:
        check_sort_columns(rows.schema, opts)
    check_partial(config, operation, opts, rows.columns)
    table = _table_columns(client)
    schema = write_schema(rows, None if table is None else table.schema, config, opts, operation)
    planned_on = None if table is None else table.recorded
    job = WriteJob(rows, storage, client, config, merging, opts, operation, spec, schema, planned_on)
    job.context("")  # refuses codecs and sizes that cannot be
    _ = job.bucketing  # and buckets
    if operation not in (Operation.DELETE, Operation.DELETE_PARTITION) and combines(job):
        batch_order(spark_schema(remove_meta_columns(schema)), merging)  # and ordering columns that are missing
    return job


def _table_columns(client: TableMetaClient | None) -> TableSchema | None:
    found = None if client is None else table_schema(PinnedTable.of(client))
    if found is not None and found.has_history:
        raise UnsupportedTableError(
            "the table keeps a history of its schemas (schema-on-read evolution), which a write would have to go on "
            "with; that is not supported yet. The table can be read"
        )
    return found


def _run(job: WriteJob) -> WriteResult:
    if job.operation is Operation.DELETE_PARTITION:
        return delete_partitions(job)
    if job.bucketing is not None:
        return write_buckets(job)
    if job.operation is Operation.BULK_INSERT:
        return bulk_insert(job)
    return write_groups(job)
