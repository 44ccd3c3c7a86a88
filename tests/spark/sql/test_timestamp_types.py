"""Sessions in which ``TIMESTAMP`` is a type without time zone, and which parse times as Spark 2 did."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from pyhudi.spark.session_settings import session_setting
from tests.cases import classic
from tests.spark.sql.ride_tables import rows

pytest.importorskip("sqlglot")

pytestmark = pytest.mark.usefixtures("database")

ROW = "SELECT 1 AS id, TIMESTAMP_LTZ'2024-01-01 12:00:00Z' AS at, TIMESTAMP_NTZ'2024-01-01 12:00:00' AS local"
NESTED = "SELECT 1 AS id, struct(array(TIMESTAMP_LTZ'2024-01-01 12:00:00Z') AS a, 1 AS TIMESTAMP_LTZ) AS s"
MOMENT = 1704110400
"""Seconds since 1970 at noon of 2024-01-01 in UTC."""


@pytest.fixture
def ntz(spark: Any) -> Any:
    with (
        session_setting(spark, "spark.sql.timestampType", "TIMESTAMP_NTZ"),
        session_setting(spark, "spark.sql.session.timeZone", "Asia/Kathmandu"),
    ):
        yield spark


def types_of(spark: Any, table: str) -> dict[str, str]:
    return dict(field for field in spark.table(table).dtypes if not field[0].startswith("_hoodie"))


def test_new_tables_have_the_types_of_their_rows(ntz):
    ntz.sql(ROW).write.format("hudi").option("hoodie.datasource.write.recordkey.field", "id").saveAsTable("saved")
    ntz.sql(ROW).writeTo("made").using("hudi").tableProperty("primaryKey", "id").create()
    ntz.sql(f"CREATE TABLE selected USING hudi TBLPROPERTIES (primaryKey = 'id') AS {ROW}")
    ntz.sql("CREATE TABLE liked LIKE saved USING hudi")
    ntz.sql(f"INSERT INTO liked (id, at, local) {ROW}")
    expected = {"id": "int", "at": "timestamp", "local": "timestamp_ntz"}
    for table in ("saved", "made", "selected", "liked"):
        assert types_of(ntz, table) == expected
        described = {row.col_name: row.data_type for row in ntz.sql(f"DESCRIBE {table}").collect()}
        assert {name: described[name] for name in expected} == expected
        assert {one.name: one.dataType for one in ntz.catalog.listColumns(table)}.items() >= expected.items()
        assert rows(ntz, f"SELECT unix_seconds(at), CAST(local AS STRING) FROM {table}") == [
            (MOMENT, "2024-01-01 12:00:00")
        ]


def test_shown_statements_make_the_same_types(spark, ntz):
    ntz.sql(f"CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS {NESTED}")
    before = types_of(ntz, "t")
    made = ntz.sql("SHOW CREATE TABLE t").first()[0]
    with session_setting(spark, "spark.sql.timestampType", "TIMESTAMP_LTZ"):
        usual = spark.sql("SHOW CREATE TABLE t").first()[0]
    assert "ARRAY<TIMESTAMP_LTZ>" in made
    assert "ARRAY<TIMESTAMP>, `TIMESTAMP_LTZ`: INT" in usual
    ntz.sql("DROP TABLE t")
    ntz.sql(made)
    assert types_of(ntz, "t") == before


def test_declared_types_are_those_of_the_session(ntz):
    ntz.sql("CREATE TABLE t (id INT, at TIMESTAMP, zoned TIMESTAMP_LTZ) USING hudi")
    assert types_of(ntz, "t") == {"id": "int", "at": "timestamp_ntz", "zoned": "timestamp"}


def test_values_of_partitions_are_moments(ntz):
    ntz.sql(
        "CREATE TABLE t (id INT, at TIMESTAMP_LTZ) USING hudi PARTITIONED BY (at) TBLPROPERTIES (primaryKey = 'id')"
    )
    ntz.sql("INSERT INTO t PARTITION (at = '2024-01-01 17:45:00') SELECT 1")
    ntz.sql("INSERT INTO t PARTITION (at = TIMESTAMP_LTZ'2024-01-01 13:00:00Z') SELECT 2")
    assert rows(ntz, "SELECT id, unix_seconds(at) FROM t") == [(1, MOMENT), (2, MOMENT + 3600)]
    ntz.sql("ALTER TABLE t DROP PARTITION (at = '2024-01-01 17:45:00')")
    assert rows(ntz, "SELECT id FROM t") == [(2,)]


@classic  # in such sessions Spark Connect sends parameters without their zone
def test_parameters_are_moments(ntz):
    ntz.sql(f"CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS {ROW}")
    moment = dt.datetime(2024, 1, 1, 13, tzinfo=dt.UTC)
    ntz.sql("UPDATE t SET at = :at WHERE id = 1", args={"at": moment})
    assert rows(ntz, "SELECT unix_seconds(at) FROM t WHERE at = :at", args={"at": moment}) == [(MOMENT + 3600,)]


def test_scripts_hold_moments(ntz):
    if ntz.version.startswith("3"):
        pytest.skip("Spark 4 has scripts")
    ntz.sql(f"CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS {ROW}")
    script = """BEGIN
      DECLARE moment TIMESTAMP_LTZ DEFAULT TIMESTAMP_LTZ'2024-01-01 14:00:00Z';
      FOR one AS SELECT id, at FROM t DO
        EXECUTE IMMEDIATE 'UPDATE t SET at = ? + INTERVAL 1 HOUR WHERE id = ?' USING one.at, one.id;
      END FOR;
      EXECUTE IMMEDIATE 'INSERT INTO t (id, at) VALUES (2, ?), (3, ?)' USING moment, CAST(NULL AS TIMESTAMP_LTZ);
    END"""
    ntz.sql(script)
    assert rows(ntz, "SELECT id, unix_seconds(at) FROM t ORDER BY id") == [
        (1, MOMENT + 3600),
        (2, MOMENT + 7200),
        (3, None),
    ]


@pytest.mark.parametrize("policy", ["LEGACY", "CORRECTED"])
def test_times_of_time_travel_are_in_the_zone_of_the_session(ntz, policy):
    ntz.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 'a' AS n")
    ntz.sql("UPDATE t SET n = 'b'")
    with session_setting(ntz, "spark.sql.legacy.timeParserPolicy", policy):
        for now in ("current_timestamp()", "localtimestamp()", "CAST(current_timestamp() AS TIMESTAMP)"):
            assert rows(ntz, f"SELECT n FROM t TIMESTAMP AS OF {now} + INTERVAL 1 MINUTE") == [("b",)]
            assert rows(ntz, f"SELECT n FROM t TIMESTAMP AS OF {now} - INTERVAL 1 HOUR") == []
