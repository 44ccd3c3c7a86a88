"""Syncs after writes of DataFrames, statements and streams, and by procedures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pymetastore.hive_metastore import ttypes
from pyspark.sql import DataFrame, SparkSession

from pyhudi import HudiTable, bootstrap_table
from pyhudi.errors import CatalogError, ConfigError, OptionWithoutEffectWarning, QueryError, ServiceAfterCommitError
from tests.metastore_server import FakeMetastore

HIVE = "hoodie.datasource.hive_sync."
KEYS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
Metastore = tuple[str, FakeMetastore]


def frame(spark: SparkSession, *rows: tuple[int, str]) -> DataFrame:
    return spark.createDataFrame([(key, 1, city) for key, city in rows], "id int, ts long, city string")


def save(rows: DataFrame, path: Path, **more: str) -> None:
    named = {key.replace("__", "."): value for key, value in more.items()}
    rows.write.format("hudi").options(**KEYS, **named).mode("append").save(str(path))


def partitions(state: FakeMetastore, name: str = "rides", database: str = "default") -> list[str]:
    return sorted(state.partitions[database, name])


def ids(path: Path) -> list[int]:
    return sorted(HudiTable.for_path(str(path)).scan().to_arrow()["id"].to_pylist())


def test_writes_of_dataframes(spark: SparkSession, metastore: Metastore, tmp_path: Path) -> None:
    (uri, state), path = metastore, tmp_path / "t"
    spark.conf.set("hive.metastore.uris", uri)
    try:
        save(frame(spark, (1, "oslo")), path, hoodie__datasource__hive_sync__enable="true")
        save(frame(spark, (2, "moss")), path, hoodie__datasource__meta__sync__enable="true")
    finally:
        spark.conf.unset("hive.metastore.uris")
    assert partitions(state) == ["city=moss", "city=oslo"]
    parameters = state.tables["default", "rides"].parameters
    assert parameters["last_commit_time_sync"] == HudiTable.for_path(str(path)).latest_instant
    assert parameters["spark.sql.create.version"] == spark.version
    options = {f"{HIVE}enable": "true", f"{HIVE}metastore.uris": uri}
    table = HudiTable.for_path(str(path), options)
    table.update({"ts": "2"}, "id = 1")
    assert state.tables["default", "rides"].parameters["last_commit_time_sync"] == table.latest_instant


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({f"{HIVE}mode": "jdbc"}, "HiveServer2 is not asked"),
        ({"hoodie.meta.sync.client.tool.class": "org.apache.hudi.gcp.bigquery.BigQuerySyncTool"}, "BigQuerySyncTool"),
        ({f"{HIVE}metastore.uris": ""}, "the Hive metastore is not known"),
    ],
)
def test_what_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path, more: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HIVE_CONF_DIR", "SPARK_CONF_DIR", "HIVE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    named = {f"{HIVE}enable": "true", f"{HIVE}metastore.uris": "thrift://127.0.0.1:1", **more}
    with pytest.raises(ConfigError, match=message):
        frame(spark, (1, "oslo")).write.format("hudi").options(**KEYS, **named).mode("append").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_a_sync_that_fails(spark: SparkSession, metastore: Metastore, tmp_path: Path) -> None:
    (uri, state), path = metastore, tmp_path / "t"
    state.fail["create_table"] = ttypes.MetaException("no space")
    wanted = {"hoodie__datasource__hive_sync__enable": "true", "hoodie__datasource__hive_sync__metastore__uris": uri}
    with pytest.raises(ServiceAfterCommitError, match=r"is committed, do not run it again; .*no space"):
        save(frame(spark, (1, "oslo")), path, **wanted)
    assert ids(path) == [1]
    options = {**KEYS, f"{HIVE}enable": "true", f"{HIVE}metastore.uris": uri, f"{HIVE}ignore_exceptions": "true"}
    result = HudiTable.for_path(str(path)).upsert(frame(spark, (2, "moss")), options)
    assert "no space" in result.warnings[0]
    assert ids(path) == [1, 2]
    state.fail.clear()
    assert HudiTable.for_path(str(path)).services.sync_catalog(options).tables[0].partitions_added == 2


def test_statements_and_procedures(spark: SparkSession, metastore: Metastore, tmp_path: Path) -> None:
    pytest.importorskip("sqlglot")
    uri, state = metastore
    path = tmp_path / "trips"
    spark.sql(
        "CREATE TABLE trips (id INT, ts BIGINT, datestr STRING) USING hudi TBLPROPERTIES (primaryKey = 'id') "
        f"PARTITIONED BY (datestr) LOCATION '{path}'"
    )
    try:
        spark.sql("INSERT INTO trips VALUES (1, 1, '2024-01-01')")
        called = f"CALL hive_sync(table => 'trips', metastore_uri => '{uri}', mode => 'hms')"
        assert spark.sql(called).collect()[0].result == "hive sync success."
        assert partitions(state, "trips") == ["datestr=2024-01-01"]
        with pytest.raises(ConfigError, match="use_jdbc=true"):
            spark.sql(f"CALL hive_sync(table => 'trips', metastore_uri => '{uri}', use_jdbc => 'true')")
        with pytest.warns(OptionWithoutEffectWarning, match="username has no effect"):
            spark.sql(f"CALL hive_sync(table => 'trips', metastore_uri => '{uri}', username => 'hive')")
        with pytest.raises(CatalogError, match="does not answer"):
            spark.sql("CALL hive_sync(table => 'trips', metastore_uri => 'thrift://127.0.0.1:1')")
        spark.conf.set(f"{HIVE}enable", "true")
        spark.conf.set(f"{HIVE}metastore.uris", uri)
        try:
            spark.sql("INSERT INTO trips VALUES (2, 1, '2024-01-02')")
            assert partitions(state, "trips") == ["datestr=2024-01-01", "datestr=2024-01-02"]
            spark.sql("ALTER TABLE trips DROP PARTITION (datestr = '2024-01-01')")
            assert partitions(state, "trips") == ["datestr=2024-01-02"]
            spark.sql(
                "MERGE INTO trips USING (SELECT 3 AS id, 1L AS ts, '2024-01-03' AS datestr) s ON trips.id = s.id "
                "WHEN NOT MATCHED THEN INSERT *"
            )
            assert "datestr=2024-01-03" in partitions(state, "trips")
        finally:
            spark.conf.unset(f"{HIVE}enable")
            spark.conf.unset(f"{HIVE}metastore.uris")
        spark.sql(
            f"CREATE TABLE copied USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{tmp_path}/copied' "
            "AS SELECT * FROM trips WHERE id = 2"
        )
        compared = (
            "CALL sync_validate(src_table => 'trips', dst_table => 'copied', mode => '{}', hive_server_url => '', "
            "hive_pass => '')"
        )
        text = "Count difference now is count(copied) - count(trips) == -1. Catach up count is 1"
        assert spark.sql(compared.format("complete")).collect()[0].result == text
        latest = text.replace("== -1", "== 0")
        assert spark.sql(compared.format("latestPartitions")).collect()[0].result == latest
        with pytest.raises(QueryError, match="mode is 'complete' or 'latestPartitions'"):
            spark.sql(compared.format("all"))
    finally:
        spark.sql("DROP TABLE IF EXISTS copied")
        spark.sql("DROP TABLE trips")


def test_streams(spark: SparkSession, metastore: Metastore, tmp_path: Path) -> None:
    (uri, state), path, feed = metastore, tmp_path / "t", tmp_path / "feed"
    feed.mkdir()

    def run(*rows: tuple[int, str]) -> None:
        text = "".join(json.dumps({"id": key, "ts": 1, "city": city}) + "\n" for key, city in rows)
        (feed / f"{rows[0][0]}.json").write_text(text)
        source = spark.readStream.schema("id int, ts long, city string").json(str(feed))
        writer = source.writeStream.format("hudi").options(**KEYS).option("checkpointLocation", str(tmp_path / "cp"))
        writer = writer.option(f"{HIVE}enable", "true").option(f"{HIVE}metastore.uris", uri)
        assert writer.outputMode("append").trigger(availableNow=True).start(str(path)).awaitTermination(120)

    run((1, "oslo"))
    assert partitions(state) == ["city=oslo"]
    state.fail["add_partitions_req"] = ttypes.MetaException("no space")
    run((2, "moss"))
    assert (ids(path), partitions(state)) == ([1, 2], ["city=oslo"])
    state.fail.clear()
    run((3, "bodo"))
    assert partitions(state) == ["city=bodo", "city=moss", "city=oslo"]


def test_bootstraps(spark: SparkSession, metastore: Metastore, tmp_path: Path) -> None:
    pytest.importorskip("sqlglot")
    uri, state = metastore
    source = tmp_path / "source"
    frame(spark, (1, "oslo"), (2, "moss")).write.partitionBy("city").parquet(str(source))
    named: dict[str, Any] = {
        **KEYS,
        "hoodie.bootstrap.base.path": str(source),
        f"{HIVE}enable": "true",
        f"{HIVE}metastore.uris": uri,
    }
    bootstrap_table(str(tmp_path / "t"), named)
    assert partitions(state) == ["city=moss", "city=oslo"]
    spark.conf.set(f"{HIVE}metastore.uris", uri)
    try:
        spark.sql(
            "CALL run_bootstrap(table => 'again', table_type => 'COPY_ON_WRITE', rowKey_field => 'id', "
            f"bootstrap_path => '{source}', base_path => '{tmp_path}/again', partition_path_field => 'city', "
            "enable_hive_sync => true)"
        )
    finally:
        spark.conf.unset(f"{HIVE}metastore.uris")
    assert partitions(state, "again") == ["city=moss", "city=oslo"]
