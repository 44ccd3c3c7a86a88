"""``python -m bench.steady_pipeline [commits] [COPY_ON_WRITE|MERGE_ON_READ …]``: a steady pipeline of small
upserts with all services: cleaning, archival, compaction (merge-on-read) and clustering after commits, and those of the
metadata table.

Prints how long commits take at the beginning and at the end, and the numbers of files and instants.
``BENCH_PLOT=<folder>`` plots their course into an SVG file for each table type.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pyhudi
from bench.engines import COMMON
from pyhudi import HudiTable

ROWS, NEW, PARTITIONS = 1_000, 100, 4
WARM, WINDOW = 20, 20
"""Commits that do not count, and those at the beginning and at the end that are compared."""
SERVICES = {
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "20",
    "hoodie.compact.inline": "true",
    "hoodie.parquet.small.file.limit": "0",  # every commit leaves small files, for clustering to gather
}


@dataclass
class Course:
    """Measurements after each commit."""

    seconds: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    instants: list[int] = field(default_factory=list)


def run(spark: SparkSession, path: Path, table_type: str, commits: int) -> Course:
    """Write to a new table; every commit updates rows drawn at random and adds some."""
    course = Course()
    options = {
        "hoodie.table.name": "pipeline",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        **SERVICES,
    }
    for number in range(commits):
        old, known = ROWS - NEW, 10_000 + number * NEW
        ids = sf.when(sf.col("id") < old, (sf.rand(number) * known).cast("long")).otherwise(sf.col("id") - old + known)
        rows = spark.range(ROWS if number else known).withColumn("id", ids if number else sf.col("id"))
        rows = rows.dropDuplicates(["id"]).selectExpr(
            "id", f"id % {PARTITIONS} AS part", f"{number} AS ts", f"concat('value ', id * 7 + {number}) AS v"
        )
        begin = time.perf_counter()
        rows.write.format("hudi").options(**options).mode("append").save(str(path))
        course.seconds.append(time.perf_counter() - begin)
        files = [file for file in path.rglob("*") if file.is_file()]
        course.files.append(len(files))
        course.instants.append(int(HudiTable.for_path(str(path)).history().num_rows))
    return course


def plot(course: Course, title: str) -> str:
    """The course as SVG: seconds of each commit, and the counts of files and instants in it."""
    width, height, left = 720, 120, 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + left + 20}" height="{3 * (height + 40) + 30}" '
        f'font-family="sans-serif" font-size="12">',
        f'<text x="{left}" y="18" font-weight="bold">{title}</text>',
    ]
    series: Iterable[tuple[str, Sequence[float]]] = (
        ("seconds of a commit, its services included", course.seconds),
        ("files of the table, metadata included", course.files),
        ("instants of the active timeline", course.instants),
    )
    for number, (name, values) in enumerate(series):
        top = 40 + number * (height + 40)
        most = max(values) or 1
        points = " ".join(
            f"{left + place * width / max(1, len(values) - 1):.1f},{top + height - value * height / most:.1f}"
            for place, value in enumerate(values)
        )
        parts += [
            f'<text x="{left}" y="{top - 4}">{name}</text>',
            f'<text x="{left - 6}" y="{top + 10}" text-anchor="end">{most:.3g}</text>',
            f'<text x="{left - 6}" y="{top + height}" text-anchor="end">0</text>',
            f'<line x1="{left}" y1="{top + height}" x2="{left + width}" y2="{top + height}" stroke="#999"/>',
            f'<polyline points="{points}" fill="none" stroke="#1f6feb" stroke-width="1.5"/>',
        ]
    return "\n".join([*parts, "</svg>\n"])


def main() -> None:
    """Run and print."""
    commits = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    builder = SparkSession.builder
    for key, value in {**COMMON, "spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "4"}.items():
        builder = builder.config(key, value)
    spark = pyhudi.configure_spark(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    pyhudi.activate(spark)
    for table_type in sys.argv[2:] or ("COPY_ON_WRITE", "MERGE_ON_READ"):
        with tempfile.TemporaryDirectory(prefix="bench-pipeline-", dir=os.environ.get("BENCH_DIR")) as folder:
            course = run(spark, Path(folder) / "t", table_type, commits)
        window = min(WINDOW, (commits - WARM) // 2)
        begin = statistics.median(course.seconds[WARM : WARM + window])
        end = statistics.median(course.seconds[-window:])
        total = [sum(course.seconds[WARM : WARM + window]), sum(course.seconds[-window:])]
        print(
            f"{table_type}: {commits} commits, median {begin:.2f} s at the beginning, {end:.2f} s at the end "
            f"({end / begin:.2f}x; all {window} together {total[1] / total[0]:.2f}x); files {max(course.files):,} at "
            f"most, {course.files[-1]:,} at the end; instants {max(course.instants):,} at most",
            flush=True,
        )
        if target := os.environ.get("BENCH_PLOT"):
            name = f"pipeline-{table_type.lower().replace('_', '-')}.svg"
            (Path(target) / name).write_text(plot(course, f"{commits} small upserts, {table_type}, all services on"))
    spark.stop()


if __name__ == "__main__":
    main()
