"""``python -m bench.worker_memory``: the memory of Python workers does not grow with the partition.

Lineitem goes into *one* partition that is several times larger than what a worker may use, by ``bulk_insert`` and by an
upsert of 10 %; the highest resident size of any single worker is what the kernel recorded for it. Environment:
``BENCH_MEMORY_SF`` (4), ``BENCH_WORKER_MIB`` (the limit, 640), ``BENCH_MEMORY`` (driver memory, 6g)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from bench.data import KEYS, Dataset, prepare
from bench.jars import ROOT
from bench.memory_sampling import Sampler
from bench.worker import Reporter

OPTIONS = {
    "hoodie.table.name": "lineitem",
    "hoodie.datasource.write.recordkey.field": ",".join(KEYS),
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}


def main() -> None:
    """Run the work in a process of its own, watch its workers, and say whether the limit held."""
    if len(sys.argv) > 1:
        out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        _work(json.loads(sys.argv[1]), Reporter(out))
        return
    limit = int(os.environ.get("BENCH_WORKER_MIB", "640"))
    data = prepare(float(os.environ.get("BENCH_MEMORY_SF", "4")))
    partition = in_memory(data)
    print(f"one partition of {data.rows:,} rows, {partition >> 20:,} MiB in Arrow; limit of a worker {limit} MiB")
    if partition < 3 * limit << 20:
        raise SystemExit("the partition must be several times larger than the limit: raise BENCH_MEMORY_SF")
    peaks = _watch(data)
    for work, peak in peaks.items():
        print(f"{work:<12} largest worker {peak >> 20:5} MiB  {'held' if peak >> 20 <= limit else 'EXCEEDED'}")
    if max(peaks.values()) >> 20 > limit:
        raise SystemExit(1)


def in_memory(data: Dataset) -> int:
    """Bytes of the whole of lineitem as Arrow."""
    return sum(int(batch.nbytes) for batch in ds.dataset(data.lineitem).to_batches())


def _watch(data: Dataset) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="bench-memory-", dir=os.environ.get("BENCH_DIR")) as folder:
        job = {"data": str(data.folder), "folder": folder, "memory": os.environ.get("BENCH_MEMORY", "6g")}
        env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-m", "bench.worker_memory", json.dumps(job)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env)
        assert process.stdout is not None
        sampler = Sampler(process.pid, interval=0.05)
        peaks: dict[str, int] = {}
        for line in process.stdout:
            fact = json.loads(line)
            peak = sampler.take()
            if fact["event"] == "end":
                peaks[fact["work"]] = peak.worker
        sampler.stop()
        if process.wait():
            raise SystemExit("the work itself failed")
    return peaks


def _work(job: dict[str, Any], reporter: Reporter) -> None:
    from pyspark.sql import SparkSession

    import pyhudi
    from bench.engines import COMMON

    builder = pyhudi.configure_spark(SparkSession.builder)
    for key, value in {**COMMON, "spark.driver.memory": job["memory"]}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    pyhudi.activate(spark)
    path, data = f"{job['folder']}/table", Path(job["data"])
    for work, source, operation, mode in (
        ("bulk_insert", "lineitem", "bulk_insert", "overwrite"),
        ("upsert 10 %", "upsert_10", "upsert", "append"),
    ):
        reporter.say(event="begin", work=work)
        options = {**OPTIONS, "hoodie.datasource.write.operation": operation}
        df = spark.read.parquet(str(data / source))
        df.write.format("hudi").options(**options).mode(mode).save(path)
        reporter.say(event="end", work=work)
    spark.stop()


if __name__ == "__main__":
    main()
