"""Callbacks after commits, with the document that Apache Hudi sends."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.spark.write.dataframe_writer import write
from tests.http_server import http_server
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import PARALLELISM

ROWS = pa.table({"id": ["1", "2"], "part": ["a", "b"], "ts": pa.array([1, 2], pa.int32())})
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.write.commit.callback.on": "true",
    "hoodie.write.commit.callback.http.custom.headers": "team:data",
    **PARALLELISM,
}
OWN = {"hudi-callback-key", "content-type", "team"}


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_the_same_document(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    with http_server() as received:
        options = {**OPTIONS, "hoodie.write.commit.callback.http.url": received.url}
        oracle.write(tmp_path / "theirs", ROWS, options)
        write(spark.createDataFrame(ROWS.to_pandas()), str(tmp_path / "ours"), options)
    sent = [json.loads(body) for body in received.bodies]
    theirs, ours = sent
    assert set(ours) == set(theirs)
    assert (ours["tableName"], ours["commitActionType"]) == (theirs["tableName"], "commit")
    assert theirs["commitActionType"] == {"empty": False, "present": True}  # without the action
    assert len(ours["commitTime"]) == len(theirs["commitTime"])
    # those of commits; theirs has transient ones, too
    assert set(ours["hoodieWriteStat"][0]) <= set(theirs["hoodieWriteStat"][0])
    assert [stat["numInserts"] for stat in ours["hoodieWriteStat"]] == [1, 1]
    headers = [{k.lower(): v for k, v in each.items() if k.lower() in OWN} for each in received.headers]
    assert headers[1]["hudi-callback-key"] == headers[0]["hudi-callback-key"]
    assert headers[1]["team"] == headers[0]["team"]
