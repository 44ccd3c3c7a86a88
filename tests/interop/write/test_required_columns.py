"""Tables with columns that Apache Hudi wrote as required, at the top and inside of others: both engines read and write
them by every operation, and agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from pyhudi import HudiTable
from tests.cases import seldom
from tests.interop.harness.alternating_writes import VERSIONS
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_METADATA_TABLE, PARALLELISM
from tests.rows import assert_same_rows
from tests.spark_arrow import to_arrow

FIELDS = {
    "id": "long",
    "name": "string",
    "ts": "long",
    "s": {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "integer", "nullable": False, "metadata": {}},
            {"name": "b", "type": "string", "nullable": True, "metadata": {}},
        ],
    },
    "l": {"type": "array", "elementType": "long", "containsNull": False},
    "m": {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": False},
    "o": "string",
}
FLAT = ("id", "name", "ts", "o")
INNER = pa.struct([("a", pa.int32()), ("b", pa.string())])
ARROW = pa.schema(
    [
        *[("id", pa.int64()), ("name", pa.string()), ("ts", pa.int64()), ("s", INNER)],
        *[("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.float64())), ("o", pa.string())],
    ]
)
KEYS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    **NO_METADATA_TABLE,
    **PARALLELISM,
}


def spark_json(names: tuple[str, ...], *, required: bool) -> str:
    """Spark's schema; only ``o`` may be null where columns are required."""
    fields = [
        {"name": n, "type": FIELDS[n], "nullable": not required or n == "o", "metadata": {}}
        for n in FIELDS
        if n in names
    ]
    return json.dumps({"type": "struct", "fields": fields})


def row(key: int, ts: int) -> dict[str, Any]:
    inner = {"a": key, "b": None if key % 2 else "b"}
    return {"id": key, "name": f"n{ts}", "ts": ts, "s": inner, "l": [key, ts], "m": [("k", key / 2)], "o": None}


class Table:
    """A table of such rows, and what it must hold: key → when it was written."""

    def __init__(self, path: Path, oracle: Oracle, spark: SparkSession, kind: str, names: tuple[str, ...]) -> None:
        self.path, self.oracle, self.spark, self.names = path, oracle, spark, names
        self.options = {**KEYS, "hoodie.datasource.write.table.type": kind}
        self.content: dict[int, int] = {}

    def rows(self, keys: list[int], ts: int) -> pa.Table:
        return pa.Table.from_pylist([row(key, ts) for key in keys], ARROW).select(list(self.names))

    def write(self, side: str, operation: str, keys: list[int], ts: int, *, required: bool) -> None:
        options = {**self.options, "hoodie.datasource.write.operation": operation}
        schema = spark_json(self.names, required=required)
        found = self.rows(keys, ts)
        if side == "theirs":
            mode = "append" if self.content else "overwrite"
            self.oracle.write(self.path, found, options, mode, schema=schema)
        else:
            values = [{k: dict(v) if k == "m" else v for k, v in one.items()} for one in found.to_pylist()]
            frame = self.spark.createDataFrame(
                [tuple(one[n] for n in self.names) for one in values], StructType.fromJson(json.loads(schema))
            )
            assert frame.schema["id"].nullable is not required
            options["hoodie.write.table.version"] = str(VERSIONS[self.oracle.release])
            frame.write.format("hudi").options(**options).mode("append").save(str(self.path))
        if operation == "delete":
            self.content = {key: then for key, then in self.content.items() if key not in keys}
        elif operation.startswith("insert_overwrite"):
            self.content = dict.fromkeys(keys, ts)
        else:
            self.content |= dict.fromkeys(keys, ts)

    def check(self) -> None:
        """Both sides, and our local reader, see the rows."""
        expected = pa.concat_tables([self.rows([], 0), *(self.rows([key], ts) for key, ts in self.content.items())])
        theirs = self.oracle.read(self.path)
        ours = to_arrow(self.spark.read.format("hudi").load(str(self.path)))
        local = HudiTable.for_path(str(self.path)).scan().to_arrow()
        for found in (theirs, ours, local):
            assert_same_rows(found.select(list(self.names)), expected)


@pytest.mark.parametrize(
    ("oracle", "kind", "names"),
    [
        seldom(("0.15.0", "COPY_ON_WRITE", FLAT)),
        seldom(("0.15.0", "COPY_ON_WRITE", tuple(FIELDS))),
        seldom(("0.15.0", "MERGE_ON_READ", tuple(FIELDS))),
        seldom(("1.2.0", "COPY_ON_WRITE", FLAT)),
        ("1.2.0", "COPY_ON_WRITE", tuple(FIELDS)),
        seldom(("1.2.0", "MERGE_ON_READ", tuple(FIELDS))),
    ],
    indirect=["oracle"],
)
def test_every_operation(oracle: Oracle, kind: str, names: tuple[str, ...], spark: Any, tmp_path: Path) -> None:
    table = Table(tmp_path / "t", oracle, spark, kind, names)
    table.write("theirs", "insert", [1, 2, 3, 4], 1, required=True)
    if kind == "MERGE_ON_READ":
        table.write("theirs", "upsert", [1], 2, required=True)
    table.check()
    table.write("ours", "upsert", [2, 5], 3, required=True)
    table.check()
    table.write("ours", "delete", [3], 4, required=True)
    table.write("ours", "insert", [6], 5, required=False)
    table.check()
    table.write("theirs", "upsert", [4, 6], 6, required=True)
    table.write("ours", "bulk_insert", [7], 7, required=True)
    if kind == "MERGE_ON_READ":
        HudiTable.for_path(str(table.path)).services.compact()
    table.check()
    table.write("theirs", "upsert", [1, 7], 8, required=False)
    table.write("ours", "upsert", [2, 8], 9, required=False)
    table.check()
    table.write("ours", "insert_overwrite_table", [1, 9], 10, required=True)
    table.check()
