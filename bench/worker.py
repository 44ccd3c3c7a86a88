"""One engine's part of the benchmark, in a process of its own: ``python -m bench.worker <job as JSON>``.

Every measured repetition is announced on stdout as one JSON line when it begins and when it ended, so that the parent
can sample memory for it; everything else goes to stderr."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count
from pyspark.sql.functions import sum as total

from bench.data import PARTITION, POINT, SHARES, SMALL_SHARES, Dataset
from bench.delta_commits import read_after_deltas
from bench.engines import ENGINES, Engine, settings
from bench.workloads import works_of

YEAR = 1995
MORE_READS = int(os.environ.get("BENCH_READS", "3"))
READS_UNTIL_WARM = int(os.environ.get("BENCH_READS_UNTIL_WARM", "4"))
"""So many reads go by until the virtual machine has compiled what they run; after fewer of them, each is faster than
the one before, with every engine. Reads of ten times the rows need fewer."""
WRITES_UNTIL_WARM = int(os.environ.get("BENCH_WRITES_UNTIL_WARM", "1"))
"""The same of writes; those that take minutes need none."""


class Reporter:
    """Speaks JSON lines to the parent."""

    def __init__(self, out: TextIO, works: frozenset[str] = frozenset()) -> None:
        self._out = out
        self._works = works

    def wants(self, work: str) -> bool:
        """Return True if ``work`` was requested; the bulk insert always is."""
        return work == "bulk_insert" or work in self._works

    def wants_any(self, *parts: str) -> bool:
        """Return True if any work of ``parts`` was requested."""
        return not works_of(parts).isdisjoint(self._works)

    def say(self, **facts: Any) -> None:
        print(json.dumps(facts), file=self._out, flush=True)

    def measure(
        self,
        work: str,
        repeat: int,
        run: Callable[[Any], Any],
        prepare: Callable[[int], Any],
        warm_ups: int = WRITES_UNTIL_WARM,
    ) -> None:
        """``warm_ups`` repetitions and ``repeat`` that count; ``prepare`` is not timed and feeds ``run``."""
        if not self.wants(work):
            return
        for turn in range(repeat + warm_ups):
            given = prepare(turn)
            gc.collect()
            self.say(event="begin", work=work, turn=turn)
            begin = time.perf_counter()
            answer = run(given)
            seconds = time.perf_counter() - begin
            counts = turn >= warm_ups
            self.say(event="end", work=work, turn=turn, counts=counts, seconds=seconds, answer=answer)

    def measure_reads(self, work: str, repeat: int, run: Callable[[Any], Any], inputs: Sequence[Any] = (None,)) -> None:
        """Reads are short: they get more repetitions than writes have, by one of ``inputs`` after the other."""
        self.measure(work, repeat * MORE_READS, run, lambda turn: inputs[turn % len(inputs)], READS_UNTIL_WARM)


def aggregate(df: DataFrame) -> list[list[str]]:
    """A full scan with the aggregates of TPC-H query 1, as text so that engines can be compared."""
    price, less = col("l_extendedprice"), 1 - col("l_discount")
    grouped = df.groupBy("l_returnflag", "l_linestatus").agg(
        total("l_quantity"), total(price), total(price * less), total(price * less * (1 + col("l_tax"))), count("*")
    )
    return sorted([str(cell) for cell in row] for row in grouped.collect())


def run(job: dict[str, Any], reporter: Reporter) -> None:
    """All work of one engine, in the order of the table's life."""
    data = Dataset(job["scale"], Path(job["data"]), job["rows"], [tuple(pair) for pair in job["lookups"]])
    folder = Path(job["folder"])
    engine = ENGINES[job["engine"]](folder)
    builder = SparkSession.builder
    for key, value in settings(engine, job["memory"]).items():
        builder = builder.config(key, value)
    engine.start(builder)
    engine.spark.sparkContext.setLogLevel("ERROR")
    reporter.say(event="ready", spark=engine.spark.version, java=_java(engine.spark), python=sys.version.split()[0])
    table = _bulk_insert(engine, data, folder, job["repeat"], reporter)
    reporter.say(event="size", bytes=sum(file.stat().st_size for file in table.rglob("*") if file.is_file()))
    repeat = job["repeat"]
    if reporter.wants_any("reads"):
        _reads(engine, data, table, repeat, reporter)
    if engine.can_upsert:
        if reporter.wants_any("upserts"):
            _upserts(engine, data, table, folder, repeat, reporter)
        if reporter.wants_any("mor_upserts", "mor_reads"):
            _merge_on_read(engine, data, folder, repeat, reporter)
        if reporter.wants_any("compaction"):
            _compactions(engine, data, folder, repeat, reporter)
        if reporter.wants_any("buckets"):
            _bucket_upserts(engine, data, folder, repeat, reporter)
        if reporter.wants_any("records"):
            _record_upserts(engine, data, table, folder, repeat, reporter)
    engine.spark.stop()


def _bulk_insert(engine: Engine, data: Dataset, folder: Path, repeat: int, reporter: Reporter) -> Path:
    def fresh(turn: int) -> Path:
        if turn:
            shutil.rmtree(folder / "db" / f"table{turn - 1}")
        return folder / "db" / f"table{turn}"

    def load(path: Path) -> None:
        engine.bulk_insert(engine.spark.read.parquet(str(data.lineitem)), path)

    reporter.measure("bulk_insert", repeat, load, fresh)
    return folder / "db" / f"table{repeat + WRITES_UNTIL_WARM - 1}"


def _reads(engine: Engine, data: Dataset, table: Path, repeat: int, reporter: Reporter) -> None:
    def scan(_: object) -> list[list[str]]:
        return aggregate(engine.read(table))

    def year(_: object) -> list[list[str]]:
        return aggregate(engine.read(table).where(col(PARTITION) == YEAR))

    def point(keys: tuple[int, int]) -> list[list[str]]:
        order, line = keys
        return shown(engine.read(table).where((col("l_orderkey") == order) & (col("l_linenumber") == line)))

    reporter.measure_reads("scan", repeat, scan)
    reporter.measure_reads("partition", repeat, year)
    reporter.measure_reads("point", repeat, point, data.lookups)


def shown(found: DataFrame) -> list[list[str]]:
    return sorted([str(cell) for cell in row] for row in found.select(*POINT).collect())


def _upserts(
    engine: Engine,
    data: Dataset,
    table: Path,
    folder: Path,
    repeat: int,
    reporter: Reporter,
    names: Iterable[str] = SHARES,
    prefix: str = "",
) -> None:
    for name in names:
        if not reporter.wants(f"{prefix}{name}"):
            continue
        last: list[Path] = []

        def fresh(turn: int, name: str = name, last: list[Path] = last) -> Path:
            for old in last:
                if old != table:
                    shutil.rmtree(old)
            last[:] = [engine.copy(table, folder / "db" / f"{prefix}{name}_{turn}")]
            return last[0]

        def upsert(path: Path, name: str = name) -> None:
            engine.upsert(engine.spark.read.parquet(str(data.upsert(name))), path)

        reporter.measure(f"{prefix}{name}", repeat, upsert, fresh)
        reporter.say(event="check", work=f"{prefix}{name}", answer=aggregate(engine.read(last[0])))


def _merge_on_read(engine: Engine, data: Dataset, folder: Path, repeat: int, reporter: Reporter) -> None:
    table = folder / "db" / "merge_on_read"
    engine.bulk_insert(engine.spark.read.parquet(str(data.lineitem)), table, merge_on_read=True)
    _upserts(engine, data, table, folder, repeat, reporter, SMALL_SHARES, "mor_")
    if not reporter.wants_any("mor_reads"):
        return

    def measure(work: str, run: Callable[[], object]) -> None:
        reporter.measure_reads(work, repeat, lambda _: run())

    read_after_deltas(engine, data, engine.copy(table, folder / "db" / "deltas"), measure, aggregate)


def _compactions(engine: Engine, data: Dataset, folder: Path, repeat: int, reporter: Reporter) -> None:
    """Compact the log files, or delete files, of one upsert of each size."""
    table = folder / "db" / "upserted"
    engine.bulk_insert(engine.spark.read.parquet(str(data.lineitem)), table, merge_on_read=True)
    for name in SMALL_SHARES:
        engine.upsert(engine.spark.read.parquet(str(data.upsert(name))), table)
    last: list[Path] = []

    def fresh(turn: int) -> Path:
        for old in last:
            if old != table:
                shutil.rmtree(old)
        last[:] = [engine.copy(table, folder / "db" / f"compaction_{turn}")]
        return last[0]

    reporter.measure("compaction", repeat, engine.compact, fresh)
    reporter.say(event="check", work="compaction", answer=aggregate(engine.read(last[0])))


def _bucket_upserts(engine: Engine, data: Dataset, folder: Path, repeat: int, reporter: Reporter) -> None:
    """Upserts of merge-on-read tables in which the key says the file group."""
    if engine.bucket_options is None:
        return
    engine.index = engine.bucket_options
    table = folder / "db" / "buckets"
    engine.bulk_insert(engine.spark.read.parquet(str(data.lineitem)), table, merge_on_read=True)
    _upserts(engine, data, table, folder, repeat, reporter, SMALL_SHARES, "bucket_")
    engine.index = {}


def _record_upserts(engine: Engine, data: Dataset, table: Path, folder: Path, repeat: int, reporter: Reporter) -> None:
    """The first upsert that asks for a record index, which has to be built, and those that have one."""
    if engine.record_options is None:
        return
    engine.index = engine.record_options
    _upserts(engine, data, table, folder, repeat, reporter, ("upsert_1",), "record_first_")
    indexed = engine.copy(table, folder / "db" / "records")
    engine.upsert(engine.spark.read.parquet(str(data.upsert("upsert_02"))), indexed)
    _upserts(engine, data, indexed, folder, repeat, reporter, SHARES, "record_")

    def point(keys: tuple[int, int]) -> list[list[str]]:
        return shown(engine.find(indexed, *keys))

    def alone(keys: tuple[int, int]) -> list[list[str]] | None:
        return engine.find_alone(indexed, *keys)

    reporter.measure_reads("record_point", repeat, point, data.lookups)
    if engine.find_alone(indexed, *data.lookups[0]) is not None:
        reporter.measure_reads("record_key", repeat, alone, data.lookups)
    engine.index = {}


def _java(spark: SparkSession) -> str:
    version = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")
    return str(version)


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.loads(sys.argv[1])
    run(job, Reporter(out, works_of(job["only"])))


if __name__ == "__main__":
    main()
