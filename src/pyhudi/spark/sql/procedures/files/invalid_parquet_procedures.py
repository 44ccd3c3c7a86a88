"""Procedure that shows, or deletes, Parquet files that cannot be read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from pyhudi.services.repair.orphan_files import delete_orphan_files
from pyhudi.spark.indexes.file_statistics_build import SparkFileStatsReader
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.storage import Storage
from pyhudi.table.view.file_listing import list_files

_THREADS = 16


def show_invalid_parquet(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the Parquet files of a table that cannot be read; with ``needDelete`` delete them, if they belong to no
    write.

    Raises:
        QueryError: One that is to be deleted is named by the timeline; nothing is deleted then.
        BusyError: Others are at work on the table.
    """
    client, opts = arguments.opened(spark)
    partitions, instants = arguments.texts("partitions"), arguments.texts("instants")
    files, _ = list_files(client.storage, partitions or None)
    files = files.filter(pc.ends_with(files["path"], ".parquet"))
    if instants:
        files = files.filter(pc.is_in(files["instant"], value_set=pa.array(instants)))
    with ThreadPoolExecutor(_THREADS) as pool:
        paths = files["path"].to_pylist()
        readable = pool.map(lambda path: _can_be_read(client.storage, path), paths)
        bad = [path for path, fine in zip(paths, readable, strict=True) if not fine]
    if bad and arguments.flag("needDelete"):
        reader = SparkFileStatsReader(spark)
        delete_orphan_files(client, opts, paths=bad, dry_run=False, stats_reader=reader)
    return arguments.limited((client.storage.uri(path),) for path in bad)


def _can_be_read(storage: Storage, path: str) -> bool:
    """Return True if a file has a Parquet footer."""
    with storage.open_input(path) as file:
        try:
            pq.ParquetFile(file)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OSError):
            return False
    return True


PROCEDURES: dict[str, Procedure] = {"show_invalid_parquet": show_invalid_parquet}
