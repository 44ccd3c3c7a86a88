"""Tables with columns of the type BLOB: each side goes on with the other's."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.latest_schema import newest_columns
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.sql_tables import create_by_both
from tests.properties import FACTOR

pytest.importorskip("sqlglot")

COLUMNS = "id STRING, b BLOB COMMENT 'bytes', c BLOB, n INT"
NAMES = ["id", "b", "c", "n"]
DATA = bytes(range(256)) * 4
NO_REFERENCE = "CAST(NULL AS STRUCT<external_path: STRING, `offset`: BIGINT, length: BIGINT, managed: BOOLEAN>)"


def inline(data: bytes) -> dict[str, Any]:
    return {"type": "INLINE", "data": data, "reference": None}


def outside(path: Path, offset: int | None, length: int | None) -> dict[str, Any]:
    there = {"external_path": str(path), "offset": offset, "length": length, "managed": False}
    return {"type": "OUT_OF_LINE", "data": None, "reference": there}


def row(key: str, n: int, path: Path, begins: Iterator[int]) -> dict[str, Any]:
    # Apache Hudi refuses ranges that overlap
    b = [outside(path, next(begins), 4), inline(bytes([n]) * n), None, outside(path, None, None)][n % 4]
    return {"id": key, "b": b, "c": inline(key.encode()) if n % 2 else None, "n": n}


def content(blob: dict[str, Any] | None) -> bytes | None:
    if blob is None or blob["type"] == "INLINE":
        return None if blob is None else blob["data"]
    begin, length = blob["reference"]["offset"], blob["reference"]["length"]
    return DATA if begin is None else DATA[begin : begin + length]


def blob_sql(blob: dict[str, Any] | None) -> str:
    if blob is None:
        return f"CAST(NULL AS STRUCT<type: STRING, data: BINARY, reference: {NO_REFERENCE[13:-1]}>)"
    data, reference = "CAST(NULL AS BINARY)", NO_REFERENCE
    if blob["data"] is not None:
        data = f"X'{blob['data'].hex()}'"
    if blob["reference"] is not None:
        begin, length = (
            f"CAST({'NULL' if one is None else one} AS BIGINT)"
            for one in (blob["reference"]["offset"], blob["reference"]["length"])
        )
        reference = (
            f"named_struct('external_path', '{blob['reference']['external_path']}', 'offset', {begin}, "
            f"'length', {length}, 'managed', false)"
        )
    return f"named_struct('type', '{blob['type']}', 'data', {data}, 'reference', {reference})"


def values(*rows: dict[str, Any]) -> str:
    return ", ".join(f"('{r['id']}', {blob_sql(r['b'])}, {blob_sql(r['c'])}, {r['n']})" for r in rows)


@pytest.mark.usefixtures("no_metadata_table")
@pytest.mark.parametrize(("kind", "blocks"), [seldom(("cow", "avro")), ("mor", "avro"), seldom(("mor", "parquet"))])
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_in_turns(oracle: Oracle, spark: SparkSession, tmp_path: Path, kind: str, blocks: str) -> None:
    name = f"blobs_{kind}_{blocks}"
    path = str(tmp_path / kind)
    container = tmp_path / "container.bin"
    container.write_bytes(DATA)
    begins = itertools.count(0, 10)
    expected: dict[str, dict[str, Any]] = {}
    checked = list[int]()

    def theirs(statement: str) -> Any:
        oracle.sql(f"REFRESH TABLE {name}")
        return oracle.sql(statement.format(t=name))

    def ours(statement: str) -> Any:
        return spark.sql(statement.format(t=name))

    def check() -> None:
        checked.append(len(expected))
        wanted = [expected[key] for key in sorted(expected)]
        read = {
            "theirs": oracle.read(path).select(NAMES).to_pylist(),
            "ours": [one.asDict(recursive=True) for one in ours("SELECT * FROM {t}").select(*NAMES).collect()],
            "local": HudiTable.for_path(path).scan(columns=NAMES).to_arrow().to_pylist(),
        }
        for side, found in read.items():
            assert sorted(found, key=lambda one: one["id"]) == wanted, side
        if len(checked) % 3 and FACTOR < 1:
            return  # bytes are read by every third check, the last one included
        query = "SELECT id, read_blob(b) AS b FROM {t}"
        bytes_of = {one["id"]: content(one["b"]) for one in wanted}
        assert {one["id"]: one["b"] for one in theirs(query).to_pylist()} == bytes_of
        assert {one.id: one.b for one in ours(query).collect()} == bytes_of

    create_by_both(oracle, spark, name, path, COLUMNS, kind=kind, blocks=blocks)

    for write, operation in ((ours, "upsert"), (theirs, "upsert"), (theirs, "bulk_insert")):
        some = [
            row(f"{write.__name__}{n}", n, container, begins)
            for n in (range(1, 6) if operation == "upsert" else [6, 7, 8])
        ]
        oracle.sql(f"SET hoodie.spark.sql.insert.into.operation={operation}")
        write(f"INSERT INTO {{t}} VALUES {values(*some)}")
        expected |= {one["id"]: one for one in some}
    oracle.sql("RESET hoodie.spark.sql.insert.into.operation")
    check()
    schemas = set()
    for write, other in ((theirs, "ours"), (ours, "theirs")):
        new = outside(container, next(begins), 10)
        write(f"UPDATE {{t}} SET b = {blob_sql(new)}, n = n + 10 WHERE id = '{other}2'")
        write(f"DELETE FROM {{t}} WHERE id = '{other}4'")
        merged = row(f"{other}5", 8, container, begins)
        write(
            f"MERGE INTO {{t}} AS t USING (SELECT * FROM VALUES {values(merged)} AS s({', '.join(NAMES)})) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        expected[f"{other}2"] |= {"b": new, "n": 12}
        expected[f"{other}5"] = merged
        del expected[f"{other}4"]
        check()
        active = TableSnapshot.load(TableMetaClient.open(path, Options.parse({}))).active
        recorded = newest_columns(active)
        assert recorded is not None
        assert recorded[1].schema_json is not None
        fields = [f for f in json.loads(recorded[1].schema_json)["fields"] if f["name"] in NAMES]
        schemas.add(json.dumps([{key: value for key, value in f.items() if key != "doc"} for f in fields]))
    assert len(schemas) == 1
    if kind == "mor":
        HudiTable.for_path(path).services.compact()
        check()
    HudiTable.for_path(path).services.cluster()
    newest = max(Path(path).glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    forms = [leaf.logical_type.type for leaf in pq.ParquetFile(newest).schema if leaf.path.endswith(".type")]
    assert forms == ["ENUM", "ENUM"]
    check()
    theirs("UPDATE {t} SET n = n + 100 WHERE id = 'ours1'")
    expected["ours1"]["n"] += 100
    check()
