"""``python -m bench.metadata_build [files partitions [rows]]``: statistics and bloom filters of a table without a
metadata table, built by threads and by Spark.

The table's files are links to copies of one small file with ``rows`` rows, so its footers are real, and each file has a
bloom filter of the usual size (323 kB as text are 430 kB), as full as that many keys make it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench.memory_sampling import Sampler, most_memory
from pyhudi.api.hudi_table import HudiTable
from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), *((f"n{i}", pa.int64()) for i in range(10)), ("t", pa.string())]
)
INSTANT = "20260101000000001"
_LINKS = 10_000
"""Of one copy: file systems allow some ten thousand links to a file."""


def commit_nothing(root: Path, schema: pa.Schema, instant: str) -> None:
    """A table of version 9, keyed by ``id`` and partitioned by ``p``, with a commit that names no files."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "pyhudi.storage.fsync": "none",
    }
    HudiTable.create(str(root), options)
    active = TableMetaClient.open(str(root)).active_timeline()
    active.create_requested(Action.COMMIT, instant)
    inflight = active.to_inflight(active.timeline.find(instant, Action.COMMIT))
    metadata = CommitMetadata("BULK_INSERT", write_stats([]), {"schema": to_avro(schema, "t")})
    active.complete(inflight, metadata.encode(9, Action.COMMIT), instant)


def session() -> SparkSession:
    """Two tasks at a time, with workers that run already."""
    from pyspark.sql import SparkSession

    import pyhudi

    settings = {"spark.driver.memory": "2g", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"}
    spark = pyhudi.configure_spark(SparkSession.builder).master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(10).mapInArrow(lambda batches: batches, "id long").collect()
    return spark


def make(root: Path, files: int, partitions: int, rows: int) -> None:
    """A table of version 9 with so many files in so many partitions."""
    commit_nothing(root, SCHEMA, INSTANT)
    schema = add_meta_columns(SCHEMA)
    columns: dict[str, Any] = {field.name: ["x"] * rows for field in schema}
    columns |= {name: [f"k{i:09d}" for i in range(rows)] for name in ("_hoodie_record_key", "id")}
    columns |= {f"n{i}": [i] * rows for i in range(10)}
    data = pa.table(columns, schema=schema)
    first = root
    for number in range(files):
        folder = root / f"p{number % partitions:05d}"
        if number < partitions:
            folder.mkdir()
            (folder / ".hoodie_partition_metadata").write_text(f"commitTime={INSTANT}\npartitionDepth=1\n")
        path = folder / f"{number:08d}-142c-4d86-8445-86fbbd496c52-0_0-31-38_{INSTANT}.parquet"
        if number % _LINKS:
            os.link(first, path)
            continue
        first = path
        with ParquetFileWriter(str(path), BaseFileSchema(schema), bloom=BloomOptions()) as writer:
            writer.write(data)


def build(root: str, engine: str) -> None:
    """Build the indexes, and print what it took."""
    spark = session() if engine == "spark" else None
    sampler = Sampler(os.getpid())
    services = HudiTable.for_path(root, {"pyhudi.storage.fsync": "none"}).services
    for name in ("partition_stats", "bloom_filters"):
        sampler.restart()
        start = time.monotonic()
        found = services.build_index(name, spark=spark)
        seconds = time.monotonic() - start
        peak = sampler.take()
        print(
            f"{engine:>7}: {', '.join(found.partitions):<36} {seconds:7.1f} s; MiB: driver {most_memory():6,.0f}, "
            f"virtual machine {peak.jvm >> 20:6,}, workers {peak.python >> 20:6,}",
            flush=True,
        )
    sampler.stop()


def main() -> int:
    """Make a table for each engine, and build in another process, so that making it takes no memory there."""
    if sys.argv[1:2] == ["build"]:
        build(sys.argv[2], sys.argv[3])
        return 0
    given = [int(text) for text in sys.argv[1:]]
    files, partitions, rows = [*given, *(20_000, 200, 2_000)[len(given) :]]
    for engine in ("threads", "spark"):
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder) / "t", files, partitions, rows)
            print(f"{files:,} files in {partitions:,} partitions, {rows:,} keys in each file", flush=True)
            subprocess.run([sys.executable, "-m", "bench.metadata_build", "build", f"{folder}/t", engine], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
