"""Table services during and after a write: those that run at the same time, and those that its commit makes due."""

from __future__ import annotations

from contextlib import nullcontext

from pyhudi.config import options
from pyhudi.config.enums import Operation, TableType
from pyhudi.services.post_commit_services import PostCommitServices, handle_service_failure
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.requested_indexes import with_requested_indexes
from pyhudi.spark.services.spark_clustering import SparkClusteringRunner
from pyhudi.spark.services.spark_compaction import SparkCompactionRunner
from pyhudi.spark.write.operations.delete_partition import delete_partitions
from pyhudi.spark.write.operations.partition_expiry import delete_expired_partitions
from pyhudi.spark.write.write_execution import execute_write
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.write.write_result import WriteResult


def write_with_services(job: WriteJob) -> WriteResult:
    """Write, and run the table services that the options request during and after the write."""
    spark = job.df.sparkSession
    stats_reader = SparkFileStatsReader(spark)
    beside = PostCommitServices(job.storage, job.opts)
    with beside.run_async(stats_reader) if job.client is not None else nullcontext():
        result = delete_partitions(job) if job.operation is Operation.DELETE_PARTITION else execute_write(job)
    if result.instant is None:
        return result
    services = PostCommitServices(job.storage, job.opts)
    services.clean_and_archive(stats_reader)
    if job.config.table_type is TableType.MERGE_ON_READ:
        services.compact(SparkCompactionRunner(spark))
    services.cluster(SparkClusteringRunner(spark))
    if job.opts.get_typed(options.TTL_INLINE) and job.opts.get_typed(options.TABLE_SERVICES_ENABLED):
        _expire_after_commit(job)
    return with_requested_indexes(spark, job.storage, job.opts, result)


def _expire_after_commit(job: WriteJob) -> None:
    """Drop the partitions that have expired. The rows are committed, so an error is logged, unless
    `hoodie.fail.writes.on.inline.table.service.exception` is set to true."""
    with handle_service_failure("the deletion of expired partitions", job.opts):
        delete_expired_partitions(job.df.sparkSession, TableMetaClient.open(job.storage, job.opts), job.opts)
