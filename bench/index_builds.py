"""``python -m bench.index_builds [files partitions]``: a record index and a secondary index of very many small files.

Each file has one row, so what is measured is the work for each file: the plan on the driver, and opening the file in a
task. The files are copies of one in which only the key differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.memory_sampling import Sampler, most_memory
from bench.metadata_build import commit_nothing, session
from pyhudi.api.hudi_table import HudiTable
from pyhudi.schema.meta_columns import add_meta_columns

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.string())])
INSTANT = "20260101000000001"
_KEY = "k00000000"


def make(root: Path, files: int, partitions: int) -> None:
    """A table of version 9 with so many files in so many partitions."""
    commit_nothing(root, SCHEMA, INSTANT)
    schema = add_meta_columns(SCHEMA)
    row = {field.name: "x" for field in schema} | {"_hoodie_record_key": _KEY, "id": _KEY, "v": _KEY}
    written = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([row], schema), written, compression="none", use_dictionary=False)
    content = written.getvalue().to_pybytes()
    for number in range(files):
        folder = root / f"p{number % partitions:05d}"
        if number < partitions:
            folder.mkdir()
            (folder / ".hoodie_partition_metadata").write_text(f"commitTime={INSTANT}\npartitionDepth=1\n")
        name = f"{number:08d}-142c-4d86-8445-86fbbd496c52-0_0-31-38_{INSTANT}.parquet"
        (folder / name).write_bytes(content.replace(_KEY.encode(), f"k{number:08d}".encode()))


def build(root: str) -> None:
    """Build the indexes, and print what it took."""
    spark = session()
    sampler = Sampler(os.getpid())
    services = HudiTable.for_path(root, {"pyhudi.storage.fsync": "none"}).services
    services.build_index("bloom_filters")  # the file lists, too, which the indexes need
    for name, columns in (("record_index", ()), ("by_v", ("v",))):
        sampler.restart()
        start, used = time.monotonic(), time.process_time()
        services.build_index(name, columns, spark=spark)
        seconds, driver = time.monotonic() - start, time.process_time() - used
        peak = sampler.take()
        print(
            f"{name:<12} {seconds:7.1f} s, of which the driver computes {driver:5.1f} s; MiB: driver "
            f"{most_memory():6,.0f}, virtual machine {peak.jvm >> 20:6,}, workers {peak.python >> 20:6,}",
            flush=True,
        )
    sampler.stop()


def main() -> int:
    """Make a table, and build in another process, so that making it takes no memory there."""
    if sys.argv[1:2] == ["build"]:
        build(sys.argv[2])
        return 0
    given = [int(text) for text in sys.argv[1:]]
    files, partitions = [*given, *(100_000, 1_000)[len(given) :]]
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder) / "t", files, partitions)
        print(f"{files:,} files in {partitions:,} partitions", flush=True)
        subprocess.run([sys.executable, "-m", "bench.index_builds", "build", f"{folder}/t"], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
