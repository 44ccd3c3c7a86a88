"""``python -m bench.binary_copy [files rows]``: small files clustered by copying row groups, and by rewriting them.

Both by the threads of this process, on copies of one table. Prints seconds of wall-clock time and of the processor,
medians of three, and their ratio; what begins and completes the action is in both.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pyhudi.api.hudi_table import HudiTable
from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from pyhudi.schema.meta_fields import META_COLUMNS
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.partition_metadata import write_partition_metadata
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.markers import IOType
from pyhudi.transaction.transaction import Transaction

COLUMNS = 12
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        *((f"number{n}", pa.int64()) for n in range(COLUMNS // 2)),
        *((f"text{n}", pa.string()) for n in range(COLUMNS // 4)),
        *((f"float{n}", pa.float64()) for n in range(COLUMNS // 4)),
    ]
)
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
PLAN = "hoodie.clustering.plan.strategy."
WAYS = {"rewrite": "SparkSizeBasedClusteringPlanStrategy", "copy": "SparkStreamCopyClusteringPlanStrategy"}
REPEAT = 3


def make(root: Path, files: int, rows: int) -> None:
    """A table without partitions, of so many files with so many rows each, in one commit."""
    HudiTable.create(str(root), OPTIONS)
    client = TableMetaClient.open(str(root))
    tx = Transaction.begin(client, "commit", "BULK_INSERT", OPTIONS)
    tx.to_inflight(CommitMetadata("BULK_INSERT"))
    write_partition_metadata(client.storage, "", tx.instant)
    stats = []
    for number in range(files):
        file_id = f"{number:08x}-0000-4000-8000-000000000000-0"
        name = f"{file_id}_{number}-0-0_{tx.instant}.parquet"
        tx.markers.create("", name, IOType.CREATE)
        full = add_meta_columns(SCHEMA)
        schema = BaseFileSchema(full, to_avro(full, "t"))
        with ParquetFileWriter(str(root / name), schema, bloom=BloomOptions()) as writer:
            writer.write(_rows(number * rows, rows, tx.instant, name))
        size = (root / name).stat().st_size
        stats.append({"partitionPath": "", "fileId": file_id, "path": name, "numWrites": rows, "fileSizeInBytes": size})
    tx.commit(CommitMetadata("BULK_INSERT", write_stats(stats), {"schema": to_avro(SCHEMA, "t")}))


def _rows(begin: int, count: int, instant: str, name: str) -> pa.Table:
    random = np.random.default_rng(begin)
    ids = pa.array([f"key-{n:012}" for n in range(begin, begin + count)])
    meta = ([instant] * count, [f"{instant}_{n}" for n in range(count)], ids, [""] * count, [name] * count)
    columns: dict[str, Any] = dict(zip(META_COLUMNS, meta, strict=True))
    columns["id"] = ids
    for field in SCHEMA:
        if pa.types.is_integer(field.type):
            columns[field.name] = pa.array(random.integers(0, 10**9, count))
        elif pa.types.is_floating(field.type):
            columns[field.name] = pa.array(random.random(count))
        elif field.name != "id":
            columns[field.name] = pa.array(random.integers(0, 10**5, count)).cast(pa.string())
    return pa.table(columns, schema=add_meta_columns(SCHEMA))


def run(source: Path, target: Path, strategy: str) -> tuple[float, float, int]:
    """Cluster a copy of a table; returns seconds, seconds of the processor, and the files that came of it."""
    shutil.copytree(source, target)
    table = HudiTable.for_path(str(target), OPTIONS)
    table.services.clean(dry_run=True)  # what is loaded at first use
    begin, begin_cpu = time.perf_counter(), time.process_time()
    result = table.services.cluster({PLAN + "class": strategy})
    taken = time.perf_counter() - begin, time.process_time() - begin_cpu
    shutil.rmtree(target)
    return *taken, result.num_files


def main() -> None:
    """Make the table and measure both ways in turns."""
    files, rows = [int(text) for text in sys.argv[1:]] or (64, 100_000)
    with tempfile.TemporaryDirectory(prefix="bench-binary-copy-") as folder:
        root = Path(folder)
        make(root / "t", files, rows)
        size = sum(path.stat().st_size for path in (root / "t").glob("*.parquet"))
        print(f"{files:,} files of {rows:,} rows, {size / 2**20:,.0f} MiB", flush=True)
        seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
        for _ in range(REPEAT):
            for way, strategy in WAYS.items():
                wall, cpu, made = run(root / "t", root / way, strategy)
                seconds[way].append((wall, cpu))
                print(f"  {way:<8} {wall:7.2f} s, {cpu:7.2f} s of the processor, {made} files", flush=True)
        medians = {
            way: [statistics.median(part) for part in zip(*found, strict=True)] for way, found in seconds.items()
        }
        wall, cpu = (copy / rewrite for copy, rewrite in zip(medians["copy"], medians["rewrite"], strict=True))
        print(f"copying takes {wall:.2f}x of rewriting, {cpu:.2f}x of the processor's time", flush=True)


if __name__ == "__main__":
    main()
