"""``HudiTable.for_name``: tables of Spark's catalog by name."""

from __future__ import annotations

import importlib.util

import pytest

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, NotAHudiTableError, SetupError, SqlSyntaxError
from tests.spark.sql.ride_tables import RIDES, rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")


def test_a_table_by_name_reads_writes_and_has_its_properties(spark):
    spark.sql(RIDES.format("cow").replace("type =", "hoodie.parquet.max.file.size = '1000000', type ="))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')")
    for name in ("rides", "shop.rides", "spark_catalog.shop.rides", "`shop`.`rides`"):
        table = HudiTable.for_name(name, spark=spark)
        assert table.scan(columns=["id", "fare"]).to_arrow().to_pylist() == [{"id": 1, "fare": 10}]
    table.update({"fare": "fare + 1"}, "id = 1")
    assert rows(spark, "SELECT id, fare FROM rides") == [(1, 11)]
    assert table._options["hoodie.parquet.max.file.size"] == "1000000"
    chosen = HudiTable.for_name("rides", {"hoodie.parquet.max.file.size": "2000000"})
    assert chosen._options["hoodie.parquet.max.file.size"] == "2000000"


def test_a_path_as_a_name(spark):
    spark.sql(RIDES.format("cow"))
    path = HudiTable.for_name("rides").path.removeprefix("file://")
    assert HudiTable.for_name(f"hudi.`{path}`").latest_instant is None


def test_the_session_in_another_place(spark):
    for arguments in ((spark, "rides"), ("rides", spark)):
        with pytest.raises(ConfigError, match=r"for_name\(name, spark=…\)"):
            HudiTable.for_name(*arguments)


def test_names_of_nothing_and_of_other_tables(spark):
    spark.sql("CREATE TABLE plain (id INT) USING parquet")
    for name, expected in [
        ("missing", r"`missing` is not in the catalog of the session; .*for_path"),
        ("nowhere.missing", "`nowhere`.`missing` is not in the catalog"),
        ("plain", "`plain` is a table or view, but not a Hudi table"),
    ]:
        with pytest.raises(NotAHudiTableError, match=expected):
            HudiTable.for_name(name)
    with pytest.raises(SqlSyntaxError, match=r"'/tmp/t' is not the name of a table; use HudiTable\.for_path"):
        HudiTable.for_name("/tmp/t")
    with pytest.raises(NotAHudiTableError, match=r"HudiTable\.for_name\(name\) opens a table by its name"):
        HudiTable.for_path("shop.rides")


@pytest.mark.usefixtures("spark")
def test_the_missing_parser_is_named(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("pyhudi.sql.sql_parser.find_spec", lambda name: None if name == "sqlglot" else find_spec(name))
    with pytest.raises(SetupError, match=r"pip install 'pyhudi\[sql\]'"):
        HudiTable.for_name("rides")
