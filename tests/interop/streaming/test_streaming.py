"""Streaming sinks of Apache Hudi and pyhudi heed each other's checkpoints in commits."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.interop.harness.oracle import Oracle

SCHEMA = "id string, ts long"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.streaming.checkpoint.identifier": "orders",
}


def feed(folder: Path, name: str, batches: int) -> Path:
    """A folder of JSON files, each with one row that tells its batch."""
    made = folder / name
    made.mkdir()
    for n in range(batches):
        file = made / f"{n}.json"
        file.write_text(json.dumps({"id": f"{name}{n}", "ts": n}) + "\n")
        os.utime(file, (n + 1, n + 1))
    return made


def run(spark, path: Path, source: Path, checkpoint: Path) -> None:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(source))
    writer = rows.writeStream.format("hudi").options(**OPTIONS).option("checkpointLocation", str(checkpoint))
    assert writer.trigger(availableNow=True).start(str(path)).awaitTermination(120)


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_batches_of_the_other_are_not_written_again(oracle: Oracle, spark, tmp_path):
    path = tmp_path / "t"
    run(spark, path, feed(tmp_path, "ours", 2), tmp_path / "cp1")
    # the batches 0 and 1 of the identifier are in the table
    oracle.stream(path, feed(tmp_path, "theirs", 3), SCHEMA, tmp_path / "cp2", OPTIONS)
    assert sorted(oracle.read(path)["id"].to_pylist()) == ["ours0", "ours1", "theirs2"]
    run(spark, path, feed(tmp_path, "again", 4), tmp_path / "cp3")
    assert sorted(oracle.read(path)["id"].to_pylist()) == ["again3", "ours0", "ours1", "theirs2"]
