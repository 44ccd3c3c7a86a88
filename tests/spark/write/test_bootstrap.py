"""Bootstrap by a DataFrame writer and by SQL, and all that comes after: queries, writes and services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, QueryError, SchemaMismatchError, TableExistsError
from tests.cases import seldom
from tests.unit.services.test_bootstrap import make_source, options_for

pytest.importorskip("sqlglot")

COLUMNS = "id string, n long, ts long, items array<struct<a: long, b: string>>, day string"
SELECTOR = "hoodie.bootstrap.mode.selector"
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
Rows = dict[str, tuple[int, int, str]]


@pytest.fixture(scope="module", autouse=True)
def _active(spark: SparkSession) -> Iterator[None]:
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


def bootstrap(df: DataFrame, source: Path, table: Path, **more: str) -> None:
    options = {**options_for(source), "hoodie.datasource.write.operation": "bootstrap", **more}
    df.write.format("hudi").options(**options).mode("append").save(str(table))


def rows_of(spark: SparkSession, table: Path, **options: str) -> Rows:
    """The rows as Spark reads them, which is as this process reads them, by key."""
    df = spark.read.format("hudi").options(**options).load(str(table))
    found = {row.id: (row.n, len(row["items"]), row.day) for row in df.collect()}
    if not options:
        here = HudiTable.for_path(str(table)).scan().to_arrow().to_pylist()
        assert {row["id"]: (row["n"], len(row["items"]), row["day"]) for row in here} == found
        assert df.where("n >= 1000").count() == sum(n >= 1000 for n, _, _ in found.values())
    return found


def write(spark: SparkSession, table: Path, operation: str, rows: list[tuple[Any, ...]], **more: str) -> None:
    options = {"hoodie.datasource.write.operation": operation, "hoodie.table.name": "t", **more}
    df = spark.createDataFrame(rows, COLUMNS)
    df.write.format("hudi").options(**options).mode("append").save(str(table))


@pytest.mark.parametrize("table_type", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_the_life_of_a_bootstrapped_table(table_type: str, spark: SparkSession, tmp_path: Path):
    source, table = tmp_path / "source", tmp_path / "table"
    made = make_source(source, hive=True)
    expected: Rows = {row["id"]: (row["n"], 1, row["day"]) for row in made}
    more = {
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        SELECTOR: "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
        "hoodie.bootstrap.mode.selector.regex": ".*01-01",
    }
    bootstrap(spark.createDataFrame([], COLUMNS), source, table, **more)
    assert rows_of(spark, table) == expected
    opened = HudiTable.for_path(str(table))
    with pytest.raises(QueryError, match="two files each"):
        spark.read.format("hudi").option("pyhudi.read.engine", "spark").load(str(table)).collect()
    done = opened.latest_instant
    assert done == "00000000000002"
    both = opened.scan(columns=["_hoodie_commit_time", "day"]).to_arrow().group_by(["_hoodie_commit_time", "day"])
    assert sorted(row["day"] for row in both.aggregate([]).to_pylist()) == ["2024-01-01", "2024-01-02"]

    old, new = ("2024-01-01-33", 1000, 5, [], "2024-01-01"), ("2024-01-01-x", 1001, 5, [], "2024-01-01")
    write(spark, table, "upsert", [old, new, ("2024-01-02-03", 1002, 5, [], "2024-01-02")])
    write(spark, table, "delete", [("2024-01-01-05", 0, 9, [], "2024-01-01")])
    later = {**expected, old[0]: (1000, 0, old[4]), new[0]: (1001, 0, new[4]), "2024-01-02-03": (1002, 0, "2024-01-02")}
    del later["2024-01-01-05"]
    assert rows_of(spark, table) == later
    assert rows_of(spark, table, **{"as.of.instant": str(done)}) == expected
    begin = {"hoodie.datasource.read.begin.instanttime": "00000000000002"}
    since = {"hoodie.datasource.query.type": "incremental", **begin}
    assert set(rows_of(spark, table, **since)) <= {old[0], new[0], "2024-01-02-03"} | set(expected)
    assert old[0] in rows_of(spark, table, **since)

    if table_type == "MERGE_ON_READ":
        opened.services.schedule_compaction({"hoodie.compact.inline.max.delta.commits": "1"})
        assert opened.services.run_compaction(spark=spark)
        assert rows_of(spark, table) == later
    opened.services.schedule_clustering({"hoodie.clustering.plan.strategy.sort.columns": "n"})
    opened.services.run_clustering(spark=spark)
    assert rows_of(spark, table) == later
    assert not any("_00000000000001." in path for path in opened.scan().plan().tasks["base_path"].to_pylist())
    for path in source.rglob("*.parquet"):
        path.unlink()
    assert rows_of(spark, table) == later  # which has no need of the source any more
    assert opened.validate_metadata().num_rows == 0


def test_bootstrap_by_sql(spark: SparkSession, tmp_path: Path):
    source, table = tmp_path / "source", tmp_path / "table"
    expected = {row["id"] for row in make_source(source)}
    call = (
        f"CALL run_bootstrap(table => 't', table_type => 'COPY_ON_WRITE', bootstrap_path => '{source}', base_path => "
        f"'{table}', rowKey_field => 'id', partition_path_field => 'day', options => 'hoodie.datasource.write."
        "precombine.field=ts')"
    )
    assert spark.sql(call).collect()[0].status == 0
    assert set(rows_of(spark, table)) == expected
    found = spark.sql(f"CALL show_bootstrap_mapping(path => '{table}', sort_by => 'source_file')").collect()
    assert [row.source_file for row in found] == [f"file://{p}" for p in sorted(source.glob("2*/*.parquet"))]
    assert {row.source_base_path for row in found} == {str(source)}
    one = f"CALL show_bootstrap_mapping(path => '{table}', partition_path => '2024-01-02', file_ids => '{{}}')"
    assert spark.sql(one.format(found[3].file_id)).collect() == found[3:]
    days = spark.sql(f"CALL show_bootstrap_partitions(path => '{table}')").collect()
    assert [day.indexed_partitions for day in days] == ["2024-01-01", "2024-01-02"]
    with pytest.raises(TableExistsError, match="has been written to"):
        spark.sql(call)
    with pytest.raises(TableExistsError, match="inside the Hudi table"):
        spark.sql(call.replace(f"'{table}'", f"'{table}/inside'"))
    HudiTable.for_path(str(table)).delete("id IS NOT NULL")
    anew = f"{call[:-1]}, bootstrap_overwrite => true)"
    with pytest.raises(SchemaMismatchError):
        spark.sql(anew.replace("rowKey_field => 'id'", "rowKey_field => 'none'"))
    assert rows_of(spark, table) == {}
    for base_path in (table, tmp_path / "another"):
        assert spark.sql(anew.replace(f"'{table}'", f"'{base_path}'")).collect()[0].status == 0
        assert set(rows_of(spark, base_path)) == expected
    with pytest.raises(ConfigError, match="does not write the rows"):
        bootstrap(spark.createDataFrame([("a", 1, 1, [], "d")], COLUMNS), source, tmp_path / "other")


def test_columns_of_a_bootstrapped_table_change(spark: SparkSession, tmp_path: Path):
    source, table = tmp_path / "source", tmp_path / "table"
    made = make_source(source, hive=True)
    bootstrap(spark.createDataFrame([], COLUMNS), source, table, **HIVE)
    opened = HudiTable.for_path(str(table))
    with opened.alter_schema() as columns:
        columns.rename_column("n", "number").add_column("note", "string")
    row = ("2024-01-01-33", 1000, 5, [], "changed", "2024-01-01")
    now = "id string, number long, ts long, items array<struct<a: long, b: string>>, note string, day string"
    options = {"hoodie.datasource.write.operation": "upsert", "hoodie.table.name": "t"}
    spark.createDataFrame([row], now).write.format("hudi").options(**options).mode("append").save(str(table))
    expected = {row["id"]: (row["n"], None) for row in made} | {"2024-01-01-33": (1000, "changed")}
    here = opened.scan().to_arrow().to_pylist()
    assert {row["id"]: (row["number"], row["note"]) for row in here} == expected
    there = spark.read.format("hudi").load(str(table)).collect()
    assert {row.id: (row.number, row.note) for row in there} == expected
