"""Bootstrap on Spark, also as an operation of a DataFrame writer. Tasks write the skeleton files, and the rows of files
that are bootstrapped in full."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import ConfigError
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.services.bootstrap.bootstrap_plan import BootstrapPlan
from pyhudi.services.bootstrap.bootstrap_runner import run_bootstrap
from pyhudi.services.bootstrap.source_listing import source_files
from pyhudi.spark.execution.local_relations import spread_frame
from pyhudi.spark.execution.row_tasks import rows_of_tasks
from pyhudi.spark.execution.write_stages import run_write_tasks
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.requested_indexes import with_requested_indexes
from pyhudi.spark.write.write_execution import execute_write
from pyhudi.spark.write.write_input import own_columns
from pyhudi.spark.write.write_job import ExistingTable, RowKeys, WriteJob
from pyhudi.storage import Storage
from pyhudi.table.bootstrap_index import FULL_BOOTSTRAP, SourceFile
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.write.handles.skeleton_handle import SkeletonHandle
from pyhudi.write.rows.bootstrap_source import SourceReader
from pyhudi.write.settings.write_context import TaskId
from pyhudi.write.write_result import WriteResult
from pyhudi.write.write_status import encode_stats

_log = logging.getLogger(__name__)


def write_bootstrap(df: DataFrame, storage: Storage, opts: Options) -> WriteResult:
    """Bootstrap the files that the options of a write name. The columns of ``df``, if it has any, become those of the
    table.

    Raises:
        ConfigError: ``df`` has rows, or the options are inconsistent.
        TableExistsError: The table has commits already.
    """
    columns = from_spark_json(own_columns(df).schema.json()) if df.columns else None
    if df.columns and not df.isEmpty():
        raise ConfigError(
            f"the operation bootstrap creates a table over the files in {options.BOOTSTRAP_BASE_PATH.key} and "
            "does not write the rows of a DataFrame; pass an empty DataFrame, and upsert the rows afterwards"
        )
    return bootstrap(df.sparkSession, BootstrapPlan.from_options(storage, opts, columns))


def bootstrap(spark: SparkSession, plan: BootstrapPlan) -> WriteResult:
    """Execute a plan by Spark tasks; raises the errors of `run_bootstrap`."""
    runner = SparkSkeletonWriter(spark, plan.target.opts.get_typed(options.BOOTSTRAP_PARALLELISM))

    def full(left: BootstrapPlan, client: TableMetaClient) -> WriteResult:
        return execute_write(_full_job(spark, client, left))

    result = run_bootstrap(plan, runner, full, SparkFileStatsReader(spark))
    return with_requested_indexes(spark, plan.target.storage, plan.target.opts, result)


@dataclass(frozen=True, slots=True)
class SparkSkeletonWriter:
    """Writer of skeletons that uses at most ``parallelism`` tasks."""

    spark: SparkSession
    parallelism: int

    def __call__(self, handle: SkeletonHandle, sources: pa.Table) -> pa.Table:
        """Write the skeletons; return their write stats. Runs a Spark job."""

        def work(batches: Iterable[pa.RecordBatch], task: TaskId) -> bytes:
            return encode_stats([handle.write(source, task) for source in _sources(batches)])

        return run_write_tasks(_frame(self.spark, sources, self.parallelism), work)


def _full_job(spark: SparkSession, client: TableMetaClient, plan: BootstrapPlan) -> WriteJob:
    """Return the bulk_insert of the rows of files that are bootstrapped in full."""
    return WriteJob(
        _rows(spark, plan),
        replace(plan.target, config=client.config),
        ExistingTable(client, client.active_timeline()),
        Operation.BULK_INSERT,
        RowKeys(plan.spec),
        plan.schema,
        instant=FULL_BOOTSTRAP,
    )


def _rows(spark: SparkSession, plan: BootstrapPlan) -> DataFrame:
    """Return the rows of these files. Lazy."""
    reader = SourceReader(
        plan.target.storage,
        plan.target.config,
        plan.schema,
        plan.all_columns,
        plan.target.opts.get_typed(options.READ_INVALID_TEXT),
    )

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for source in _sources(batches):
            yield from reader.rows(source)

    sources = source_files(plan.target.storage.root, plan.source, plan.full)
    parallelism = plan.target.opts.get_typed(options.BOOTSTRAP_PARALLELISM)
    return rows_of_tasks(_frame(spark, sources, parallelism), read, plan.schema)


def _frame(spark: SparkSession, sources: pa.Table, parallelism: int) -> DataFrame:
    return spread_frame(spark, sources, min(sources.num_rows, parallelism))


def _sources(batches: Iterable[pa.RecordBatch]) -> Iterator[SourceFile]:
    return (SourceFile(**row) for batch in batches for row in batch.to_pylist())
