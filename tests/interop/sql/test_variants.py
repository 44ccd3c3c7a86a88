"""Tables with columns of the type VARIANT, structs for Apache Hudi on Spark 3.5: each side goes on with the other's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.schema.logical_types.variants import VARIANT, VARIANT_STRUCT
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.latest_schema import newest_columns
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_METADATA_TABLE

pytest.importorskip("sqlglot")

OPTIONS = {
    "hoodie.table.name": "variants",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "upsert",
    **NO_METADATA_TABLE,
}
BYTES = [{"name": name, "type": "binary", "nullable": False, "metadata": {}} for name in ("value", "metadata")]
COLUMNS = [
    {"name": "id", "type": "string", "nullable": True, "metadata": {}},
    *(
        {
            "name": name,
            "type": {"type": "struct", "fields": BYTES},
            "nullable": True,
            "metadata": {"hudi_type": "VARIANT"},
        }
        for name in ("v", "w")
    ),
]
"""Without required fields, Apache Hudi refuses to make a VARIANT of a struct."""


def variant(number: int) -> dict[str, bytes]:
    """The integer as Spark 4 encodes it."""
    return {"metadata": b"\x01\x00\x00", "value": bytes([0x0C, number])}


def table_of(rows: dict[str, Any]) -> pa.Table:
    columns = {"id": list(rows), "v": list(rows.values()), "w": [None] * len(rows)}
    return pa.table(columns, pa.schema([("id", pa.string()), ("v", VARIANT_STRUCT), ("w", VARIANT_STRUCT)]))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", seldom("MERGE_ON_READ")])
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_in_turns(oracle: Oracle, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "table")
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    expected: dict[str, Any] = {}

    def check() -> None:
        wanted = [(key, expected[key]) for key in sorted(expected)]
        oracle.sql("REFRESH TABLE variants")
        read = {
            "theirs": oracle.sql("SELECT id, v FROM variants").to_pylist(),
            "ours": [
                one.asDict(recursive=True) for one in spark.read.format("hudi").load(path).select("id", "v").collect()
            ],
            "local": HudiTable.for_path(path).scan(columns=["id", "v"]).to_arrow().to_pylist(),
        }
        for side, found in read.items():
            assert sorted(((one["id"], one["v"]) for one in found), key=lambda one: one[0]) == wanted, side

    def schema() -> str:
        recorded = newest_columns(TableSnapshot.load(TableMetaClient.open(path, Options.parse({}))).active)
        assert recorded is not None
        assert recorded[1].schema_json is not None
        return json.dumps([f for f in json.loads(recorded[1].schema_json)["fields"] if f["name"] in ("v", "w")])

    def theirs(rows: dict[str, Any]) -> None:
        oracle.write(path, table_of(rows), options, schema=json.dumps({"type": "struct", "fields": COLUMNS}))
        expected.update(rows)

    def ours(rows: dict[str, Any]) -> None:
        values = spark.createDataFrame(
            [(key, value and (value["value"], value["metadata"])) for key, value in rows.items()],
            "id string, v struct<value: binary, metadata: binary>",
        )
        values.withColumn("w", sf.lit(None)).write.format("hudi").options(**options).mode("append").save(path)
        expected.update(rows)

    theirs({"a": variant(1), "b": None, "c": variant(3)})
    made = schema()
    oracle.sql(
        "CREATE TABLE variants (id STRING, v STRUCT<value: BINARY, metadata: BINARY>, "
        f"w STRUCT<value: BINARY, metadata: BINARY>) USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}'"
    )
    try:
        check()
        ours({"a": variant(10), "d": variant(4), "e": None})
        check()
        assert schema() == made
        theirs({"b": variant(20), "d": variant(40)})
        check()
        if kind == "MERGE_ON_READ":
            HudiTable.for_path(path).services.compact()
            check()
        HudiTable.for_path(path).services.cluster()
        check()
        assert HudiTable.for_path(path).schema.field("v").type == VARIANT
        theirs({"a": None, "e": variant(50)})
        check()
    finally:
        oracle.sql("DROP TABLE variants")
