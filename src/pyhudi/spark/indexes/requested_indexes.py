"""Builds of the record index and the secondary index that the options of a write ask for, after its commit."""

from __future__ import annotations

import logging

from pyspark.sql import SparkSession

from pyhudi.config import Options
from pyhudi.services.indexing.index_builder import IndexEngine, build_index
from pyhudi.services.indexing.index_requests import IndexRequest
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.indexes.index_engines import spark_index_builder
from pyhudi.spark.indexes.record_index.record_index_build import ensure_record_index
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.write.write_result import WriteResult

_log = logging.getLogger(__name__)


def with_requested_indexes(spark: SparkSession, storage: Storage, opts: Options, result: WriteResult) -> WriteResult:
    """Build the missing indexes that the options of a write ask for. Raises nothing, because the rows are committed.

    Args:
        spark: Session that runs the builds.
        storage: Storage of the table.
        opts: Options of the write.
        result: Result of the write.

    Returns:
        The result, with a warning for each index that could not be built.
    """
    for name, ensure in (("record index", ensure_record_index), ("secondary index", _ensure_secondary_index)):
        try:
            ensure(spark, storage, opts)
        except Exception as failure:
            text = f"the write is committed, but the {name} was not built: {failure}"
            _log.warning("%s", text)
            result = result.with_warning(text)
    return result


def _ensure_secondary_index(spark: SparkSession, storage: Storage, opts: Options) -> bool:
    """Build the secondary index of the options if the table lacks it. Return True if it was built."""
    request = IndexRequest.from_options(opts)
    if request is None:  # Before the table is opened, which takes a request.
        return False
    client = TableMetaClient.open(storage, opts)
    if not request.is_missing(storage, client.config):
        return False
    engine = IndexEngine(spark_index_builder(spark), SparkFileStatsReader(spark))
    return bool(build_index(client, opts, request, engine, dry_run=False).partitions)
