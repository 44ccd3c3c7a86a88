"""What Apache Hudi's documentation does, page by page, on tables of our own; `docs/guides.md` lists its sections."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import pyhudi
from pyhudi.errors import (
    ConfigError,
    InvalidOptionError,
    MetadataTableWarning,
    OptionWithoutEffectWarning,
    QueryError,
    RecordKeyError,
    SetupError,
    UnsupportedTableError,
    ValidationError,
)
from pyhudi.spark import hudi_jar_configs

pytest.importorskip("sqlglot")

Sql = Callable[..., list[tuple[Any, ...]]]
tested_elsewhere = pytest.mark.slow
"""A page whose statements other modules test, too, one by one."""
SEEN = "SELECT id, name, fare, city FROM rides ORDER BY id, name"
TRIPS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}
"""Options of a table of trips."""


@pytest.fixture(scope="module", autouse=True)
def _active(spark: SparkSession) -> Iterator[None]:
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


@pytest.fixture
def sql(spark: SparkSession) -> Iterator[Sql]:
    """Runs statements in a database of their own and returns the rows of the last one. ``SET`` holds for the test."""
    spark.sql("CREATE DATABASE guides")
    spark.sql("USE guides")
    changed: set[str] = set()

    def run(*statements: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for statement in statements:
            if statement.upper().startswith("SET "):
                changed.add(statement[4:].partition("=")[0].strip())
            rows = [tuple(row) for row in spark.sql(statement).collect()]
        return rows

    yield run
    for key in changed:
        spark.conf.unset(key)
    spark.sql("USE default")
    spark.sql("DROP DATABASE guides CASCADE")


def trips(spark: SparkSession, *rows: tuple[int, str, float, str]) -> DataFrame:
    return spark.createDataFrame(list(rows), "id long, name string, fare double, city string")


def loaded(spark: SparkSession, path: str, **options: object) -> list[tuple[Any, ...]]:
    rows = spark.read.format("hudi").options(**options).load(path)
    return sorted(tuple(row) for row in rows.select("id", "name", "fare", "city").collect())


def test_quick_start_guide(spark, tmp_path):
    """A DataFrame without record keys is written, changed by rows that were read, and queried by time."""
    path = f"file://{tmp_path}/trips"
    options = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.table.cdc.enabled": "true",
    }
    first = trips(spark, (1, "ann", 10.0, "oslo"), (2, "bob", 20.0, "moss"), (3, "cat", 30.0, "oslo"))
    first.write.format("hudi").options(**options).mode("overwrite").save(path)
    changed = spark.read.format("hudi").load(path).filter("name == 'bob'").withColumn("fare", F.col("fare") * 10)
    changed.write.format("hudi").mode("append").save(path)
    gone = spark.read.format("hudi").load(path).filter("name == 'cat'")
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    gone.write.format("hudi").options(**delete).mode("append").save(path)
    now = [(1, "ann", 10.0, "oslo"), (2, "bob", 200.0, "moss")]
    assert loaded(spark, path) == now
    frame = spark.read.format("hudi").load(path)
    frame.createOrReplaceTempView("trips_of_the_guide")
    times = [
        row[0] for row in spark.sql("SELECT DISTINCT _hoodie_commit_time FROM trips_of_the_guide ORDER BY 1").collect()
    ]
    spark.catalog.dropTempView("trips_of_the_guide")
    for as_of in (times[0], f"{times[0][:4]}-{times[0][4:6]}-{times[0][6:8]} 23:59:59.999"):
        expected = (
            now if "-" in as_of else [(1, "ann", 10.0, "oslo"), (2, "bob", 20.0, "moss"), (3, "cat", 30.0, "oslo")]
        )
        assert loaded(spark, path, **{"as.of.instant": as_of}) == expected
    before = spark.read.format("hudi").option("as.of.instant", "2021-07-28").load(path)
    assert (before.columns, before.count()) == (spark.read.format("hudi").load(path).columns, 0)
    assert before.filter("fare > 1").select("city").collect() == []
    incremental = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": 0}
    assert loaded(spark, path, **incremental) == now
    changes = spark.read.format("hudi").options(**incremental)
    changes = changes.option("hoodie.datasource.query.incremental.format", "cdc").load(path)
    assert sorted(row.op for row in changes.collect()) == ["d", "i", "i", "i", "u"]


def test_settings_of_the_session(spark, sql):
    """``spark.hoodie.x`` is ``hoodie.x``, for DataFrames and SQL."""
    sql("CREATE TABLE rides (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    sql("SET spark.hoodie.spark.sql.insert.into.operation = upsert")
    sql("INSERT INTO rides VALUES (1, 'ann')", "INSERT INTO rides VALUES (1, 'bea')")
    assert sql("SELECT id, name FROM rides") == [(1, "bea")]
    sql("SET hoodie.spark.sql.insert.into.operation = insert", "INSERT INTO rides VALUES (1, 'cat')")
    assert sql("SELECT id, name FROM rides ORDER BY name") == [(1, "bea"), (1, "cat")]
    sql("SET hoodie.spark.sql.insert.into.operation = 'upsert'")
    with pytest.raises(InvalidOptionError, match=r"'hoodie.spark.sql.insert.into.operation'; .* leave the quotes"):
        sql("INSERT INTO rides VALUES (1, 'dan')")
    location = sql("SHOW TBLPROPERTIES rides ('path')")[0][1]
    sql("SET spark.hoodie.datasource.query.type = incremental")
    sql("SET spark.hoodie.datasource.read.begin.instanttime = 20990101000000")
    assert spark.read.format("hudi").load(location).count() == 0
    assert spark.read.format("hudi").option("hoodie.datasource.query.type", "snapshot").load(location).count() == 2
    sql("SET hoodie.datasource.query.type = snapshot")
    assert spark.read.format("hudi").load(location).count() == 2


def test_options_in_any_case(spark, tmp_path):
    """Spark's readers and writers ignore the case of options, and the last one counts."""
    path = f"file://{tmp_path}/trips"
    rows = trips(spark, (1, "ann", 10.0, "oslo"), (2, "bob", 20.0, "moss"))
    writer = rows.write.format("HUDI").option("hoodie.table.name", "other").options(**{"Hoodie.Table.Name": "trips"})
    writer = writer.option("hoodie.datasource.write.recordKey.field", "id").option("PATH", path)
    writer.option("HOODIE.datasource.write.partitionPath.field", "city").mode("overwrite").save()
    properties = (tmp_path / "trips" / ".hoodie" / "hoodie.properties").read_text()
    assert "hoodie.table.name=trips\n" in properties
    assert "hoodie.table.partition.fields=city\n" in properties
    reader = spark.read.format("hudi").option("Path", path)
    assert reader.option("Hoodie.Datasource.Query.Type", "snapshot").load().count() == 2
    assert spark.read.format("hudi").load(path, **{"AS.of.Instant": "2021-07-28"}).count() == 0
    with pytest.raises(ConfigError, match=r"unknown option 'hoodie.datasource.write.recordKey.filed'"):
        rows.write.format("hudi").option("hoodie.datasource.write.recordKey.filed", "id").save(f"{path}-2")


def test_settings_for_the_jar(spark, monkeypatch):
    """The catalog of Apache Hudi's jar, which is not there, is not in the way of a session."""
    spark.conf.set(hudi_jar_configs.CATALOG, hudi_jar_configs.HUDI_CATALOG)
    try:
        with pytest.warns(OptionWithoutEffectWarning, match="HoodieCatalog needs Apache Hudi's jar"):
            pyhudi.activate(spark)
        assert spark.conf.get(hudi_jar_configs.CATALOG, None) is None
        assert spark.sql("SELECT 1").count() == 1
    finally:
        spark.conf.unset(hudi_jar_configs.CATALOG)
    monkeypatch.setattr(hudi_jar_configs, "names_class", lambda *asked: hudi_jar_configs.REGISTRATOR in asked)
    monkeypatch.setattr(hudi_jar_configs, "can_run_jobs", lambda _: False)
    with pytest.raises(SetupError, match=r"spark.kryo.registrator=.*HoodieSparkKryoRegistrar.*remove the setting"):
        pyhudi.activate(spark)


@tested_elsewhere
def test_sql_ddl(sql, tmp_path):
    path = f"file://{tmp_path}/rides"
    sql(
        f"""-- comments go along with statements
        CREATE TABLE IF NOT EXISTS rides (id INT, name STRING, fare DOUBLE, city STRING) USING hudi
        OPTIONS (primaryKey = 'id', hoodie.write.record.merge.mode = "COMMIT_TIME_ORDERING", -- needed by the index
            hoodie.metadata.record.index.enable = 'true')
        PARTITIONED BY (city) LOCATION '{path}'""",
        "INSERT INTO rides VALUES (1, 'ann', 10, 'oslo'), (2, 'bob', 20, 'moss')",
        f"CREATE TABLE again USING hudi LOCATION '{path}'",
        "CREATE INDEX idx_name ON rides (name)",
        "CREATE INDEX IF NOT EXISTS idx_upper ON TABLE rides USING column_stats(name OPTIONS(expr = 'upper'))",
    )
    with pytest.raises(ConfigError, match=r"column_stats of a column .* requires the option expr with .*, not func;"):
        sql("CREATE INDEX idx_lower ON rides USING column_stats(name) OPTIONS (func = 'lower')")
    indexes = {row[0] for row in sql("SHOW INDEXES FROM again")}
    assert indexes >= {"record_index", "secondary_index_idx_name", "expr_index_idx_upper", "column_stats"}
    assert sql("SELECT id FROM again WHERE name = 'bob'") == [(2,)]
    sql("ALTER TABLE rides SET SERDEPROPERTIES ('key1' = 'value1')", "ALTER TABLE rides ADD COLUMNS (remark STRING)")
    assert ("key1", "value1") in sql("SHOW TBLPROPERTIES rides")
    sql("ALTER TABLE rides UNSET TBLPROPERTIES IF EXISTS (key1, 'note')")
    assert sql("SHOW PARTITIONS rides") == [("city=moss",), ("city=oslo",)]
    sql("ALTER TABLE rides DROP PARTITION (city = 'moss')")
    assert sql("SELECT id, remark FROM rides") == [(1, None)]
    sql(
        "CREATE TABLE media (id STRING, content BLOB) USING hudi TBLPROPERTIES (primaryKey = 'id')",
        "INSERT INTO media VALUES ('a', named_struct('type', 'INLINE', 'data', X'0102', 'reference', null))",
    )
    assert sql("SELECT read_blob(content) FROM media") == [(b"\x01\x02",)]
    sql("CREATE TABLE events (id INT, payload VARIANT) USING hudi TBLPROPERTIES (primaryKey = 'id')")


@tested_elsewhere
def test_sql_dml(sql):
    sql(
        "CREATE TABLE rides (id BIGINT, name STRING, fare BIGINT, city STRING) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id', orderingFields = 'fare') PARTITIONED BY (city)",
        "INSERT INTO rides PARTITION (city) SELECT 1 AS id, 'ann' AS name, 10 AS fare, 'oslo' AS city",
        "INSERT INTO rides PARTITION (city = 'oslo') SELECT 2, 'bob', 20",
    )
    sql("UPDATE rides SET fare = '11' WHERE name = 'ann'")
    assert sql(SEEN) == [(1, "ann", 11, "oslo"), (2, "bob", 20, "oslo")]
    with pytest.raises(Exception, match="'eleven' is no bigint, as the column 'fare' has"):
        sql("UPDATE rides SET fare = 'eleven'")
    with pytest.raises(Exception, match=r"'1\.5' is no bigint"):
        sql("UPDATE rides SET fare = '1.5'")
    sql(
        """MERGE INTO rides AS target USING (SELECT * FROM VALUES (1, 'anna', '30', 'keep', 'oslo'), (2, 'b', '30',
        'drop', 'oslo'), (3, 'cat', '30', 'add', 'moss') AS v(id, name, fare, flag, city)) source
        ON target.id = source.id
        WHEN MATCHED AND flag != 'drop' THEN UPDATE SET id = source.id, name = source.name, fare = source.fare
        WHEN MATCHED AND flag = 'drop' THEN DELETE
        WHEN NOT MATCHED THEN INSERT (id, name, fare, city) VALUES (source.id, source.name, source.fare, source.city)"""
    )
    assert sql(SEEN) == [(1, "anna", 30, "oslo"), (3, "cat", 30, "moss")]
    sql("SET hoodie.sql.insert.mode = strict")
    with pytest.raises(RecordKeyError, match="fail"):
        sql("INSERT INTO rides VALUES (1, 'again', 40, 'oslo')")
    sql("SET hoodie.sql.insert.mode = upsert", "INSERT INTO rides VALUES (1, 'upserted', 40, 'oslo')")
    assert sql(SEEN)[0] == (1, "upserted", 40, "oslo")
    sql("SET hoodie.sql.insert.mode = non-strict", "INSERT INTO rides VALUES (1, 'twice', 50, 'oslo')")
    assert sql(SEEN)[:2] == [(1, "twice", 50, "oslo"), (1, "upserted", 40, "oslo")]
    sql("SET hoodie.sql.bulk.insert.enable = true", "INSERT INTO rides VALUES (9, 'bulk', 1, 'moss')")
    assert sql("CALL show_commit_extra_metadata('rides', 99)")
    sql("INSERT OVERWRITE rides PARTITION (city = 'oslo') SELECT 4, 'dan', 5", "DELETE FROM rides WHERE name = 'bulk'")
    assert sql(SEEN) == [(3, "cat", 30, "moss"), (4, "dan", 5, "oslo")]


@tested_elsewhere
def test_sql_queries(sql):
    """Indexes are dropped in any order, and a payload class decides beside the merge mode CUSTOM."""
    sql(
        "CREATE TABLE rides (id STRING, name STRING, fare DOUBLE, city STRING) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id') PARTITIONED BY (city)",
        "SET hoodie.metadata.index.partition.stats.enable = true",
        "INSERT INTO rides VALUES ('a', 'ann', 1, 'oslo'), ('b', 'bob', 2, 'moss')",
        "CREATE INDEX record_index ON rides (id)",
        "CREATE INDEX idx_name ON rides (name)",
    )
    assert sql("SELECT key FROM hudi_metadata('rides') WHERE type = 7 ORDER BY key") == [("ann$a",), ("bob$b",)]
    column, least = "ColumnStatsMetadata.columnName", "ColumnStatsMetadata.minValue.member6.value"
    found = sql(f"SELECT {column}, {least} FROM hudi_metadata('rides') WHERE type = 6 AND {column} = 'name' ORDER BY 2")
    assert found == [("name", "ann"), ("name", "bob")]
    sql("SET hoodie.metadata.index.bloom.filter.enable = true")
    sql("SET hoodie.metadata.index.bloom.filter.file.group.count = 1")
    sql("INSERT INTO rides VALUES ('d', 'dan', 4, 'oslo')")
    assert sql("SELECT type, count(*) FROM hudi_metadata('rides') WHERE type = 4 GROUP BY type") == [(4, 3)]
    with pytest.warns(MetadataTableWarning, match="without record_index, secondary_index_idx_name cannot be used"):
        sql("DROP INDEX record_index ON rides")
    assert sql("SELECT id FROM rides WHERE name = 'bob'") == [("b",)]
    sql("INSERT INTO rides VALUES ('c', 'bob', 3, 'moss')")
    assert sql("SELECT id FROM rides WHERE name = 'bob' ORDER BY id") == [("b",), ("c",)]
    assert "secondary_index_idx_name" in {row[0] for row in sql("SHOW INDEXES FROM rides")}
    sql("DROP INDEX secondary_index_idx_name ON rides", "DROP INDEX column_stats ON rides")
    sql("SET hoodie.metadata.index.bloom.filter.enable = false", "DROP INDEX bloom_filters ON rides")
    sql("DROP INDEX partition_stats ON rides")
    assert sql("SHOW INDEXES FROM rides") == []
    sql(
        "CREATE TABLE merged (id INT, name STRING, ts LONG, fare DOUBLE) USING hudi TBLPROPERTIES (type = 'mor', "
        "primaryKey = 'id', orderingFields = 'ts', recordMergeMode = 'CUSTOM', "
        "'hoodie.datasource.write.payload.class' = 'org.apache.hudi.common.model.PartialUpdateAvroPayload')",
        "SET hoodie.spark.sql.insert.into.operation = upsert",
        "INSERT INTO merged VALUES (1, 'ann', 1000, 10)",
        "INSERT INTO merged VALUES (1, NULL, 2000, 20)",
    )
    assert sql("SELECT id, name, ts, fare FROM merged") == [(1, "ann", 2000, 20.0)]
    with pytest.raises(QueryError, match="no query type 'latest-state'; it has latest_state, cdc"):
        sql("SELECT * FROM hudi_table_changes('merged', 'latest-state', 'earliest')")


@tested_elsewhere
def test_procedures(sql):
    sql(
        "CREATE TABLE rides (id INT, name STRING, fare DOUBLE, city STRING) USING hudi "
        "TBLPROPERTIES (type = 'mor', primaryKey = 'id', orderingFields = 'fare') PARTITIONED BY (city)",
        "INSERT INTO rides VALUES (1, 'ann', 10, 'oslo'), (2, 'bob', 20, 'moss')",
        "UPDATE rides SET fare = fare + 1",
    )
    assert "commit_time" in sql("CALL help(cmd => 'show_commits')")[0][0]
    ((latest, *_),) = sql("CALL system.show_commits('rides', limit => 1)")
    assert sql("CALL show_commits(limit => 1, table => 'guides.rides')")[0][0] == latest
    assert len(sql(f"CALL show_commit_files(table => 'rides', instant_time => '{latest}')")) == 2
    assert sql(f"CALL create_savepoint(table => 'rides', commit_time => '{latest}')") == [(True,)]
    sql("DELETE FROM rides")
    assert sql(f"CALL rollback_to_savepoint(table => 'rides', instant_time => '{latest}')") == [(True,)]
    assert sql(f"CALL delete_savepoint(table => 'rides', instant_time => '{latest}')") == [(True,)]
    assert sql("SELECT id, fare FROM rides ORDER BY id") == [(1, 11.0), (2, 21.0)]
    size = "hoodie.clustering.plan.strategy.max.bytes.per.group=2*1024"
    with pytest.raises(InvalidOptionError, match=r"2\*1024"):
        sql(f"CALL run_clustering(table => 'rides', op => 'schedule', options => '\n{size}')")
    ((planned, slices, _),) = sql("CALL run_compaction(op => 'schedule', table => 'rides')")
    assert sql("CALL run_compaction(op => 'run', table => 'rides')") == [(planned, slices, "COMPLETED")]
    assert sql("CALL copy_to_table(table => 'rides', new_table => 'copied')") == [(0,)]
    assert sql("SELECT count(*) FROM copied") == [(2,)]
    with pytest.raises(QueryError, match=r"^there is no Hudi table 'ride' in the database 'guides'$"):
        sql("CALL show_commits('ride')")
    sql("CALL copy_to_temp_view(table => 'rides', view_name => 'seen_rides')")
    with pytest.raises(QueryError, match=r"^'seen_rides' is a table or view, but not a Hudi table$"):
        sql("SELECT * FROM hudi_table_changes('seen_rides', 'latest_state', 'earliest')")
    sql("DROP VIEW seen_rides")
    with pytest.raises(
        QueryError, match="repair_overwrite_hoodie_props needs the path of a file as new_props_file_path"
    ):
        sql("CALL repair_overwrite_hoodie_props(table => 'rides', new_props_file_path => '')")


@tested_elsewhere
def test_procedures_of_services(sql, tmp_path):
    """Orders of a clustering, cleans with a condition, partitions that expire, and file slices of an instant."""
    sql(
        "CREATE TABLE rides (id INT, name STRING, fare DOUBLE, city STRING) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id') PARTITIONED BY (city)",
        *(f"INSERT INTO rides VALUES ({n}, 'n{n}', {n % 4}, 'oslo'), ({n + 9}, 'm{n}', 0, 'moss')" for n in range(3)),
    )
    first = sql("CALL show_commits('rides')")[-1][0]
    for strategy in ("z-order", "HILBERT", "linear"):
        call = f"CALL run_clustering(table => 'rides', order => 'FARE,id', order_strategy => '{strategy}')"
        assert [row[1:3] for row in sql(call)] == [(2, "COMPLETED")]
    with pytest.raises(InvalidOptionError, match="LINEAR, ZORDER, HILBERT"):
        sql("CALL run_clustering(table => 'rides', order => 'id,name', order_strategy => 'moore')")
    with pytest.raises(ConfigError, match="the sort column 'nme' does not exist"):
        sql("CALL run_clustering(table => 'rides', order => 'id,nme')")
    assert len(sql("CALL run_clean(table => 'rides', retain_commits => 1)")) == 1
    for procedure in ("show_clean_plans", "show_cleans_metadata"):
        call = f"CALL {procedure}(table => 'rides', filter => \"policy {{}} 'KEEP_LATEST_COMMITS'\")"
        assert len(sql(call.format("="))) == (2 if procedure == "show_cleans_metadata" else 1)
        assert sql(call.format("!=")) == []
    oslo = "table => 'rides', path_regex => 'city=o*', filter => 'num_delta_files = 0'"
    assert [row[0] for row in sql(f"CALL show_fsview_all({oslo})")] == ["city=oslo"]
    assert [row[0] for row in sql(f"CALL show_fsview_latest({oslo}, merge => false)")] == ["city=oslo"]
    assert sql(f"CALL show_fsview_latest({oslo}, max_instant => '{first}')") == []
    assert sql("CALL show_archived_commits_metadata(table => 'rides', start_ts => '2020', end_ts => '2021')") == []
    assert (
        0
        < sql("CALL stats_file_sizes(table => 'rides', partition_path => 'city=o*')")[-1]["num_files"]
        < (sql("CALL stats_file_sizes('rides')")[-1]["num_files"])
    )
    with pytest.raises(QueryError, match=r"'o\*': no write has files in such a partition"):
        sql("CALL stats_file_sizes(table => 'rides', partition_path => 'o*')")
    with pytest.raises(QueryError, match="not both"):
        sql(f"CALL show_fsview_latest({oslo}, partition_path => 'city=oslo')")
    with pytest.warns(OptionWithoutEffectWarning, match="run_ttl drops nothing"):
        assert sql("CALL run_ttl(table => 'rides', ttl_policy => 'KEEP_BY_CREATION_TIME')") == []
    days = "'hoodie.partition.ttl.strategy.days.retain' = '30'"
    sql(f"ALTER TABLE rides SET TBLPROPERTIES ({days})")
    with warnings.catch_warnings():
        warnings.simplefilter("error", OptionWithoutEffectWarning)
        assert sql("CALL run_ttl('rides')") == []
    sql(f"CALL export_instants(table => 'rides', local_folder => '{tmp_path}/made/folder', limit => 1)")
    assert len(list((tmp_path / "made" / "folder").iterdir())) == 1
    with pytest.warns(OptionWithoutEffectWarning, match="NOT NULL has no effect on the new column 'seats'"):
        sql("ALTER TABLE rides ADD COLUMNS (seats INT NOT NULL)")
    assert sql("SELECT DISTINCT seats FROM rides") == [(None,)]


@tested_elsewhere
def test_table_services_and_indexes(spark, sql, tmp_path):
    """Options of inline services, and indexes of a table that a DataFrame has made."""
    path = f"file://{tmp_path}/trips"
    options = {
        **TRIPS,
        "hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING",
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "2",
        "hoodie.clustering.plan.strategy.sort.columns": "fare,name",
        "hoodie.layout.optimize.strategy": "z-order",
        "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
        "hoodie.clean.hours.retained": "24",
        "hoodie.prewrite.cleaner.policy": "CLEAN",
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    }
    rows = trips(spark, (1, "ann", 10.0, "oslo"), (2, "bob", 20.0, "moss"))
    for mode in ("overwrite", "append"):
        rows.write.format("hudi").options(**options).mode(mode).save(path)
    sql(
        f"CREATE TABLE rides USING hudi LOCATION '{path}'",
        "SET hoodie.metadata.global.record.level.index.enable = true",
        "CREATE INDEX record_index ON rides (id)",
        "CREATE INDEX idx_name ON rides (name)",
        "CREATE INDEX idx_fare ON rides USING bloom_filters(name) OPTIONS (expr = 'identity')",
    )
    assert "secondary_index_idx_name" in {row[0] for row in sql("SHOW INDEXES FROM rides")}
    assert sql("SELECT id FROM rides WHERE name = 'bob'") == [(2,)]
    assert [row[2] for row in sql("CALL show_clustering('rides')")] == ["COMPLETED"]
    assert sql("CALL validate_metadata_table_files('rides')") == []


@tested_elsewhere
def test_batch_writes(spark, tmp_path):
    """Soft deletes, hard deletes by keys, and deletes that a column tells."""
    path = f"file://{tmp_path}/trips"
    options = {
        **TRIPS,
        "hoodie.table.ordering.fields": "fare",
        "hoodie.upsert.shuffle.parallelism": 2,
    }
    rows = trips(spark, *((n, f"n{n}", float(n), "asia/india/chennai") for n in range(4)))
    rows.write.format("hudi").options(**options).mode("overwrite").save(path)
    seen = spark.read.format("org.apache.hudi").load(path + "/*/*/*/*")
    soft = seen.drop(*(name for name in seen.columns if name.startswith("_hoodie"))).filter("id = 0")
    soft = soft.withColumn("name", F.lit(None).cast("string"))
    soft.write.format("hudi").options(**options).mode("append").save(path)
    keys = seen.filter("id = 1").select("id", "city", F.lit("not read").alias("fare"))
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    keys.write.format("org.apache.hudi").options(**delete).mode("append").save(path)
    flagged = rows.withColumn("_hoodie_is_deleted", F.col("id") == 2).filter("id >= 2")
    flagged.write.format("hudi").options(**options).mode("append").save(path)
    left = [(0, None, 0.0, "asia/india/chennai"), (3, "n3", 3.0, "asia/india/chennai")]
    assert loaded(spark, path) == left
    empty = "org.apache.hudi.common.model.EmptyHoodieRecordPayload"
    deletes = soft.write.format("hudi").options(**options).option("hoodie.datasource.write.payload.class", empty)
    deletes.mode("append").save(path)
    assert loaded(spark, path) == left[1:]


@tested_elsewhere
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_data_quality(spark, tmp_path, table_type):
    """Pre-commit validators see the written partitions, and a refused write leaves the table as it was."""
    path, key = f"file://{tmp_path}/trips", "hoodie.precommit.validators"

    def write(kind: str, queries: str, *rows: tuple[int, str | None, float, str], operation: str = "upsert") -> None:
        names = {"single.value": "SingleResult", "equality": "Equality", "inequality": "Inequality"}
        checks = {
            key: f"org.apache.hudi.client.validator.SqlQuery{names[kind]}PreCommitValidator",
            f"{key}.{kind}.sql.queries": queries,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.table.type": table_type,
        }
        trips(spark, *rows).write.format("hudi").options(**TRIPS, **checks).mode("append").save(path)

    unnamed = "select count(*) from <TABLE_NAME> where name is null#0"
    write("single.value", unnamed, (1, "ann", 10.0, "oslo"), (2, "bob", 20.0, "moss"))
    with pytest.raises(ValidationError, match=r"should return '0' after it, but returned \[\(1,\)\]"):
        write("single.value", unnamed, (1, None, 11.0, "oslo"))
    keys = "select id from <TABLE_NAME>"
    write("equality", keys, (1, "ann", 12.0, "oslo"))
    with pytest.raises(ValidationError, match=r"the same rows after it; before: \[\(1,\)\]; after: \[.*\(3,\)"):
        write("equality", keys, (3, "cat", 30.0, "oslo"))
    with pytest.raises(ValidationError, match="should return other rows"):
        write("inequality", keys, (1, "eve", 10.0, "oslo"), operation="insert_overwrite")
    assert loaded(spark, path) == [(1, "ann", 12.0, "oslo"), (2, "bob", 20.0, "moss")]
    write("inequality", keys, (4, "dan", 40.0, "oslo"), operation="insert_overwrite")
    assert loaded(spark, path) == [(2, "bob", 20.0, "moss"), (4, "dan", 40.0, "oslo")]


@tested_elsewhere
def test_streaming_reads_and_writes(spark, sql, tmp_path):
    source, sink = f"file://{tmp_path}/source", f"file://{tmp_path}/sink"
    options = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.precombine.field": "fare",
    }
    rows = trips(spark, (1, "ann", 10.0, "oslo"), (2, "bob", 20.0, "moss"))
    rows.write.format("hudi").options(**options).mode("overwrite").save(source)
    stream = spark.readStream.format("hudi").load(source).writeStream.format("hudi").options(**options)
    stream = stream.outputMode("append").option("path", sink).option("checkpointLocation", f"{tmp_path}/first")
    assert stream.trigger(once=True).start().awaitTermination(120)
    assert loaded(spark, sink) == [(1, "ann", 10.0, "oslo"), (2, "bob", 20.0, "moss")]
    sql(f"CREATE TABLE rides USING hudi LOCATION '{sink}'")

    def merge(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("arrived")
        batch.sparkSession.sql(
            "MERGE INTO guides.rides t USING arrived ON t.id = arrived.id "
            "WHEN MATCHED THEN UPDATE SET fare = arrived.fare + 1 "
            "WHEN NOT MATCHED AND id < 9 THEN INSERT (id, name, fare, city) VALUES (id, upper(name), fare, city)"
        )

    sql("DELETE FROM rides WHERE id = 2")
    trips(spark, (9, "eve", 9.0, "oslo")).write.format("hudi").options(**options).mode("append").save(source)
    merged = spark.readStream.format("hudi").load(source).writeStream.foreachBatch(merge)
    merged = merged.option("checkpointLocation", f"{tmp_path}/second").trigger(availableNow=True).start()
    assert merged.awaitTermination(120)
    assert merged.exception() is None
    assert sql(SEEN) == [(1, "ann", 11.0, "oslo"), (2, "BOB", 20.0, "moss")]


@tested_elsewhere
def test_schema_evolution(spark, sql, tmp_path):
    path = f"file://{tmp_path}/trips"
    options = {
        **TRIPS,
        "hoodie.datasource.write.precombine.field": "fare",
        "hoodie.index.type": "SIMPLE",
    }
    narrow = trips(spark, (1, "ann", 1.0, "oslo"), (2, "bob", 2.0, "oslo")).withColumn("seats", F.lit(3).cast("int"))
    narrow.write.format("hudi").options(**options).mode("overwrite").save(path)
    wide = trips(spark, (2, "bob", 5.0, "oslo")).withColumn("seats", F.lit(2**40)).withColumn("note", F.lit("new"))
    wide.write.format("hudi").options(**options).mode("append").save(path)
    found = spark.read.format("hudi").load(path + "/*").select("id", "seats", "note").orderBy("id")
    assert [tuple(row) for row in found.collect()] == [(1, 3, None), (2, 2**40, "new")]
    sql("SET hoodie.schema.on.read.enable=true")
    sql(
        "CREATE TABLE rides (id INT, place STRUCT<at: STRUCT<c: INT, d: STRING>>, x STRING) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id')",
        "INSERT INTO rides VALUES (1, named_struct('at', named_struct('c', 1, 'd', 'd')), 'x')",
        "ALTER TABLE rides ADD COLUMNS (place.note string comment 'of the place' AFTER at)",
        "ALTER TABLE rides ALTER COLUMN place.at.c TYPE bigint",
        "ALTER TABLE rides RENAME COLUMN place.at.d TO e",
        "ALTER TABLE rides DROP COLUMN x",
    )
    ((number, place),) = sql("SELECT id, place FROM rides")
    assert (number, place.asDict(recursive=True)) == (1, {"at": {"c": 1, "e": "d"}, "note": None})


@tested_elsewhere
def test_key_generation(spark, tmp_path):
    """Settings of the timestamp generator under the prefix of the page, which the table keeps."""
    prefix = "hoodie.streamer.keygen.timebased"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "at",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        f"{prefix}.timestamp.type": "DATE_STRING",
        f"{prefix}.input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ",
        f"{prefix}.input.dateformat.list.delimiter.regex": "",
        f"{prefix}.input.timezone": "",
        f"{prefix}.output.dateformat": "yyyyMMddHH",
        f"{prefix}.output.timezone": "UTC",
    }
    rows = spark.createDataFrame(
        [(1, "2020-04-01T13:01:33.428Z"), (2, "2020-04-01T13:01:33-05:00")], "id int, at string"
    )
    rows.write.format("hudi").options(**options).mode("overwrite").save(str(tmp_path / "t"))
    rows.write.format("hudi").mode("append").save(str(tmp_path / "t"))
    found = spark.read.format("hudi").load(str(tmp_path / "t")).select("_hoodie_partition_path").distinct()
    assert sorted(row[0] for row in found.collect()) == ["2020040113", "2020040118"]


def test_dbt_models(sql):
    """The statements that dbt-spark makes of incremental models and snapshots with the file format hudi."""
    sql(
        "CREATE OR REPLACE TEMPORARY VIEW orders AS SELECT 1 AS id, 'a' AS item, 'CA' AS state UNION ALL "
        "SELECT 2, 'b', 'NY'",
        'create table sold using hudi options (type "cow" , primaryKey "id" ) partitioned by (state) as '
        "select id, item, state from orders",
        "create or replace temporary view sold__dbt_tmp as select 1 as id, 'c' as item, 'CA' as state union all "
        "select 3, 'd', 'NY'",
        "merge into sold as DBT_INTERNAL_DEST using sold__dbt_tmp as DBT_INTERNAL_SOURCE "
        "on DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id "
        "when matched then update set * when not matched then insert *",
    )
    shown = sql("show table extended in guides like 'sold'")
    assert ["Provider: hudi" in row[3] and "Type: MANAGED" in row[3] for row in shown] == [True]
    assert sql("select id, item, state from sold order by id") == [(1, "c", "CA"), (2, "b", "NY"), (3, "d", "NY")]
    # persist_docs
    sql("alter table sold change column item comment 'what it\\'s about'")
    sql("set spark.sql.sources.partitionOverwriteMode = DYNAMIC")
    sql("insert overwrite table sold partition (state) select `id`, `item`, `state` from sold__dbt_tmp where id = 1")
    sql("alter table sold add columns (note string)")
    sql("merge into sold as d using (select *, 'n' as note from sold__dbt_tmp) as s on FALSE "
        "when matched then update set * when not matched then insert *")  # fmt: skip
    comments = {row[0]: row[2] for row in sql("describe table sold")}
    assert (comments["item"], comments["id"]) == ("what it's about", None)
    assert "hoodie.schema.on.read.enable" not in dict(sql("show tblproperties sold"))
    rows = sql("select id, item, note from sold order by id, note")
    assert rows == [(1, "c", "n"), (2, "b", None), (3, "d", "n")]  # a key that is inserted again is updated
    with pytest.raises(UnsupportedTableError, match="needs schema-on-read evolution"):
        sql("alter table sold alter column note after id")
    # a snapshot
    sql(
        'create table kept using hudi options (primaryKey "dbt_scd_id") as select *, md5(string(id)) as dbt_scd_id, '
        "cast(null as timestamp) as dbt_valid_to from orders",
        "merge into kept as DBT_INTERNAL_DEST using (select *, if(id = 1, 'update', 'insert') as dbt_change_type from "
        "kept) as DBT_INTERNAL_SOURCE on DBT_INTERNAL_SOURCE.dbt_scd_id = DBT_INTERNAL_DEST.dbt_scd_id "
        "when matched and DBT_INTERNAL_DEST.dbt_valid_to is null and DBT_INTERNAL_SOURCE.dbt_change_type in "
        "('update', 'delete') then update set dbt_valid_to = timestamp'2024-01-01 00:00:00' "
        "when not matched and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert' then insert *",
    )
    assert sql("select id, string(dbt_valid_to) from kept order by id") == [(1, "2024-01-01 00:00:00"), (2, None)]
