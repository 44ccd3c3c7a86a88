"""``python -m bench.schema_evolution``: scans of a table whose columns have been changed ten times, and of a
new table.

Both have the same rows in the same partitions. After each change of the evolved one, a partition in ten is written
again, so that files of every version of the schema are there. Environment: ``BENCH_ROWS`` (rows, 4,000,000),
``BENCH_REPEAT`` (counted scans of each, in turns, 5), ``BENCH_DIR``.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi import HudiTable

ROWS = int(os.environ.get("BENCH_ROWS", "4000000"))
REPEAT = int(os.environ.get("BENCH_REPEAT", "5"))
PARTITIONS = 10
WARM = 3


def options(name: str) -> dict[str, str]:
    return {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
    }


def columns(spark: SparkSession, names: list[str]) -> object:
    """Rows with ten columns of numbers and texts under some names."""
    rows = spark.range(ROWS).withColumn("p", (sf.col("id") % PARTITIONS).cast("int"))
    made = [
        (sf.col("id") * (n + 1) if n % 2 else sf.concat(sf.lit(f"t{n}-"), sf.col("id") % 1000)).alias(name)
        for n, name in enumerate(names)
    ]
    return rows.select("id", *made, "p")


def scan(spark: SparkSession, path: Path, names: list[str]) -> float:
    started = time.perf_counter()
    rows = spark.read.format("hudi").load(str(path))
    found = [sf.sum(name) if n % 2 else sf.max(name) for n, name in enumerate(names)]
    rows.agg(*found).collect()
    return time.perf_counter() - started


def main() -> None:
    builder = pyhudi.configure_spark(SparkSession.builder.master("local[2]"))
    spark = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "4g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    pyhudi.activate(spark)
    folder = Path(tempfile.mkdtemp(prefix="bench-evolution-", dir=os.environ.get("BENCH_DIR")))
    names = [f"c{n}" for n in range(10)]
    new, evolved = folder / "new", folder / "evolved"

    def write(path: Path, operation: str, where: str = "true") -> None:
        rows = columns(spark, names).where(where)  # type: ignore[attr-defined]
        own = {**options(path.name), "hoodie.datasource.write.operation": operation}
        rows.write.format("hudi").options(**own).mode("append").save(str(path))

    write(evolved, "bulk_insert")
    for number in range(10):
        with HudiTable.for_path(str(evolved)).alter_schema() as change:
            change.rename_column(names[number], f"d{number}")
        names[number] = f"d{number}"
        if number < PARTITIONS - 1:
            write(evolved, "insert_overwrite", f"p = {number}")
    write(new, "bulk_insert")
    times: dict[Path, list[float]] = {new: [], evolved: []}
    for turn in range(WARM + REPEAT):
        for path, found in times.items():
            seconds = scan(spark, path, names)
            if turn >= WARM:
                found.append(seconds)
    medians = {path.name: statistics.median(found) for path, found in times.items()}
    print(
        f"{ROWS:,} rows, medians of {REPEAT} scans: written new {medians['new']:.2f} s, evolved ten times "
        f"{medians['evolved']:.2f} s, ratio {medians['evolved'] / medians['new']:.2f}"
    )
    spark.stop()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
