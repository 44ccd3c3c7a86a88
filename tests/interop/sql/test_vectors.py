"""Tables with columns of the type VECTOR: each side goes on with the other's."""

from __future__ import annotations

import json
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

pytest.importorskip("sqlglot")

COLUMNS = "id STRING, v VECTOR(3), d VECTOR(2, DOUBLE), b VECTOR(4, INT8), w VECTOR(3), n INT"
NAMES = ["id", "v", "d", "b", "w", "n"]
METRICS = ("cosine", "l2", "dot_product")
SEARCH = "hudi_vector_search('{{t}}', 'v', array(0.1, 0.2, 0.7), 3, '{metric}')"


def row(key: str, n: int) -> dict[str, Any]:
    values = {
        "v": [n, 0.5, -1.5 if key.startswith("ours") else 3],
        "d": [n / 4, 2.5],
        "b": [n, 2, 3, -4],
        "w": [1, n, 1],
    }
    return {"id": key, **(values if n % 3 else dict.fromkeys(values)), "n": n}


def values(*rows: dict[str, Any]) -> str:
    kinds = {"v": "FLOAT", "d": "DOUBLE", "b": "TINYINT", "w": "FLOAT"}

    def text(name: str, value: Any) -> str:
        if name not in kinds:
            return repr(value)
        if value is None:
            return f"CAST(NULL AS ARRAY<{kinds[name]}>)"
        # Apache Hudi's MERGE takes arrays only if no element can be null
        return f"array({', '.join(f'CAST({one} AS {kinds[name]})' for one in value)})"

    return ", ".join(f"({', '.join(text(name, one[name]) for name in NAMES)})" for one in rows)


@pytest.mark.usefixtures("no_metadata_table")
@pytest.mark.parametrize(("kind", "blocks"), [seldom(("cow", "avro")), ("mor", "avro"), seldom(("mor", "parquet"))])
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_in_turns(oracle: Oracle, spark: SparkSession, tmp_path: Path, kind: str, blocks: str) -> None:
    name = f"vectors_{kind}_{blocks}"
    path = str(tmp_path / kind)
    expected: dict[str, dict[str, Any]] = {}

    def theirs(statement: str) -> Any:
        oracle.sql(f"REFRESH TABLE {name}")
        return oracle.sql(statement.format(t=name))

    def ours(statement: str) -> Any:
        return spark.sql(statement.format(t=name))

    def check() -> None:
        wanted = [expected[key] for key in sorted(expected)]
        read = {
            "theirs": oracle.read(path).select(NAMES).to_pylist(),
            "ours": [one.asDict() for one in ours("SELECT * FROM {t}").select(*NAMES).collect()],
            "local": HudiTable.for_path(path).scan(columns=NAMES).to_arrow().to_pylist(),
        }
        for side, found in read.items():
            assert sorted(found, key=lambda one: one["id"]) == wanted, side

    def check_search() -> None:
        parts = (f"SELECT '{metric}' AS metric, * FROM {SEARCH.format(metric=metric)}" for metric in METRICS)
        search = " UNION ALL ".join(parts)
        nearest = {(one["metric"], one["id"]): one["_hudi_distance"] for one in theirs(search).to_pylist()}
        found = {(one.metric, one.id): one._hudi_distance for one in ours(search).collect()}
        assert len(nearest) == 9
        assert found == pytest.approx(nearest)

    create_by_both(oracle, spark, name, path, COLUMNS, kind=kind, blocks=blocks)

    for write in (ours, theirs):
        some = [row(f"{write.__name__}{n}", n) for n in range(1, 6)]
        write(f"INSERT INTO {{t}} VALUES {values(*some)}")
        expected |= {one["id"]: one for one in some}
    check()
    check_search()
    schemas = set()
    for write, other in ((theirs, "ours"), (ours, "theirs")):
        write(f"UPDATE {{t}} SET v = array(7F, 7F, 7F), n = n + 10 WHERE id = '{other}2'")
        write(f"DELETE FROM {{t}} WHERE id = '{other}4'")
        new = row(f"{other}5", 8)
        write(
            f"MERGE INTO {{t}} AS t USING (SELECT * FROM VALUES {values(new)} AS s({', '.join(NAMES)})) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        expected[f"{other}2"] |= {"v": [7, 7, 7], "n": 12}
        expected[f"{other}5"] = new
        del expected[f"{other}4"]
        check()
        active = TableSnapshot.load(TableMetaClient.open(path, Options.parse({}))).active
        recorded = newest_columns(active)
        assert recorded is not None
        assert recorded[1].schema_json is not None
        schemas.add(json.dumps([f for f in json.loads(recorded[1].schema_json)["fields"] if f["name"] in NAMES]))
    assert len(schemas) == 1
    if kind == "mor":
        HudiTable.for_path(path).services.compact()
        check()
    HudiTable.for_path(path).services.cluster()
    footers = {pq.read_metadata(file).metadata[b"hoodie.vector.columns"] for file in Path(path).glob("*.parquet")}
    assert footers == {b"v:VECTOR(3),d:VECTOR(2, DOUBLE),b:VECTOR(4, INT8),w:VECTOR(3)"}
    check()
    theirs("UPDATE {t} SET n = n + 100 WHERE id = 'ours1'")
    expected["ours1"]["n"] += 100
    check()
