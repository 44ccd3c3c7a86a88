"""One engine's part of `bench.sql`, in a process of its own: ``python -m bench.sql_worker <engine> <folder> <rows>``.

It reads the names of works from stdin, a line each (``work turn``), and answers each by a line of JSON with the seconds
and an answer that engines are compared by. Tables are made when a work first needs them, which is not measured.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.engines import ENGINES, settings

COMMITS = 20
BATCH_ROWS = 1000
ANSWER = "SELECT count(*), sum(fare), sum(ts) FROM {}"
KEYED = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.compact.inline": "false",
}
RECORDS = {"hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}
CDC = {"hoodie.table.cdc.enabled": "true"}


def generated(spark: SparkSession, begin: int, end: int, number: int, step: int = 1) -> DataFrame:
    """Rows with the ids of a range: 60 bytes or so each."""
    text = f"concat('ride ', md5(cast(id + {number} as string)))"
    columns = ("id", f"cast((id * 7919 + {number}) % 10000 as double) as fare", f"{text} as note")
    return spark.range(begin, end, step, 2).selectExpr(*columns, f"cast({number} as bigint) as ts")


class Tables(ABC):
    """The works of one engine. Works return what engines have to agree in."""

    def __init__(self, engine: str, folder: Path, rows: int) -> None:
        self.folder, self.rows = folder, rows
        self.engine = ENGINES[engine](folder)
        builder = SparkSession.builder
        for key, value in settings(self.engine, os.environ.get("BENCH_MEMORY", "3g")).items():
            builder = builder.config(key, value)
        self.engine.start(builder.config("spark.sql.shuffle.partitions", "4"))
        self.spark = self.engine.spark
        self.spark.sparkContext.setLogLevel("ERROR")
        self._made: set[str] = set()

    @abstractmethod
    def create(self, name: str, rows: DataFrame, options: dict[str, str], *, merge_on_read: bool = False) -> None:
        """Make a table that SQL knows by name. ``merge_on_read``: one whose changes leave data files as they are."""

    def table(self, name: str, options: dict[str, str] | None = None, *, merge_on_read: bool = False) -> str:
        """Return the name of a table with all rows, which is made at the first call."""
        if name not in self._made:
            self.create(name, generated(self.spark, 0, self.rows, 0), options or {}, merge_on_read=merge_on_read)
            self._made.add(name)
        return self.named(name)

    def named(self, name: str) -> str:
        """The name in SQL."""
        return name

    def answer(self, name: str) -> list[str]:
        return [str(cell) for cell in self.spark.sql(ANSWER.format(self.named(name))).collect()[0]]

    def changes(self, turn: int) -> DataFrame:
        """Rows of 1 % of the keys, and a tenth as many new ones."""
        every = generated(self.spark, turn, self.rows, turn + 1, 100)
        first = self.rows * (turn + 2)
        return every.union(generated(self.spark, first, first + self.rows // 1000, turn + 1))

    def merge_sql(self, turn: int) -> Callable[[], object]:
        name = self.table("merged")
        self.changes(turn).createOrReplaceTempView("source")
        text = f"MERGE INTO {name} t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        return lambda: self.spark.sql(text + "WHEN NOT MATCHED THEN INSERT *")

    def merge_clauses(self, turn: int) -> Callable[[], object]:
        """A MERGE with conditions and expressions."""
        return self._merge_clauses(self.table("merged_clauses"), turn)

    def merge_clauses_mor(self, turn: int) -> Callable[[], object]:
        return self._merge_clauses(self.table("merged_clauses_mor", merge_on_read=True), turn)

    def _merge_clauses(self, name: str, turn: int) -> Callable[[], object]:
        self.changes(turn).createOrReplaceTempView("source")
        text = f"MERGE INTO {name} t USING source s ON t.id = s.id WHEN MATCHED AND s.fare < 200 THEN DELETE "
        text += "WHEN MATCHED THEN UPDATE SET fare = t.fare + s.fare, ts = s.ts "
        return lambda: self.spark.sql(text + "WHEN NOT MATCHED AND s.fare > 100 THEN INSERT *")

    def update(self, turn: int) -> Callable[[], object]:
        return self._update(self.table("updated"), turn)

    def update_mor(self, turn: int) -> Callable[[], object]:
        return self._update(self.table("updated_mor", merge_on_read=True), turn)

    def _update(self, name: str, turn: int) -> Callable[[], object]:
        return lambda: self.spark.sql(f"UPDATE {name} SET fare = fare + 1 WHERE id % 100 = {turn}")

    def delete(self, turn: int) -> Callable[[], object]:
        return self._delete(self.table("deleted"), turn)

    def delete_mor(self, turn: int) -> Callable[[], object]:
        return self._delete(self.table("deleted_mor", merge_on_read=True), turn)

    def _delete(self, name: str, turn: int) -> Callable[[], object]:
        return lambda: self.spark.sql(f"DELETE FROM {name} WHERE id % 100 = {turn}")

    def stream(self, turn: int) -> Callable[[], object]:
        """Micro-batches of files of 1,000 rows; of each the seconds are those of all."""
        source, count = self.folder / f"source{turn}", int(os.environ.get("BENCH_BATCHES", "100"))
        rows = generated(self.spark, 0, count * BATCH_ROWS, turn).repartitionByRange(count, "id")
        rows.write.parquet(str(source))
        frame = self.spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        target = self.folder / "db" / f"streamed{turn}"
        writer = self.writer(frame.writeStream).option("checkpointLocation", str(self.folder / f"checkpoint{turn}"))
        return lambda: writer.trigger(availableNow=True).start(str(target)).awaitTermination()

    def writer(self, writer: Any) -> Any:
        raise NotImplementedError

    def run(self, work: str, turn: int) -> dict[str, Any]:
        """Do a work, prepared beforehand; returns the seconds and the answer."""
        action = getattr(self, work)(turn)
        begin = time.perf_counter()
        found = action()
        seconds = time.perf_counter() - begin
        checked = {"merge_sql": "merged", "merge_python": "merged_python", "upsert": "upserted"}
        checked |= {"update": "updated", "delete": "deleted", "merge_clauses": "merged_clauses"}
        checked |= {"update_mor": "updated_mor", "delete_mor": "deleted_mor", "merge_clauses_mor": "merged_clauses_mor"}
        checked |= {"cdc_upsert": "upserted_cdc"}
        if work in checked:
            found = self.answer(checked[work])
        return {"seconds": seconds, "answer": found if isinstance(found, (list, int, float)) else None}


class Hudi(Tables):
    """Common part of Apache Hudi and pyhudi."""

    def create(self, name: str, rows: DataFrame, options: dict[str, str], *, merge_on_read: bool = False) -> None:
        path = str(self.folder / "db" / name)
        bulk = {**KEYED, **options, "hoodie.datasource.write.operation": "bulk_insert"}
        bulk["hoodie.datasource.write.table.type"] = "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE"
        self.spark.sql("SET hoodie.compact.inline=false")  # statements take no options; the others compact nothing
        rows.write.format("hudi").options(**bulk).mode("overwrite").save(path)
        self.spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")

    def answer(self, name: str) -> list[str]:
        self.spark.sql(f"REFRESH TABLE {name}")  # Apache Hudi does not see what was written by path
        return super().answer(name)

    def append(self, name: str, rows: DataFrame, options: dict[str, str]) -> None:
        upsert = {**KEYED, **options, "hoodie.datasource.write.operation": "upsert"}
        rows.write.format("hudi").options(**upsert).mode("append").save(str(self.folder / "db" / name))

    def upsert(self, turn: int) -> Callable[[], object]:
        self.table("upserted")
        rows = self.changes(turn)
        return lambda: self.append("upserted", rows, {})

    def cdc_upsert(self, turn: int) -> Callable[[], object]:
        """An upsert of a table that logs its changes."""
        self.table("upserted_cdc", CDC)
        rows = self.changes(turn)
        return lambda: self.append("upserted_cdc", rows, CDC)

    def point(self, turn: int) -> Callable[[], object]:
        name = self.table("indexed", RECORDS)
        key = (self.rows // 97) * (turn + 3)
        return lambda: [str(c) for c in self.spark.sql(f"SELECT * FROM {name} WHERE id = {key}").collect()[0]][-4:]

    def _history(self) -> str:
        """A table of twenty commits; returns the time after which its last one is.

        Apache Hudi reads a copy of the table that pyhudi has written: both read the same files, and the nineteen
        upserts take seconds instead of a quarter of an hour.
        """
        path = str(self.folder / "db" / "history")
        ours = self.folder.parent / "ours" / "db" / "history"
        if "history" not in self._made and str(ours) != path and ours.exists():
            shutil.copytree(ours, path)
            self._made.add("history")
        if "history" not in self._made:
            self.table("history", CDC)
            for number in range(1, COMMITS):
                self.append("history", generated(self.spark, number, self.rows, number, 100), CDC)
        from pyhudi.table.meta_client import TableMetaClient

        commits = TableMetaClient.open(path).active_timeline().timeline.writes().completed()
        return sorted(commit.order_time for commit in commits)[-2]

    def _read(self, begin: str, **options: str) -> int:
        given = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
        given |= {key.replace("_", "."): value for key, value in options.items()}
        frame = self.spark.read.format("hudi").options(**given).load(str(self.folder / "db" / "history"))
        # All columns of all rows are needed, but only two numbers leave Spark: to make Python objects of the rows takes
        # both engines longer than the query.
        return int(frame.selectExpr("count(*)", "sum(hash(*))").collect()[0][0])

    def incremental(self, turn: int) -> Callable[[], object]:  # noqa: ARG002
        begin = self._history()
        return lambda: self._read(begin)

    def cdc(self, turn: int) -> Callable[[], object]:  # noqa: ARG002
        begin = self._history()
        return lambda: self._read(begin, hoodie_datasource_query_incremental_format="cdc")

    def writer(self, writer: Any) -> Any:
        return writer.format("hudi").options(**KEYED).outputMode("append")


class Ours(Hudi):
    """pyhudi."""

    def merge_python(self, turn: int) -> Callable[[], object]:
        from pyhudi import HudiTable

        self.table("merged_python")
        table = HudiTable.for_path(str(self.folder / "db" / "merged_python"))
        merge = table.merge(self.changes(turn).alias("source"), "target.id = source.id")
        return merge.when_matched_update_all().when_not_matched_insert_all().execute

    def passthrough(self, turn: int) -> Callable[[], object]:  # noqa: ARG002
        """Milliseconds that statements which are none of ours take longer; medians of many, in turns."""
        from pyhudi.spark.session import spark_sql

        self.spark.range(10).createOrReplaceTempView("numbers")
        join = "SELECT n.id, m.id FROM numbers n JOIN numbers m ON n.id = m.id WHERE n.id > 3"
        texts = ("SELECT 1", join, "SHOW TABLES")

        def measured() -> list[float]:
            found = []
            for text in texts:
                ours: list[float] = []
                theirs: list[float] = []
                for _ in range(60):
                    for times, call in ((ours, self.spark.sql), (theirs, lambda t: spark_sql(self.spark, t))):
                        begin = time.perf_counter()
                        call(text)
                        times.append(time.perf_counter() - begin)
                found.append(round(1000 * (statistics.median(ours) - statistics.median(theirs)), 2))
            return found

        return measured


class Delta(Tables):
    """Delta Lake."""

    def create(self, name: str, rows: DataFrame, options: dict[str, str], *, merge_on_read: bool = False) -> None:
        del options
        properties = self.engine.merge_on_read_properties if merge_on_read else {}
        rows.write.format("delta").options(**properties).save(str(self.folder / "db" / name))

    def named(self, name: str) -> str:
        return f"delta.`{self.folder / 'db' / name}`"

    def writer(self, writer: Any) -> Any:
        return writer.format("delta").outputMode("append")


class Iceberg(Tables):
    """Apache Iceberg."""

    def create(self, name: str, rows: DataFrame, options: dict[str, str], *, merge_on_read: bool = False) -> None:
        del options
        writer = rows.writeTo(self.named(name))
        for key, value in self.engine.merge_on_read_properties.items() if merge_on_read else ():
            writer = writer.tableProperty(key, value)
        writer.create()

    def named(self, name: str) -> str:
        return f"bench.db.`{name}`"


KINDS: dict[str, type[Tables]] = {"ours": Ours, "hudi": Hudi, "delta": Delta, "iceberg": Iceberg}


def main() -> None:
    """Do what stdin asks for."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Spark prints is no answer
    engine, folder, rows = sys.argv[1:]
    tables = KINDS[engine](engine, Path(folder), int(rows))
    for line in sys.stdin:
        work, turn = line.split()
        print(json.dumps(tables.run(work, int(turn))), file=out)
    tables.spark.stop()


if __name__ == "__main__":
    main()
