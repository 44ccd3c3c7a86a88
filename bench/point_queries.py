"""``python -m bench.point_queries [1 5]``: point and range queries of merge-on-read tables, ours and Iceberg's.

The tables are read after as many commits as the arguments say, each a correction of 1 % of the rows
(`bench.delta_commits`). Each kind of query looks up one key, then another one, all in one session, and then ranges of
keys. Tables: ours without a record index, ours with one, Iceberg's. Each query returns five columns, as in
``python -m bench``. The time is that from creating the DataFrame to its rows; ``planning`` is the part until the
DataFrame exists, in which Iceberg does nothing yet. Environment: ``BENCH_SF``, ``BENCH_REPEAT``, ``BENCH_MEMORY``, as
in ``python -m bench``; ``BENCH_TABLES``: a folder whose tables are kept, and used if they are there.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from bench.data import Dataset, prepare
from bench.delta_commits import delta
from bench.engines import Engine, Iceberg, Ours
from bench.merge_on_read_scans import session
from bench.worker import READS_UNTIL_WARM, shown
from pyhudi import HudiTable

RANGE = 1000
"""Order keys of a range: about as many rows, of a few million."""
Ask = Callable[[int, int], DataFrame]
Seconds = tuple[float, float]
"""Of the whole query, and of its planning."""


@dataclass
class Times:
    """Times of each way to ask; ``compared`` is the one that the others are compared with."""

    seconds: dict[str, list[Seconds]] = field(default_factory=dict)
    compared: str = "iceberg"

    def show(self) -> None:
        """Print the medians."""
        base = self._median(self.compared, 0)
        for name in self.seconds:
            whole, planning = self._median(name, 0), self._median(name, 1)
            least = min(one[0] for one in self.seconds[name])
            told = f"least {least:.2f}, planning {planning:.2f}"
            print(f"  {name:<14} {whole:6.2f} s ({told}), / Iceberg {whole / base:.2f}", flush=True)

    def _median(self, name: str, part: int) -> float:
        return statistics.median(one[part] for one in self.seconds[name])


def main() -> None:
    """Write the tables and print the medians."""
    stops = sorted(map(int, sys.argv[1:])) or [1, 5]
    data = prepare(float(os.environ.get("BENCH_SF", "1")))
    repeat = int(os.environ.get("BENCH_REPEAT", "7"))
    kept = os.environ.get("BENCH_TABLES")
    with tempfile.TemporaryDirectory(prefix="bench-points-", dir=os.environ.get("BENCH_DIR")) as scratch:
        _run(Path(kept or scratch).absolute(), data, stops, repeat)


def _run(folder: Path, data: Dataset, stops: list[int], repeat: int) -> None:
    engines: dict[str, Engine] = {"ours": Ours(folder), "record": Ours(folder), "iceberg": Iceberg(folder)}
    engines["record"].index = Ours.record_options
    spark = session(engines["iceberg"])
    for engine in engines.values():
        engine.spark = spark
    for stop in stops:
        place = folder / "db" / f"d{stop}"
        for name, engine in engines.items():
            if not (place / name).exists():
                _write(engine, data, place / name, stop)
        for what, ways in (("point", _points(spark, engines, place)), ("range", _ranges(spark, engines, place))):
            print(f"{what} queries after {stop} deltas", flush=True)
            _in_turns(ways, data, repeat).show()
    spark.stop()


def _write(engine: Engine, data: Dataset, path: Path, deltas: int) -> None:
    engine.bulk_insert(engine.spark.read.parquet(str(data.lineitem)), path, merge_on_read=True)
    for number in range(1, deltas + 1):
        engine.upsert(delta(engine, data, number), path)


def _points(spark: SparkSession, engines: Mapping[str, Engine], place: Path) -> dict[str, Ask]:
    """The ways to ask for one key."""
    ways = {"iceberg": lambda o, n: engines["iceberg"].read(place / "iceberg").where(_is(o, n))}
    for name in ("ours", "record"):
        table = _table(spark, place, name)
        ways |= {
            f"{name} load": lambda o, n, name=name: engines[name].read(place / name).where(_is(o, n)),
            f"{name} sql": lambda o, n, t=table: spark.sql(f"SELECT * FROM {t} WHERE {_text(o, n)}"),
            f"{name} scan": lambda o, n, name=name: (
                HudiTable.for_path(str(place / name)).scan(filter=_text(o, n)).to_spark(spark)
            ),
        }
    return ways


def _ranges(spark: SparkSession, engines: Mapping[str, Engine], place: Path) -> dict[str, Ask]:
    """The ways to ask for some keys that follow each other."""

    def between(order: int) -> str:
        return f"l_orderkey BETWEEN {order} AND {order + RANGE}"

    table = _table(spark, place, "ours")
    return {
        "iceberg": lambda o, _: engines["iceberg"].read(place / "iceberg").where(between(o)),
        "ours load": lambda o, _: engines["ours"].read(place / "ours").where(between(o)),
        "ours sql": lambda o, _: spark.sql(f"SELECT * FROM {table} WHERE {between(o)}"),
    }


def _is(order: int, line: int) -> object:
    return (col("l_orderkey") == order) & (col("l_linenumber") == line)


def _text(order: int, line: int) -> str:
    return f"l_orderkey = {order} AND l_linenumber = {line}"


def _table(spark: SparkSession, place: Path, name: str) -> str:
    table = f"hudi_{place.name}_{name}"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {table} USING hudi LOCATION '{place / name}'")
    return table


def _in_turns(ways: Mapping[str, Ask], data: Dataset, repeat: int) -> Times:
    """Time each way, those turns that warm up left out.

    Raises:
        SystemExit: They answer differently.
    """
    times = Times({name: [] for name in ways})
    for turn in range(READS_UNTIL_WARM + repeat):
        key = data.lookups[turn % len(data.lookups)]
        answers = {}
        for name, ask in ways.items():
            begin = time.perf_counter()
            rows = ask(*key)
            planned = time.perf_counter()
            answers[name] = shown(rows)
            if turn >= READS_UNTIL_WARM:
                times.seconds[name].append((time.perf_counter() - begin, planned - begin))
        wrong = [name for name, answer in answers.items() if answer != answers["iceberg"]]
        if wrong or not answers["iceberg"]:
            raise SystemExit(f"{', '.join(wrong) or 'Iceberg'} answers differently for the key {key}")
    return times


if __name__ == "__main__":
    main()
