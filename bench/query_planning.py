"""``python -m bench.query_planning [files partitions]``: planning of a query over a table of very many files.

Creates the timeline and the metadata table of a table without its data files, and plans queries over it: time and
memory go into the list of files and their statistics. Times are process times; memory is the peak of the process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tests.metadata_tables import attach, file_lists, grouped, statistics

from bench.memory_sampling import most_memory
from pyhudi.api.hudi_table import HudiTable
from pyhudi.metadata.records.metadata_record import RecordType
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
INSTANT = "20260101000000001"
GROUPS = 10
"""File groups of the column statistics."""


def make(root: Path, files: int, partitions: int) -> None:
    """A table of version 9 with so many files in so many partitions; ``ts`` rises with the partitions, and ``v`` lies
    anywhere, but near together in each file."""
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "pyhudi.storage.fsync": "none",
    }
    HudiTable.create(str(root), options)
    client = TableMetaClient.open(str(root))
    active = client.active_timeline()
    active.create_requested(Action.COMMIT, INSTANT)
    inflight = active.to_inflight(active.timeline.find(INSTANT, Action.COMMIT))
    metadata = CommitMetadata("BULK_INSERT", write_stats([]), {"schema": to_avro(SCHEMA, "t")})
    active.complete(inflight, metadata.encode(9, Action.COMMIT), INSTANT)
    random = np.random.default_rng(3)
    number = np.sort(np.arange(files) % partitions)
    names = pc.binary_join_element_wise(
        "p=", pc.utf8_lpad(pc.cast(pa.array(np.arange(partitions)), pa.string()), 5, "0"), ""
    )
    partition = names.take(pa.array(number))
    head = pc.utf8_lpad(pc.cast(pa.array(random.permutation(files)), pa.string()), 8, "0")
    name = pc.binary_join_element_wise(head, f"-142c-4d86-8445-86fbbd496c52-0_0-31-38_{INSTANT}.parquet", "")
    every = pa.table({"partition": partition, "name": name, "size": random.integers(10**6, 10**8, files)})
    rows, nulls = pa.repeat(pa.scalar(1000, pa.int64()), files), pa.repeat(pa.scalar(0, pa.int64()), files)
    parts = []
    v = random.integers(0, 10**9, files)
    for column, low, high in (("ts", number * 1000, number * 1000 + 999), ("v", v, v + 10**4)):
        made = statistics(
            RecordType.COLUMN_STATS,
            pa.repeat(pa.scalar(column), files),
            partition,
            name,
            pa.array(low),
            pa.array(high),
            rows,
            nulls,
        )
        parts.append(made)
    key, value = (pa.concat_arrays(column) for column in zip(*parts, strict=True))
    at = np.arange(partitions) * 1000
    count = pa.repeat(pa.scalar(1000, pa.int64()), partitions)
    none = pa.repeat(pa.scalar(0, pa.int64()), partitions)
    wide = [
        statistics(
            RecordType.PARTITION_STATS,
            pa.repeat(pa.scalar(c), partitions),
            names,
            names,
            pa.array(a),
            pa.array(b),
            count,
            none,
        )
        for c, a, b in (("ts", at, at + 999), ("v", at * 0, at * 0 + 2 * 10**9))
    ]
    partition_stats = tuple(pa.concat_arrays(column) for column in zip(*wide, strict=True))
    attach(
        client.storage,
        {"files": file_lists(every), "column_stats": grouped(key, value, GROUPS), "partition_stats": [partition_stats]},
        "20260101000000002",
    )


def plan(root: str, files: int, partitions: int) -> None:
    """Plan three queries, each cold and warm, and print what it took."""
    queries = {
        "by statistics of partitions": [("ts", "=", 1000 * (partitions // 2) + 7)],
        "by the partition column": [("p", "=", f"{partitions // 2:05d}"), ("v", "<", 10**8)],
        "by statistics of all files": [("v", "=", 10**8)],
        "without a filter": None,
    }
    for what, condition in queries.items():
        times = []
        for _ in range(3):
            start = time.process_time()
            found = HudiTable.for_path(root).scan(condition).plan()
            times.append((time.process_time() - start) * 1000)
        most = most_memory()
        print(
            f"{files:>9,} files, {what:<28} {times[0]:8,.0f} ms cold {min(times[1:]):8,.0f} ms warm, "
            f"{found.tasks.num_rows:>9,} slices left, {most:6,.0f} MiB",
            flush=True,
        )


def main() -> int:
    """Make a table and plan in another process, so that making it takes no memory there."""
    if sys.argv[1:2] == ["plan"]:
        plan(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return 0
    given = [int(text) for text in sys.argv[1:]]
    sizes = [(given[0], given[1])] if given else [(10_000, 100), (1_000_000, 10_000)]
    for files, partitions in sizes:
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder) / "t", files, partitions)
            command = [sys.executable, "-m", "bench.query_planning", "plan", f"{folder}/t", str(files), str(partitions)]
            subprocess.run(command, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
