"""Streams into and out of tables, for tests."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import pyhudi
from tests.tables import HandMadeTable, at

KEYS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
SCHEMA = "id string, ts long"


class Feed:
    """A folder of JSON files that streams read, one file a micro-batch, and a checkpoint location."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.files = spark, folder, 0
        (folder / "feed").mkdir(parents=True)

    def add(self, *rows: tuple[str, int]) -> None:
        self.files += 1
        file = self.folder / "feed" / f"{self.files:03d}.json"
        file.write_text("".join(json.dumps({"id": k, "ts": v}) + "\n" for k, v in rows))
        os.utime(file, (self.files, self.files))

    def frame(self) -> DataFrame:
        return self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(self.folder / "feed"))

    def run(self, path: Path, *, checkpoint: str = "cp", mode: str = "append", **options: str) -> None:
        writer = self.frame().writeStream.format("hudi").options(**KEYS).outputMode(mode).trigger(availableNow=True)
        given = {key.replace("__", "."): value for key, value in options.items()}
        writer = writer.options(**given).option("checkpointLocation", str(self.folder / checkpoint))
        assert writer.queryName("feed").start(str(path)).awaitTermination(120)


def commits(path: Path) -> int:
    history = pyhudi.HudiTable.for_path(str(path)).history()
    pairs = zip(history["action"].to_pylist(), history["state"].to_pylist(), strict=True)
    return sum(state == "COMPLETED" and action != "rollback" for action, state in pairs)


def await_compaction() -> None:
    """Wait for the asynchronous compaction of a sink."""
    for thread in threading.enumerate():
        if thread.name == "pyhudi-compaction":
            thread.join(60)


def insert(table: HandMadeTable, n: int, *, done: int | None = None) -> None:
    table.write(n, {("a", f"f{n}"): [{"id": str(n), "p": "a", "v": n}]}, done=done or n + 1)


def archive(table: HandMadeTable, upto: int) -> None:
    """Move the instants before ``upto`` into the archived timeline, as a writer of layout 2 would."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = table.root / ".hoodie" / "timeline"
    rows = []
    for file in sorted(folder.iterdir()):
        requested = file.name.split("_")[0].split(".")[0]
        if not file.is_file() or requested >= at(upto):
            continue
        if file.name.endswith(".commit"):
            completion = file.name.split("_")[1].split(".")[0]
            rows.append((requested, completion, "commit", file.read_bytes(), b""))
        file.unlink()
    names = ("instantTime", "completionTime", "action", "metadata", "plan")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    columns["version"] = [1] * len(rows)
    history = folder / "history"
    history.mkdir(exist_ok=True)
    name = f"{rows[0][0]}_{rows[-1][0]}_0.parquet"
    pq.write_table(pa.table(columns), history / name)
    size = (history / name).stat().st_size
    (history / "manifest_1").write_text(json.dumps({"files": [{"fileName": name, "fileLen": size}]}))
    (history / "_version_").write_text("1")
