"""Tables over files that are there already."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyhudi.config import Options
from pyhudi.config.misspelled_options import refuse_misspelt
from pyhudi.metadata.writer.file_stats_reader import LOCAL
from pyhudi.read.table_location import refuse_nested_table
from pyhudi.services.bootstrap.bootstrap_plan import BootstrapPlan
from pyhudi.services.bootstrap.bootstrap_runner import run_bootstrap
from pyhudi.services.bootstrap.metadata_bootstrap import ThreadRunner
from pyhudi.storage import open_storage
from pyhudi.write.unsupported_options import check_unsupported_options
from pyhudi.write.write_result import WriteResult

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def bootstrap_table(
    path: str | os.PathLike[str],
    options: Mapping[str, object],
    *,
    schema: pa.Schema | None = None,
    spark: SparkSession | None = None,
) -> WriteResult:
    """Make a table over the Parquet (or ORC) files below a folder, which stay where they are.

    By default only meta columns are written, and the rows are read from the files that are there. Where
    ``hoodie.bootstrap.mode.selector`` says so, rows are copied into base files of the table. A bootstrap that was cut
    off is finished by the same call.

    Args:
        path: Path or URI of the new table's root folder; not in the source's folder.
        options: Apache Hudi's options: ``hoodie.bootstrap.base.path``, ``hoodie.table.name``, record key, partition
            path, table type and others.
        schema: The table's own columns; those of the source's first file, and texts for partition columns that only
            its folders tell, if not given.
        spark: Session whose tasks do the work; without one threads of this process do, for metadata alone.

    Returns:
        The result, with one row per written file.

    Raises:
        ConfigError: Options are missing, or do not fit the source.
        TableExistsError: The table has been written to.
        SchemaMismatchError: The source's files cannot be files of one table.
        RecordKeyError: A row has no record key.
        UnsupportedTableError: Something that only Java code could do is asked for, or rows are to be copied without
            Spark.
    """
    refuse_misspelt(options)
    settings = Options.parse(options)
    check_unsupported_options(settings)
    refuse_nested_table(os.fspath(path), settings)
    plan = BootstrapPlan.of(open_storage(path, settings), settings, schema)
    if spark is None:
        return run_bootstrap(plan, ThreadRunner(), None, LOCAL)
    from pyhudi.spark.write.spark_bootstrap import bootstrap

    return bootstrap(spark, plan)
