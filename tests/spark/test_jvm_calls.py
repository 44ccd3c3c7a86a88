"""Calls of the driver to the JVM in small writes, each of which takes tenths of a millisecond of both processes."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable

COLUMNS = ["id", "ts", *(f"c{i}" for i in range(10))]
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BLOOM",
    "hoodie.compact.inline": "false",
}


@pytest.mark.skipif(not pyspark.__version__.startswith("3.5"), reason="other releases make other calls")
def test_small_writes(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from py4j.java_gateway import GatewayClient

    calls: list[str] = []
    send = GatewayClient.send_command

    def counted(self: GatewayClient, command: str, *args: object, **more: object) -> object:
        if not command.startswith("m\n"):  # garbage
            calls.append(command)
        return send(self, command, *args, **more)

    monkeypatch.setattr(GatewayClient, "send_command", counted)
    table = HudiTable.create(str(tmp_path / "t"), OPTIONS)
    rows = spark.range(20).selectExpr("id", "id AS ts", *(f"id AS {name}" for name in COLUMNS[2:])).localCheckpoint()
    table.upsert(rows)
    found = {}
    for name, write in {
        "upsert": lambda: table.upsert(rows.where("id < 3")),
        "update": lambda: table.update({"c1": "c1 + 1"}, "id % 7 = 1"),
        "delete": lambda: table.delete("id % 7 = 2"),
    }.items():
        calls.clear()
        write()
        found[name] = len(calls)
    most = {"upsert": 300, "update": 520, "delete": 460}
    assert all(100 < found[name] <= most[name] for name in found), found
