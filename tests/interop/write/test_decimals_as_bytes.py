"""Tables whose Avro schema has decimals as bytes, as Avro sources give them: each side goes on with the other's."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.latest_schema import newest_columns
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.tables import HandMadeTable

BYTES = {b"hudi.decimal": b"bytes"}
DECIMAL = pa.field("d", pa.decimal128(22, 2), metadata=BYTES)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        DECIMAL,
        ("s", pa.struct([DECIMAL])),
        ("l", pa.list_(DECIMAL.with_name("element"))),
        ("x", pa.int64()),
    ]
)
COLUMNS = "id string, p string, d decimal(22,2), s struct<d:decimal(22,2)>, l array<decimal(22,2)>, x long"
VERSIONS = {"0.15.0": 6, "1.2.0": 9}


def row(key: str, n: int) -> dict[str, Any]:
    value = Decimal(n) / 4
    return {"id": key, "p": "a", "d": value, "s": {"d": value}, "l": [value, value], "x": n}


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.select(SCHEMA.names).to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize(
    ("oracle", "kind", "data_format"),
    [
        ("1.2.0", "MERGE_ON_READ", "avro"),
        ("0.15.0", "MERGE_ON_READ", "avro"),
        seldom(("1.2.0", "MERGE_ON_READ", "parquet")),
        seldom(("0.15.0", "MERGE_ON_READ", "parquet")),
        seldom(("1.2.0", "COPY_ON_WRITE", "avro")),
        seldom(("0.15.0", "COPY_ON_WRITE", "avro")),
    ],
    indirect=["oracle"],
)
def test_decimals_stay_bytes(oracle: Oracle, spark: SparkSession, tmp_path: Path, kind: str, data_format: str) -> None:
    version = VERSIONS[oracle.release]
    table = HandMadeTable(tmp_path / "t", version, schema=SCHEMA, properties={"hoodie.table.type": kind})
    base = [row("k0", 1), row("k1", 2), row("k2", 3)]
    action = "commit" if kind == "COPY_ON_WRITE" else "deltacommit"
    table.write(10, {("a", "a1b2c3d4-0000-4000-8000-00000000000a-0"): base}, action=action)
    path, expected = str(table.root), {row["id"]: row for row in base}
    options = {
        "hoodie.table.name": "t",
        "hoodie.write.table.version": str(version),
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.logfile.data.block.format": data_format,
        "hoodie.metadata.enable": "false",
        "hoodie.compact.inline": "false",
    }

    def check() -> None:
        wanted = [expected[key] for key in sorted(expected)]
        assert rows_of(HudiTable.for_path(path).scan().to_arrow()) == wanted
        assert rows_of(oracle.read(path)) == wanted
        recorded = newest_columns(TableSnapshot.load(table.client()).active)[1].schema_json
        assert [json.loads(f) for f in types(recorded)] == [json.loads(f) for f in types(to_avro(SCHEMA, "t"))]

    check()
    rows = spark.createDataFrame(
        [row("k1", 5), row("k3", 7)],
        COLUMNS,
    )
    rows.write.format("hudi").options(**options).mode("append").save(path)
    expected |= {"k1": row("k1", 5), "k3": row("k3", 7)}
    check()
    if oracle.release == "1.2.0":
        oracle.write(path, pa.Table.from_pylist([row("k2", 9)], SCHEMA), options)
        expected["k2"] = row("k2", 9)
        check()
    if kind == "MERGE_ON_READ":
        oracle.sql(f"CALL run_compaction(op => 'scheduleandexecute', path => '{path}')")
        check()


def types(avro: str) -> list[str]:
    return [json.dumps(field["type"]) for field in json.loads(avro)["fields"] if field["name"] in SCHEMA.names]
