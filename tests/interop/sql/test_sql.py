"""The same statements on Apache Hudi and here give the same rows and tables; each goes on with the other's table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle, OracleError
from tests.properties import FACTOR

pytest.importorskip("sqlglot")

KINDS = {
    "cow": "primaryKey = 'id', type = 'cow'",
    "mor": "primaryKey = 'id', preCombineField = 'ts', type = 'mor'",
    "keyless": "type = 'cow'",
}
STATEMENTS = [
    [
        "INSERT INTO {t} "
        "VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 10, 'Oslo'), (3, 'c', 10, 'Bergen'), (4, 'd', 10, 'Moss')",
        "INSERT INTO {t} PARTITION (city = 'Moss') SELECT 5, 'e', 11L",
        "INSERT INTO {t} (name, city, ts, id) VALUES ('f', 'Moss', 12, 6)",
        "INSERT INTO {t} PARTITION (city = 'Moss') SELECT 15L AS ts, 'h' AS name, 50 AS id",
        "INSERT INTO {t} SELECT 'Moss' AS City, 15L AS ts, 'h' AS name, 51 AS id",
        "INSERT INTO {t} SELECT 52 AS id, 'h' AS name, 16L AS at, 'Moss' AS city",
    ],
    [
        "INSERT INTO {t} VALUES (6, 'again', 13, 'Moss')",
        "UPDATE {t} SET name = concat(name, '!'), ts = ts + 1 WHERE id IN (1, 3)",
        "DELETE FROM {t} WHERE id = 2",
    ],
    [
        "INSERT OVERWRITE {t} PARTITION (city = 'Bergen') SELECT 7, 'g', 14L",
        "ALTER TABLE {t} DROP PARTITION (city = 'Moss')",
    ],
]
"""Statements, of which none changes the rows by which another one of its group is judged."""
KEYED = [
    [
        "MERGE INTO {t} t USING (SELECT 1 id, 'm' name, 20L ts, 'Oslo' city UNION ALL SELECT 8, 'n', 20L, 'Bergen') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = s.name, t.ts = s.ts WHEN NOT MATCHED THEN INSERT *",
        "UPDATE {t} SET name = 'late', ts = 1 WHERE id = 7",
        "MERGE INTO {t} t USING (SELECT 30 id, 'p' name, 20L ts, 'Oslo' city UNION ALL SELECT 31, 'q', 20L, 'Oslo') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = s.name, t.ts = s.ts "
        "WHEN NOT MATCHED AND id > 30 THEN INSERT (id, name, ts, city) VALUES (id, upper(name), ts, city)",
    ],
]
MERGED_AWAY = (
    "MERGE INTO {t} t USING (SELECT 8 id, 'x' name, 21L ts, 'Bergen' city) s ON t.id = s.id WHEN MATCHED THEN DELETE"
)
LAST = [
    "INSERT OVERWRITE {t} PARTITION (city) SELECT 40, 'y', 30L, 'Oslo'",
    "INSERT OVERWRITE {t} SELECT 9, 'z', 30L, 'Bodo'",
]
ROWS = "SELECT id, name, ts, city FROM {t}"
COMPARED = [
    "hoodie.table.name",
    "hoodie.database.name",
    "hoodie.table.type",
    "hoodie.table.version",
    "hoodie.table.recordkey.fields",
    "hoodie.table.partition.fields",
    "hoodie.table.ordering.fields",
    "hoodie.record.merge.mode",
    "hoodie.table.keygenerator.type",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.table.create.schema",
]


class Side:
    """One engine's table."""

    def __init__(self, run: Any, name: str, path: Path) -> None:
        self.run, self.name, self.path = run, name, path

    def sql(self, statement: str) -> list[tuple]:
        if statement == ROWS:  # Apache Hudi does not look for commits of others
            self.run(f"REFRESH TABLE {self.name}")
        found = self.run(statement.format(t=self.name))
        return sorted(found, key=repr)


@pytest.mark.usefixtures("no_metadata_table")
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", ["cow", seldom("mor"), seldom("keyless")])
def test_the_same_statements(oracle: Oracle, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    name = f"t_{kind}"

    def theirs(text: str) -> list[tuple]:
        return [tuple(row.values()) for row in oracle.sql(text).to_pylist()]

    def ours(text: str) -> list[tuple]:
        return [tuple(row) for row in spark.sql(text).collect()]

    sides = [Side(theirs, name, tmp_path / "theirs"), Side(ours, name, tmp_path / "ours")]
    columns = f"(id INT, name STRING, ts BIGINT, city STRING) USING hudi TBLPROPERTIES ({KINDS[kind]})"
    for side in sides:
        side.sql(f"CREATE TABLE {{t}} {columns} PARTITIONED BY (city) LOCATION '{side.path}'")
    configs = [HudiTable.for_path(str(side.path)).config.properties for side in sides]
    assert {k: configs[1].get(k) for k in COMPARED} == {k: configs[0].get(k) for k in COMPARED}
    groups = [*STATEMENTS, *(KEYED if kind != "keyless" else [])]
    if FACTOR >= 1:
        groups = [[statement] for group in groups for statement in group]
    for group in groups:
        for statement in group:
            for side in sides:
                side.sql(statement)
        assert sides[1].sql(ROWS) == sides[0].sql(ROWS), group
    count = sum(map(len, groups))
    if kind != "keyless":
        for side in sides:
            side.sql(MERGED_AWAY)
        assert 8 not in [row[0] for row in sides[1].sql(ROWS)]
        sides[0].sql("DELETE FROM {t} WHERE id = 8")  # a row that a MERGE has inserted may survive its DELETE there
    for show in ("SHOW PARTITIONS {t}", "DESCRIBE {t}"):
        assert sides[1].sql(show) == sides[0].sql(show)
    assert sides[1].sql(ROWS) == sides[0].sql(ROWS)
    operations = [
        [op for op in HudiTable.for_path(str(side.path)).history()["operation"].to_pylist() if op][-count:]
        for side in sides
    ]
    assert [op.removesuffix("_PREPPED") for op in operations[1]] == [
        op.removesuffix("_PREPPED") for op in operations[0]
    ]
    # each goes on with the other's table
    for side, other in (sides, reversed(sides)):
        side.name = f"{name}_taken"
        side.sql(f"CREATE TABLE {{t}} USING hudi LOCATION '{other.path}'")
        before = side.sql(ROWS)
        owner = Side(other.run, name, other.path)
        assert before == owner.sql(ROWS)
        side.sql("UPDATE {t} SET name = 'taken', ts = ts + 100 WHERE city = 'Bergen'")
        assert side.sql(ROWS) == owner.sql(ROWS) != before
    for statement in LAST:
        for side in sides:
            side.sql(statement)
        assert sides[1].sql(ROWS) == sides[0].sql(ROWS)
    for side in sides:
        for table in (name, f"{name}_taken"):
            side.run(f"DROP TABLE {table}")


@pytest.mark.usefixtures("no_metadata_table")
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", [seldom("cow"), "mor", seldom("keyless")])
def test_rows_that_were_replaced_by_a_condition(oracle: Oracle, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Apache Hudi refuses the statement, and reads and changes the table that it leaves here."""
    spark.sql(
        "CREATE TABLE replaced (id INT, name STRING, ts BIGINT, city STRING) USING hudi "
        f"TBLPROPERTIES ({KINDS[kind]}) PARTITIONED BY (city) LOCATION '{tmp_path}'"
    )
    spark.sql("INSERT INTO replaced VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 10, 'Oslo'), (3, 'c', 10, 'Moss')")
    spark.sql("UPDATE replaced SET name = 'bb', ts = 11 WHERE id = 2")
    replacement = (
        "INSERT INTO replaced REPLACE WHERE id = 2 OR city = 'Bodo' "
        "SELECT 2, 'new', 5L, 'Oslo' UNION ALL SELECT 4, 'd', 5L, 'Bodo'"
    )
    spark.sql(replacement)
    expected = [(1, "a", 10, "Oslo"), (2, "new", 5, "Oslo"), (3, "c", 10, "Moss"), (4, "d", 5, "Bodo")]
    oracle.sql(f"CREATE TABLE replaced USING hudi LOCATION '{tmp_path}'")

    def theirs() -> list[tuple]:
        oracle.sql("REFRESH TABLE replaced")
        return sorted(tuple(row.values()) for row in oracle.sql(ROWS.format(t="replaced")).to_pylist())

    assert theirs() == sorted(map(tuple, spark.sql(ROWS.format(t="replaced")).collect())) == expected
    with pytest.raises(OracleError):
        oracle.sql(replacement)
    oracle.sql("UPDATE replaced SET name = 'theirs', ts = 12 WHERE id IN (1, 2)")
    oracle.sql("DELETE FROM replaced WHERE id = 4")
    assert (
        sorted(map(tuple, spark.sql(ROWS.format(t="replaced")).collect()))
        == theirs()
        == [
            (1, "theirs", 12, "Oslo"),
            (2, "theirs", 12, "Oslo"),
            (3, "c", 10, "Moss"),
        ]
    )
    for run in (oracle.sql, spark.sql):
        run("DROP TABLE replaced")


@pytest.mark.usefixtures("no_metadata_table")
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("kind", ["cow", seldom("mor")])
def test_timestamps_in_partition_paths(oracle: Oracle, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Apache Hudi's SQL gives them another form than its key generators; writes here find its records."""
    oracle.sql(
        "CREATE TABLE timed (id INT, name STRING, o BIGINT, ts TIMESTAMP) USING hudi TBLPROPERTIES (primaryKey = 'id', "
        f"preCombineField = 'o', type = '{kind}') PARTITIONED BY (ts) LOCATION '{tmp_path}'",
        "INSERT INTO timed VALUES (1, 'a', 1, TIMESTAMP'2024-01-02 03:04:05'), "
        "(2, 'b', 1, TIMESTAMP'2024-01-02 03:04:05.678901'), (3, 'c', 1, TIMESTAMP'1969-12-31 23:59:58.5')",
    )
    before = HudiTable.for_path(str(tmp_path)).scan().to_arrow().select(["id", "_hoodie_partition_path"]).to_pylist()
    rows = spark.sql(
        "SELECT 1 AS id, 'aa' AS name, 2L AS o, TIMESTAMP'2024-01-02 03:04:05' AS ts UNION ALL "
        "SELECT 2, 'bb', 2L, TIMESTAMP'2024-01-02 03:04:05.678901' UNION ALL "
        "SELECT 3, 'cc', 2L, TIMESTAMP'1969-12-31 23:59:58.5'"
    )
    table = HudiTable.for_path(str(tmp_path))
    table.upsert(rows)
    by_id = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert {(i, row["_hoodie_partition_path"]) for i, row in by_id.items()} == {tuple(row.values()) for row in before}
    assert table.scan().count() == 3
    assert {row["name"] for row in by_id.values()} == {"aa", "bb", "cc"}
    table.delete(rows.where("id = 2"))
    oracle.sql("UPDATE timed SET name = 'theirs', o = 3 WHERE id = 1")
    found = oracle.sql("REFRESH TABLE timed", "SELECT id, name FROM timed ORDER BY id").to_pylist()
    assert found == [{"id": 1, "name": "theirs"}, {"id": 3, "name": "cc"}]
    assert sorted(table.scan().to_arrow()["name"].to_pylist()) == ["cc", "theirs"]
    spark.sql(f"CREATE TABLE timed_here USING hudi LOCATION '{tmp_path}'")
    with pytest.warns(UserWarning, match="has no partition with ts"):
        spark.sql("ALTER TABLE timed_here DROP PARTITION (ts = TIMESTAMP'2024-01-02 03:04:05.678901')")
    spark.sql("ALTER TABLE timed_here DROP PARTITION (ts = TIMESTAMP'2024-01-02 03:04:05')")
    assert table.scan().to_arrow()["name"].to_pylist() == ["cc"]
    spark.sql("DROP TABLE timed_here")
    oracle.sql("DROP TABLE timed")


@pytest.mark.usefixtures("no_metadata_table")
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize(("version", "kind"), [seldom((8, "cow")), seldom((6, "cow")), seldom((9, "mor"))])
def test_nulls_where_null_is_no_value(
    oracle: Oracle, spark: SparkSession, tmp_path: Path, version: int, kind: str
) -> None:
    """With PartialUpdateAvroPayload, UPDATE cannot set what is null."""
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    found = []
    for name, run in ("nulls_theirs", oracle.sql), ("nulls_ours", spark.sql):
        run(
            f"CREATE TABLE {name} (id INT, a STRING, b STRING, o BIGINT) USING hudi TBLPROPERTIES (primaryKey = 'id', "
            f"preCombineField = 'o', type = '{kind}', 'hoodie.write.table.version' = '{version}', "
            f"'hoodie.write.auto.upgrade' = 'false', 'hoodie.datasource.write.payload.class' = '{payload}', "
            f"'hoodie.compaction.payload.class' = '{payload}') LOCATION '{tmp_path / name}'"
        )
        run(f"INSERT INTO {name} VALUES (1, 'a1', 'b1', 10), (2, 'a2', 'b2', 10)")
        run(f"UPDATE {name} SET a = NULL, b = 'new', o = 20 WHERE id = 2")
        rows = HudiTable.for_path(str(tmp_path / name)).scan().to_arrow().select(["id", "a", "b", "o"]).to_pylist()
        found.append(sorted(tuple(row.values()) for row in rows))
        run(f"DROP TABLE {name}")
    assert found == [[(1, "a1", "b1", 10), (2, "a2", "new", 20)]] * 2


@pytest.mark.slow
def test_tables_of_a_hive_metastore(tmp_path: Path) -> None:
    metastore = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    with Oracle("1.2.0", metastore) as oracle:
        oracle.sql(
            "CREATE TABLE theirs (id INT, city STRING) USING hudi TBLPROPERTIES (primaryKey = 'id') "
            "PARTITIONED BY (city)",
            "INSERT INTO theirs VALUES (1, 'Oslo'), (2, 'Moss')",
        )
    job = [sys.executable, "-m", "tests.interop.sql.hive_job", json.dumps(metastore)]
    done = subprocess.run(job, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    both = [[1, "Oslo"], [2, "Moss"], [3, "Oslo"]]
    assert json.loads(done.stdout.splitlines()[-1]) == [both[:2], both, ["ours", "theirs"], True]
