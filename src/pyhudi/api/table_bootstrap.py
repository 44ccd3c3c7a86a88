"""Tables created on top of existing files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.catalog_sync.sync_after_commit import check_sync_after_commit, sync_after_commit
from pyhudi.config import Options
from pyhudi.config.misspelled_options import refuse_misspelled
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.read.query.table_location import refuse_nested_table
from pyhudi.services.bootstrap.bootstrap_plan import BootstrapPlan
from pyhudi.services.bootstrap.bootstrap_runner import run_bootstrap
from pyhudi.services.bootstrap.metadata_bootstrap import ThreadSkeletonWriter
from pyhudi.storage import open_storage
from pyhudi.write.settings.unsupported_options import check_unsupported_options
from pyhudi.write.write_result import WriteResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def bootstrap_table(
    path: str | os.PathLike[str],
    options: Mapping[str, object],
    *,
    schema: pa.Schema | None = None,
    spark: SparkSession | None = None,
) -> WriteResult:
    """Create a table on top of the Parquet (or ORC) files below a folder, which are not moved.

    By default only meta columns are written, and rows are read from the existing files. With
    ``hoodie.bootstrap.mode.selector``, rows can be copied into base files of the table. An interrupted bootstrap is
    completed by the same call.

    Args:
        path: Path or URI of the new table's root folder; not inside the source folder.
        options: Apache Hudi's options: ``hoodie.bootstrap.base.path``, ``hoodie.table.name``, record key, partition
            path, table type and others.
        schema: The table's own columns; by default those of the source's first file, and text columns for partition
            columns that are only in folder names.
        spark: Session that runs the tasks; without one threads of this process do, for metadata-only bootstraps.

    Returns:
        The result, with one row per written file.

    Raises:
        ConfigError: Options are missing, or do not match the source.
        TableExistsError: The table has been written to.
        SchemaMismatchError: The source's files do not have compatible columns.
        RecordKeyError: A row has no record key.
        UnsupportedTableError: Java code is required, or rows are to be copied without Spark.
        ServiceAfterCommitError: The table is complete, but its sync to a catalog failed.
    """
    refuse_misspelled(options)
    settings = Options.parse(options)
    check_unsupported_options(settings)
    refuse_nested_table(os.fspath(path), settings)
    storage = open_storage(path, settings)
    if spark is None:
        check_sync_after_commit(settings)
        plan = BootstrapPlan.from_options(storage, settings, schema)
        result = run_bootstrap(plan, ThreadSkeletonWriter(), None, LOCAL)
        return result.with_warning(sync_after_commit(storage, settings))
    from pyhudi.spark.write.operations.bootstrap import bootstrap
    from pyhudi.spark.write.sync_after_write import check_sync_options, sync_after_write

    check_sync_options(spark, settings)
    result = bootstrap(spark, BootstrapPlan.from_options(storage, settings, schema))
    return sync_after_write(spark, storage, settings, result)
