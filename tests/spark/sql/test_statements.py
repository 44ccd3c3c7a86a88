"""SQL, and tables by name, on Spark."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.catalog import Table

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import (
    AmbiguousMergeError,
    ConfigError,
    ConflictError,
    NonRetryableConflictError,
    NotAHudiTableError,
    QueryError,
    SchemaMismatchError,
    SqlSyntaxError,
    StorageError,
    TableConfigConflictError,
    TableExistsError,
    UnsupportedTableError,
)
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.catalog_listing import listed_tables, shown_table
from pyhudi.spark.sql.commands import static_partitions
from pyhudi.spark.sql.commands.dml import repeated_query
from pyhudi.spark.write.write_job import WriteJob
from tests.cases import seldom
from tests.unit.storage.s3_server import running_s3_server

pytest.importorskip("sqlglot")


pytestmark = pytest.mark.usefixtures("database")


def rows(spark, query):
    return sorted(tuple(row) for row in spark.sql(query).collect())


RIDES = (
    "CREATE TABLE rides (id INT, name STRING COMMENT 'who', fare BIGINT, city STRING) USING hudi "
    "TBLPROPERTIES (primaryKey = 'id', type = '{}') PARTITIONED BY (city)"
)
ALL = "SELECT id, name, fare, city FROM rides"


@pytest.mark.parametrize("kind", ["cow", seldom("mor")])
def test_the_life_of_a_table(spark, kind):
    spark.sql(RIDES.format(kind))
    assert spark.sql("SELECT * FROM rides").count() == 0
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Oslo'), (3, 'c', 30, 'Bergen')")
    spark.sql("INSERT INTO rides PARTITION (city = 'Moss') SELECT 4, 'd', 40")
    spark.sql("INSERT INTO shop.rides (city, id) VALUES ('Moss', 5)")
    assert rows(spark, ALL)[3:] == [(4, "d", 40, "Moss"), (5, None, None, "Moss")]
    spark.sql("UPDATE rides SET fare = rides.fare + 1, name = concat(name, '!') WHERE rides.id < 3")
    spark.sql("DELETE FROM rides AS r WHERE r.id IN (SELECT max(id) FROM rides)")
    assert rows(spark, ALL) == [
        (1, "a!", 11, "Oslo"),
        (2, "b!", 21, "Oslo"),
        (3, "c", 30, "Bergen"),
        (4, "d", 40, "Moss"),
    ]
    spark.sql(
        """MERGE INTO rides t USING (SELECT * FROM VALUES (1, 100), (3, 0), (9, 90) AS v(id, fare)) s ON t.id = s.id
        WHEN MATCHED AND s.fare = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.fare = s.fare
        WHEN NOT MATCHED THEN INSERT (id, name, fare, city) VALUES (s.id, 'new', s.fare, 'Bodø')"""
    )
    spark.sql("MERGE INTO rides USING rides AS s ON rides.id = s.id AND s.id = 1 WHEN MATCHED THEN UPDATE SET *")
    after = [(1, "a!", 100, "Oslo"), (2, "b!", 21, "Oslo"), (4, "d", 40, "Moss"), (9, "new", 90, "Bodø")]
    assert rows(spark, ALL) == after
    # time travel, by the instants of the table
    table = HudiTable.for_path(spark.sql("SHOW TBLPROPERTIES rides ('path')").first()["value"])
    instants = [row["requested"] for row in table.history().to_pylist() if row["operation"] != "COMPACT"]
    assert rows(spark, f"SELECT count(*) FROM rides TIMESTAMP AS OF '{instants[-1]}'") == [(3,)]
    assert rows(spark, f"SELECT max(o.id) FROM rides VERSION AS OF {instants[-2]} o JOIN rides r USING (id)") == [(4,)]
    # overwriting
    spark.sql("INSERT OVERWRITE rides PARTITION (city = 'Oslo') SELECT 11, 'o', 1")
    spark.sql("SET hoodie.datasource.overwrite.mode = dynamic")
    spark.sql("INSERT OVERWRITE TABLE rides PARTITION (city) SELECT 12, 'm', 1, 'Moss'")
    spark.sql("RESET hoodie.datasource.overwrite.mode")
    assert rows(spark, ALL) == [(9, "new", 90, "Bodø"), (11, "o", 1, "Oslo"), (12, "m", 1, "Moss")]
    assert rows(spark, "SHOW PARTITIONS rides")[-1] == ("city=Oslo",)
    assert rows(spark, "SHOW PARTITIONS rides PARTITION (CITY = 'Oslo')") == [("city=Oslo",)]
    spark.sql("ALTER TABLE rides DROP PARTITION (City = 'Oslo')")
    with pytest.warns(UserWarning, match="has no partition with City = 'Oslo'"):
        spark.sql("ALTER TABLE rides DROP PARTITION (City = 'Oslo')")
    spark.sql("ALTER TABLE rides ADD COLUMNS (tip DOUBLE COMMENT 'more')")
    assert spark.table("rides").columns[-5:] == ["id", "name", "fare", "tip", "city"]
    spark.sql("INSERT INTO rides VALUES (13, 'x', 1, 0.5, 'Oslo')")
    assert rows(spark, "SELECT id, tip FROM rides WHERE city = 'Oslo'") == [(13, 0.5)]
    spark.sql("ALTER TABLE rides RENAME TO trips")
    assert [row.tableName for row in spark.sql("SHOW TABLES").collect()] == ["trips"]
    assert table.validate_metadata().num_rows == 0  # its name has changed, too
    [(partition,), *_] = rows_of(spark, "CALL show_metadata_table_partitions('trips')")
    assert rows_of(spark, f"CALL show_metadata_table_files(table => 'trips', partition => '{partition}')")
    spark.sql("TRUNCATE TABLE trips")
    assert spark.table("shop.trips").count() == 0
    assert spark.sql("CALL show_commits(table => 'trips', limit => 2)").count() == 2
    assert spark.sql("CALL show_timeline('shop.trips')").first()["state"] == "COMPLETED"
    spark.sql("DROP TABLE trips PURGE")
    assert not spark.catalog.tableExists("trips")
    assert not HudiTable.exists(table._path)


def test_what_is_shown(spark, tmp_path):
    spark.sql(RIDES.format("mor") + " COMMENT 'of people'")
    assert [tuple(r) for r in spark.sql("DESCRIBE rides").collect()][5:8] == [
        ("id", "int", None),
        ("name", "string", "who"),
        ("fare", "bigint", None),
    ]
    assert ("Provider", "hudi", "") in rows_of(spark, "DESC EXTENDED rides")
    assert ("data_type", "bigint") in rows_of(spark, "DESCRIBE TABLE rides fare")
    properties = dict(rows_of(spark, "SHOW TBLPROPERTIES rides"))
    assert properties["primaryKey"] == "id"
    assert properties["type"] == "mor"
    spark.sql("ALTER TABLE rides SET TBLPROPERTIES ('hoodie.keep.max.commits' = '77', note = 'it\\'s')")
    spark.sql("ALTER TABLE rides UNSET TBLPROPERTIES ('note')")
    assert dict(rows_of(spark, "SHOW TBLPROPERTIES rides"))["hoodie.keep.max.commits"] == "77"
    made = spark.sql("SHOW CREATE TABLE rides").first()[0]
    assert "USING hudi" in made
    assert "PARTITIONED BY (city)" in made
    columns = {c.name: c.isPartition for c in spark.catalog.listColumns("rides")}
    assert list(columns)[-1] == "city"
    assert [name for name, is_partition in columns.items() if is_partition] == ["city"]
    spark.sql(f"CREATE TABLE other (id INT) USING hudi LOCATION '{tmp_path}/other'")
    spark.sql("CREATE VIEW plain AS SELECT 1 AS id")
    expected = {"rides": "MANAGED", "other": "EXTERNAL", "plain": "VIEW"}
    assert {t.name: t.tableType for t in spark.catalog.listTables() if not t.isTemporary} == expected
    assert {name: spark.catalog.getTable(f"shop.{name}").tableType for name in expected} == expected
    elsewhere = Table("rides", "elsewhere", ["shop"], None, "VIEW", isTemporary=False)
    assert listed_tables(spark, [elsewhere]) == [elsewhere] == [shown_table(spark, elsewhere)]
    assert dict(rows_of(spark, "CALL show_table_properties('rides', limit => 100)"))["hoodie.table.name"] == "rides"
    one = "CALL show_table_properties(table => 'rides', limit => 100, filter => \"key = 'hoodie.table.name'\")"
    assert rows_of(spark, one) == [("hoodie.table.name", "rides")]
    # what was shown makes the same table
    spark.sql("CREATE TABLE copied LIKE rides USING hudi")
    assert dict(rows_of(spark, "SHOW TBLPROPERTIES copied"))["type"] == "mor"


def rows_of(spark, query):
    return [tuple(row) for row in spark.sql(query).collect()]


def test_a_session_without_pyhudi_gets_an_error(spark):
    spark.sql(RIDES.format("cow"))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')")
    spark.sql("CREATE TEMP VIEW cheap AS SELECT id FROM rides")
    spark.catalog.dropTempView("cheap")
    spark.sql("CREATE VIEW cheap AS SELECT * FROM rides WHERE fare < 20")
    assert rows(spark, "SELECT id FROM cheap") == [(1,)]
    pyhudi.deactivate()
    try:
        for query in (
            "SELECT * FROM rides",
            "SELECT count(*) FROM rides",
            "SELECT 1 FROM rides",
            "SELECT * FROM rides WHERE id = 1 AND city = 'Oslo'",
            "SELECT EXISTS (SELECT 1 FROM rides)",
            "SELECT id FROM cheap",
            "SELECT * FROM (VALUES (1)) AS v(id) LEFT ANTI JOIN rides USING (id)",
        ):
            with pytest.raises(Exception, match=r"pyhudi\.activate"):
                spark.sql(query).collect()
        for statement in ("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')", "TRUNCATE TABLE rides"):
            with pytest.raises(Exception, match=r"(?i)view"):
                spark.sql(statement)
        if spark.version < "4.3":
            with pytest.raises(Exception, match=r"(?i)view"):
                spark.sql("DROP TABLE rides")
        else:
            spark.sql("DROP TABLE rides")  # of a view takes its name away
    finally:
        pyhudi.activate(spark)
    if not spark.catalog.tableExists("rides"):
        place = f"{spark.conf.get('spark.sql.warehouse.dir')}/shop.db/rides"
        spark.sql(f"CREATE TABLE rides USING hudi LOCATION '{place}'")
    assert rows(spark, "SELECT id FROM cheap") == [(1,)]


def test_names_everywhere_and_always_the_newest_rows(spark, tmp_path):
    frame = spark.createDataFrame([(1, "Oslo", 1.0)], "id int, city string, fare double")
    options = {"hoodie.datasource.write.recordkey.field": "id"}
    frame.write.format("hudi").options(**options).partitionBy("city").saveAsTable("a")
    spark.sql("CREATE TEMP VIEW cheap AS SELECT id, fare FROM a WHERE fare < 10")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT id, fare FROM a")
    for number in (2, 3):
        frame.selectExpr(f"{number} id", "fare", "city").write.mode("append").saveAsTable("a")
        assert rows(spark, "SELECT max(id) FROM a") == [(number,)]
        assert spark.table("cheap").count() == number
        assert rows(spark, "WITH a AS (SELECT * FROM shop.a) SELECT count(shop.a.id) FROM shop.a") == [(number,)]
        assert spark.read.table("shop.a").count() == number
    for mode in ("append", "overwrite"):
        with pytest.raises(TableExistsError, match="is a Hudi table, and cannot be written in another format"):
            frame.write.format("parquet").mode(mode).saveAsTable("a")
    with pytest.raises(QueryError, match=r"versions of a Hudi table are the instants.*newest are \d{17}, \d{17}.*CALL"):
        spark.sql("SELECT * FROM a VERSION AS OF 1")
    for write in (
        lambda: frame.write.option("operation", "delete").insertInto("a"),
        lambda: frame.write.option("operation", "delete").mode("append").saveAsTable("a"),
        lambda: frame.writeTo("a").option("operation", "delete").append(),
        lambda: frame.writeTo("a").option("replaceWhere", "id = 1").overwritePartitions(),
    ):
        with pytest.raises(ConfigError, match=r"did you mean 'hoodie\.datasource\.write\.operation'|replaceWhere"):
            write()
    frame.selectExpr("4 id", "2.5 fare", "'Moss' city").write.insertInto("a")
    frame.selectExpr("5 id", "'Moss' city", "3.5 fare").writeTo("a").append()
    frame.selectExpr("6 id", "'Moss' city", "3.5 fare").writeTo("a").overwritePartitions()
    assert rows(spark, "SELECT id, city FROM a")[-1] == (6, "Moss")
    assert spark.table("a").count() == 4
    frame.writeTo("b").using("hudi").tableProperty("primaryKey", "id").partitionedBy("city").create()
    with pytest.raises(TableExistsError):
        frame.writeTo("b").create()
    frame.selectExpr("9 id", "city", "fare").writeTo("b").tableProperty("type", "mor").createOrReplace()
    replaced = HudiTable.for_path(find_table(spark, ("b",)).location).config
    assert (replaced.record_keys, replaced.partition_fields, str(replaced.table_type)) == ((), (), "MERGE_ON_READ")
    assert find_table(spark, ("b",)).properties == {"type": "mor"}
    assert rows(spark, "SELECT a.id, b.id FROM shop.a JOIN b ON a.id = b.id - 8") == [(1, 9)]
    spark.sql("INSERT INTO plain SELECT id, fare FROM b")
    assert spark.table("plain").count() == 2
    # external: an existing table keeps its files when it is dropped
    path = str(tmp_path / "external")
    shutil.copytree(spark.sql("SHOW TBLPROPERTIES b ('path')").first()["value"].removeprefix("file:"), path)
    spark.sql(f"CREATE TABLE c USING hudi LOCATION '{path}'")
    assert rows(spark, "SELECT id FROM c") == [(9,)]
    assert rows(spark, f"SELECT id FROM hudi.`{path}`") == [(9,)]
    spark.sql("DROP TABLE c")
    assert HudiTable.exists(path)
    with pytest.raises(TableConfigConflictError):
        spark.sql(f"CREATE TABLE c USING hudi TBLPROPERTIES (primaryKey = 'city') LOCATION '{path}'")
    spark.sql("CREATE TABLE d USING hudi PARTITIONED BY (day) AS SELECT 1 AS id, date'2024-01-05' AS day")
    assert rows(spark, "SELECT id, day FROM d") == [(1, date(2024, 1, 5))]
    assert rows(spark, "SHOW PARTITIONS d") == [("day=2024-01-05",)]
    spark.sql("CREATE OR REPLACE TABLE d USING hudi AS SELECT id + 1 AS id FROM d")
    assert rows(spark, "SELECT id FROM d") == [(2,)]
    # a name that is another table's now
    spark.sql("DROP TABLE d")
    spark.sql("CREATE TABLE d USING parquet AS SELECT 3 AS id")
    assert rows(spark, "SELECT id FROM d") == [(3,)]


def test_a_table_is_created_in_an_empty_place_only(spark, tmp_path):
    place = tmp_path / "place"
    create = f"CREATE TABLE t USING hudi PARTITIONED BY (day) LOCATION '{place}'"
    broken = "AS SELECT id, IF(id = 3, raise_error('broken'), 'a') AS day FROM range(4)"
    mine = place / "folder" / "mine.csv"
    mine.parent.mkdir(parents=True)
    mine.write_text("1")
    for query in (broken, "AS SELECT 1 AS id, 'a' AS day", "(id INT, day STRING)"):
        with pytest.raises(TableExistsError, match=r"has files: 'folder/mine\.csv'"):
            spark.sql(create.replace("USING", f"{query} USING") if query[0] == "(" else f"{create} {query}")
        with pytest.raises(TableExistsError, match=r"has files"):
            spark.range(3).write.format("hudi").option("path", str(place)).saveAsTable("t")
    assert mine.read_text() == "1"
    assert not (place / ".hoodie").exists()
    mine.unlink()
    with pytest.raises(Exception, match="broken"):
        spark.sql(f"{create} {broken}")
    # tasks that outlive the failed job may leave markers, and metadata files of partitions
    assert not [path for path in place.rglob("*") if path.suffix in (".parquet", ".properties")]
    spark.sql(f"{create} AS SELECT 1 AS id, 'a' AS day")
    assert rows(spark, "SELECT id, day FROM t") == [(1, "a")]
    with pytest.raises(TableExistsError, match="inside the Hudi table"):
        spark.sql(f"CREATE TABLE u (id INT) USING hudi LOCATION '{place}/day=a'")


def test_a_table_is_created_where_a_first_write_has_failed(spark, tmp_path):
    """What its tasks leave behind when they outlive it is no table, and has no rows. A timeline would have some."""
    place = tmp_path / "place"
    create = f"CREATE TABLE t USING hudi PARTITIONED BY (day) LOCATION '{place}' AS SELECT 1 AS id, 'a' AS day"
    late = "20260101000000000"
    left = [f".hoodie/.temp/{late}/day=b/x.parquet.marker.CREATE", "day=b/.hoodie_partition_metadata", ".hoodie/lock"]
    lost = f".hoodie/timeline/{late}.commit.requested"
    for path in (*left, lost):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).touch()
    with pytest.raises(TableExistsError, match=re.escape(lost)):
        spark.sql(create)
    assert not spark.catalog.tableExists("t")
    (place / lost).unlink()
    spark.sql(create)
    assert rows(spark, "SELECT id, day FROM t") == [(1, "a")]
    assert rows(spark, "SHOW PARTITIONS t") == [("day=a",)]


def test_a_table_is_replaced_if_the_new_one_is_possible(spark):
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id")
    replace = "CREATE OR REPLACE TABLE t {} USING hudi {}"
    for columns, more, error in (
        ("", "", QueryError),
        ("(id INT)", "PARTITIONED BY (day)", SchemaMismatchError),
        ("(id INT)", "TBLPROPERTIES (type = 'none')", ConfigError),
        ("(id NONE)", "", Exception),
    ):
        with pytest.raises(error):
            spark.sql(replace.format(columns, more))
        assert rows(spark, "SELECT id FROM t") == [(1,)]
    spark.sql(replace.format("(name STRING)", ""))
    assert rows(spark, "SELECT name FROM t") == []


def test_save_modes_at_a_path_that_the_catalog_does_not_have(spark, tmp_path):
    path, options = str(tmp_path / "t"), {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}

    def frame(number):
        return spark.createDataFrame([(number, "Oslo")], "id int, city string")

    def writer(number):
        return frame(number).write.format("hudi").options(path=path, **options)

    def partitions():
        return [field.name for field in HudiTable.for_path(path).config.partition_fields]

    writer(1).partitionBy("city").save()
    with pytest.raises(TableExistsError, match="there is a Hudi table at"):
        writer(2).saveAsTable("t")
    with pytest.raises(TableExistsError, match="there is a Hudi table at"):
        frame(2).writeTo("t").using("hudi").option("path", path).create()
    writer(2).mode("ignore").saveAsTable("t")
    assert not spark.catalog.tableExists("t")
    writer(3).mode("append").saveAsTable("t")
    assert rows(spark, "SELECT id FROM t") == [(1,), (3,)]
    spark.sql("DROP TABLE t")
    frame(4).writeTo("t").using("hudi").options(path=path, **options).createOrReplace()
    assert rows(spark, "SELECT id FROM t") == [(4,)]
    assert partitions() == []
    spark.sql("DROP TABLE t")
    # properties and partitions that are given before the format
    given = frame(5).writeTo("t").tableProperty("primaryKey", "id").option("path", path).option("nothing", None)
    given.partitionedBy("city").using("hudi").createOrReplace()
    assert rows(spark, "SELECT _hoodie_record_key, id FROM t") == [("5", 5)]
    assert partitions() == ["city"]
    # where a managed table belongs
    place = spark.catalog.getDatabase("shop").locationUri + "/m"
    frame(6).write.format("hudi").options(**options).save(place)
    frame(7).write.format("hudi").options(**options).mode("overwrite").saveAsTable("m")
    assert rows(spark, "SELECT id FROM m") == [(7,)]


def test_a_table_that_cannot_be_renamed_keeps_its_name(spark, monkeypatch):
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id")
    path = spark.sql("SHOW TBLPROPERTIES t ('path')").first()["value"]
    with pytest.raises(QueryError, match="stays in its database"):
        spark.sql("ALTER TABLE t RENAME TO default.t")
    with pytest.raises(Exception, match=r"valid name"):
        spark.sql("ALTER TABLE t RENAME TO `a-b`")

    def fail(*_):
        raise StorageError("the catalog broke")

    monkeypatch.setattr("pyhudi.spark.sql.commands.ddl.alter_table.update_columns", fail)
    with pytest.raises(StorageError):
        spark.sql("ALTER TABLE t RENAME TO u")
    assert [row.tableName for row in spark.sql("SHOW TABLES").collect()] == ["t"]
    table = HudiTable.for_path(path)
    assert table.config.name == "t"
    assert table.validate_metadata().num_rows == 0
    assert rows(spark, "SELECT id FROM t") == [(1,)]


def test_the_session_has_the_settings_of_the_object_store(spark):
    with running_s3_server() as server:
        path = f"s3://{server.new_bucket()}/t"
        keys = {"access.key": "test-id", "secret.key": "test-secret", "endpoint": server.endpoint}
        for key, value in keys.items():
            spark.conf.set(f"spark.hadoop.fs.s3a.{key}", value)
        try:
            spark.sql(
                f"CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}' AS SELECT 1 AS id, 2 v"
            )
            spark.sql("INSERT INTO t VALUES (2, 3)")
            spark.sql("UPDATE t SET v = 4 WHERE id = 1")
            spark.createDataFrame([(3, 5)], "id int, v int").write.format("hudi").mode("append").save(path)
            spark.sql("ALTER TABLE t RENAME TO u")
            assert rows(spark, "SELECT id, v FROM u") == [(1, 4), (2, 3), (3, 5)]
            assert spark.sql("SHOW CREATE TABLE u").count() == 1
            spark.sql("DROP TABLE u PURGE")
            assert not HudiTable.exists(path, server.options)
        finally:
            for key in keys:
                spark.conf.unset(f"spark.hadoop.fs.s3a.{key}")


def test_indexes_functions_and_settings(spark):
    spark.sql(RIDES.format("cow"))
    spark.sql("SET hoodie.spark.sql.insert.into.operation=bulk_insert")
    try:
        spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Moss')")
    finally:
        spark.sql("RESET hoodie.spark.sql.insert.into.operation")
    timeline = spark.sql("SELECT * FROM hudi_query_timeline('rides')").first()
    assert timeline["Total_Records_Written"] == 2
    files = HudiTable.for_path(spark.sql("SHOW TBLPROPERTIES rides ('path')").first()["value"])
    assert files.history()["operation"].to_pylist() == ["BULK_INSERT"]
    spark.sql("CREATE INDEX record_index ON rides (ID)")
    spark.sql("CREATE INDEX by_name ON rides (NAME)")
    shown = {row.index_name for row in spark.sql("SHOW INDEXES FROM TABLE rides").collect()}
    assert {"column_stats", "record_index"} <= shown
    assert any("by_name" in name for name in shown)
    spark.sql("REFRESH INDEX by_name ON rides")
    spark.sql("DROP INDEX by_name ON rides")
    assert rows(spark, "SELECT id FROM hudi_table_changes('rides', 'latest_state', 'earliest') c WHERE c.id > 1") == [
        (2,)
    ]
    places = rows(spark, "SELECT key, recordIndexMetadata.partitionName FROM hudi_metadata('rides') WHERE type = 5")
    assert sorted(places) == [("1", "city=Oslo"), ("2", "city=Moss")]


def test_what_is_refused(spark):
    spark.sql(RIDES.format("cow"))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')")
    refused = {
        "INSERT INTO rides VALUES (1, 'a')": SchemaMismatchError,
        "INSERT INTO rides (id, nme) VALUES (1, 'a')": SchemaMismatchError,
        "INSERT INTO rides VALUES ('one', 'a', 10, 'Oslo')": SchemaMismatchError,
        "UPDATE rides SET id = 2": ConfigError,
        "UPDATE rides SET": SqlSyntaxError,
        "MERGE INTO rides USING (SELECT 1 id UNION ALL SELECT 1) s ON rides.id = s.id "
        "WHEN MATCHED THEN UPDATE SET fare = 1": AmbiguousMergeError,
        "ALTER TABLE rides DROP COLUMN fare": UnsupportedTableError,
        "ALTER TABLE rides ADD COLUMNS (x INT FIRST)": UnsupportedTableError,
        "ALTER TABLE rides SET TBLPROPERTIES (primaryKey = 'name')": TableConfigConflictError,
        "CREATE TABLE rides (id INT) USING hudi": TableExistsError,
        "CREATE TABLE other USING hudi": QueryError,
        "CREATE INDEX i ON nowhere (a)": NotAHudiTableError,
        "CALL show_comits('rides')": QueryError,
        "CALL show_commits(tabel => 'rides')": QueryError,
        "CALL hive_sync('rides')": UnsupportedTableError,
        "CALL show_invalid_parquet(path => 'x', needDelete => true)": NotAHudiTableError,
        "CALL run_ttl(table => 'rides', ttl_policy => 'KEEP_BY_MOON')": ConfigError,
        "CALL show_commits('rides; DROP TABLE rides')": QueryError,
    }
    for statement, error in refused.items():
        with pytest.raises(error):
            spark.sql(statement)
    assert rows(spark, ALL) == [(1, "a", 10, "Oslo")]
    assert [row.tableName for row in spark.sql("SHOW TABLES").collect()] == ["rides"]


def test_the_guide_runs(spark):
    text = (Path(__file__).parents[3] / "docs" / "sql.md").read_text()
    blocks = [part.partition("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) == 3
    names = {"spark": spark}
    for block in blocks:
        exec(compile(block, "docs/sql.md", "exec"), names)


@pytest.mark.parametrize(
    "statement",
    [
        seldom("UPDATE rides SET fare = (SELECT max(fare) + 1 FROM rides) WHERE id = 1"),
        "MERGE INTO rides t USING (SELECT id, (SELECT max(fare) + 1 FROM newest) AS f FROM rides WHERE id = 1) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET fare = s.f",
    ],
)
def test_a_statement_that_reads_its_table_is_serializable(spark, monkeypatch, statement):
    """Another writer changes a row that only the subquery reads: the statement is tried again, and reads it anew."""
    from pyhudi.spark.dml import merge_builder, update

    spark.sql(RIDES.format("cow"))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Bergen')")
    spark.sql("CREATE TEMPORARY VIEW shown AS SELECT * FROM rides")
    spark.sql("CREATE TEMPORARY VIEW newest AS SELECT * FROM shown")
    real, other = update.write_changes, ["UPDATE rides SET fare = 50 WHERE id = 2"]

    def write_after_another(*args, **kwargs):
        if other:
            spark.sql(other.pop())
        return real(*args, **kwargs)

    for module in (update, merge_builder):
        monkeypatch.setattr(module, "write_changes", write_after_another)
    with pytest.raises(ConflictError):
        spark.sql(statement)
    other.append("UPDATE rides SET fare = 70 WHERE id = 2")
    spark.sql("SET hoodie.write.num.retries.on.conflict.failures = 2")
    try:
        spark.sql(statement)
    finally:
        spark.sql("RESET hoodie.write.num.retries.on.conflict.failures")
    assert rows(spark, "SELECT id, fare FROM rides") == [(1, 71), (2, 70)]


def test_an_insert_that_reads_its_table_is_retried_with_what_it_reads_then(spark, monkeypatch):
    spark.sql(RIDES.format("cow"))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')")
    spark.table("rides").createOrReplaceTempView("earlier")
    commit, others = WriteJob.commit, []

    def commit_after_another(*args, **kwargs):
        if others:
            spark.sql(others.pop())
        return commit(*args, **kwargs)

    monkeypatch.setattr(WriteJob, "commit", commit_after_another)
    settings = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.num.retries.on.conflict.failures": "2",
    }
    for key, value in settings.items():
        spark.sql(f"SET {key} = {value}")
    try:
        others.append("INSERT INTO rides VALUES (2, 'b', 20, 'Oslo')")
        spark.sql("INSERT OVERWRITE rides PARTITION (city = 'Oslo') SELECT id, name, fare + 1 FROM rides")
        assert rows(spark, "SELECT id, fare FROM rides") == [(1, 11), (2, 21)]
        for insert in (
            lambda: spark.sql("INSERT OVERWRITE rides SELECT * FROM earlier"),
            lambda: spark.sql("UPDATE rides SET fare = (SELECT max(fare) FROM earlier) WHERE id IN (1, 3)"),
            lambda: spark.table("rides").write.insertInto("rides", overwrite=True),
        ):
            others.append("INSERT INTO rides VALUES (3, 'c', 30, 'Oslo')")
            with pytest.raises(NonRetryableConflictError):
                insert()
            assert rows(spark, "SELECT id FROM rides WHERE id = 3") == [(3,)]
            spark.sql("DELETE FROM rides WHERE id = 3")
    finally:
        for key in settings:
            spark.sql(f"RESET {key}")


def test_queries_of_threads_have_views_of_their_own(spark):
    """Each is pruned by its own conditions."""
    spark.sql(RIDES.format("cow").replace("rides", "threaded"))
    spark.sql("INSERT INTO threaded VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Bergen')")

    def pruned(city):
        spark.sql(f"SELECT id FROM threaded WHERE city = '{city}'")
        return {table.name for table in spark.catalog.listTables("global_temp")}

    before = {table.name for table in spark.catalog.listTables("global_temp")}
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(pruned, "Bergen").result()
        assert pruned("Oslo") > other > before


def test_partitions_are_named_exactly(spark):
    """No text of a value names another partition: commas, stars, values of another type."""
    spark.sql("CREATE TABLE odd (id INT, y INT, p STRING) USING hudi PARTITIONED BY (y, p)")
    names = [(1, "a"), (1, "a,b"), (1, "a*"), (1, "abc"), (None, "a")]
    values = ", ".join(f"({n}, {'null' if y is None else y}, '{p}')" for n, (y, p) in enumerate(names))
    spark.sql(f"INSERT INTO odd VALUES {values}")
    spark.sql("INSERT OVERWRITE odd PARTITION (y = 1, p = 'a,b') SELECT 9")
    spark.sql("INSERT OVERWRITE odd PARTITION (y = 1, p = 'a') IF NOT EXISTS SELECT 10")
    spark.sql("ALTER TABLE odd DROP PARTITION (y = 1, p = 'a*')")
    left = [(0, 1, "a"), (3, 1, "abc"), (4, None, "a"), (9, 1, "a,b")]
    assert rows(spark, "SELECT id, y, p FROM odd") == left
    for value in ("'abc'", "4294967297", "1.5"):
        for statement in (
            "ALTER TABLE odd DROP PARTITION (y = {})",
            "TRUNCATE TABLE odd PARTITION (y = {})",
            "INSERT OVERWRITE odd PARTITION (y = {}, p = 'a') SELECT 1",
        ):
            with pytest.raises(SchemaMismatchError, match="'y' is no int"):
                spark.sql(statement.format(value))
    for statement in (
        "ALTER TABLE odd DROP PARTITION ()",
        "TRUNCATE TABLE odd PARTITION ()",
        "INSERT OVERWRITE odd PARTITION (y = 1, p) IF NOT EXISTS SELECT 1, 'a'",
    ):
        with pytest.raises(SqlSyntaxError):
            spark.sql(statement)
    with pytest.raises(QueryError, match="assigned twice"):
        spark.sql("UPDATE odd SET odd.id = 1, id = 2")
    with pytest.raises(QueryError, match="each partition column"):
        spark.sql("INSERT OVERWRITE odd PARTITION (y = 1) IF NOT EXISTS SELECT 1, 'a'")
    assert rows(spark, "SELECT id, y, p FROM odd") == left
    spark.sql("TRUNCATE TABLE odd PARTITION (y = '1')")
    assert rows(spark, "SELECT id, y, p FROM odd") == [(4, None, "a")]


def test_nested_values(spark):
    """Numbers inside of nested values fit, or fail; fields are assigned by their own names."""
    spark.sql(
        "CREATE TABLE deep (id INT, a ARRAY<INT>, s STRUCT<x: INT, y_z: STRING>, m MAP<STRING, DECIMAL(3, 1)>) "
        "USING hudi TBLPROPERTIES (primaryKey = 'id')"
    )
    good = "SELECT 1, array(7L, null), named_struct('x', 8L, 'y_z', 'b'), map('k', 9)"
    spark.sql(f"INSERT INTO deep {good}")
    spark.sql("INSERT INTO deep SELECT 2, null, null, null")
    before = rows(spark, "SELECT id, a, s, m FROM deep ORDER BY id")
    assert before == [(1, [7, None], (8, "b"), {"k": 9}), (2, None, None, None)]
    for bad in (
        good.replace("7L", "3000000000L"),
        good.replace("8L", "3000000000L"),
        good.replace("9)", "900)"),
    ):
        with pytest.raises(Exception, match=r"does not fit the column|cannot be represented as Decimal"):  # Spark 4's
            spark.sql(f"INSERT INTO deep {bad}")
    with pytest.raises(Exception, match="3000000000 does not fit the column 'a'"):
        spark.sql("UPDATE deep SET a = array(3000000000L)")
    source = "(SELECT 3 AS id) u ON t.id = u.id"
    with pytest.raises(SchemaMismatchError, match="give the whole column 's'"):
        spark.sql(f"MERGE INTO deep t USING {source} WHEN NOT MATCHED THEN INSERT (id, s.x) VALUES (3, 1)")
    assert rows(spark, "SELECT id, a, s, m FROM deep ORDER BY id") == before
    whole = "s = named_struct('x', 1, 'y_z', 'd')"
    for assigned in (f"{whole}, s.x = 2", f"s.x = 2, {whole}"):
        with pytest.raises(QueryError, match="'s' is assigned twice"):
            spark.sql(f"UPDATE deep SET {assigned}")
    spark.sql("UPDATE deep SET s.y_z = 'c' WHERE id = 1")
    assert rows(spark, "SELECT s.x, s.y_z FROM deep WHERE id = 1") == [(8, "c")]


def test_partitions_whose_paths_are_no_values(spark):
    """Dates as folders, and times: paths are found as the write makes them, and null is no path that tells nothing."""
    spark.sql(
        "CREATE TABLE dated (id INT, dt STRING, region STRING) USING hudi PARTITIONED BY (dt, region) TBLPROPERTIES "
        "('hoodie.datasource.write.slash.separated.date.partitioning' = 'true')"
    )
    spark.sql("INSERT INTO dated VALUES (1, '2024-01-02', 'eu')")
    spark.sql("INSERT OVERWRITE dated PARTITION (dt = '2024-01-02', region = 'eu') IF NOT EXISTS SELECT 2")
    with pytest.warns(UserWarning, match="has no partition with region = NULL"):
        spark.sql("ALTER TABLE dated DROP PARTITION (region = NULL)")
    assert [row["id"] for row in spark.sql("SELECT id FROM dated").collect()] == [1]
    spark.sql("CREATE TABLE timed (id INT, at TIMESTAMP) USING hudi PARTITIONED BY (at)")
    hours = ", ".join(f"({hour}, TIMESTAMP'2024-01-01 {hour}:00:00')" for hour in (10, 11, 12))
    spark.sql(f"INSERT INTO timed VALUES {hours}")
    spark.sql("ALTER TABLE timed DROP PARTITION (at = TIMESTAMP'2024-01-01 11:00:00')")
    assert rows(spark, "SELECT id FROM timed") == [(10,), (12,)]


def test_names_that_spark_takes_for_secrets(spark):
    """Spark shows no values with "url" or "token" in them, such as the location of this table."""
    spark.sql(
        "CREATE TABLE rides_hourly (token INT, fare INT) USING hudi "
        "TBLPROPERTIES (primaryKey = 'token', preCombineField = 'fare')"
    )
    spark.sql("ALTER TABLE rides_hourly SET TBLPROPERTIES ('hoodie.clustering.plan.strategy.sort.columns' = 'token')")
    spark.sql("SET hoodie.datasource.write.partitionpath.urlencode = false")
    try:
        spark.sql("INSERT INTO rides_hourly VALUES (1, 2), (2, 3)")
        spark.sql("UPDATE rides_hourly SET fare = fare + 1 WHERE token = 1")
        assert rows(spark, "SELECT token, fare FROM rides_hourly") == [(1, 3), (2, 3)]
        location = Path(find_table(spark, ("rides_hourly",)).location.removeprefix("file:"))
        assert location.is_dir()
        spark.sql("DROP TABLE rides_hourly")
        assert not location.exists()
    finally:
        spark.sql("RESET hoodie.datasource.write.partitionpath.urlencode")


def test_queries_as_spark_reads_them(spark):
    """Hints, samples, double quotes, columns of views by name, a database that is called as the format."""
    spark.sql("CREATE DATABASE hudi")
    spark.sql("CREATE TABLE hudi.rides (id INT, a STRING, b STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("INSERT INTO hudi.rides VALUES (1, 'x', 'x'), (2, 'x', 'b')")
    spark.sql("CREATE VIEW pairs AS SELECT * FROM hudi.rides")
    spark.sql("USE hudi")
    assert rows(spark, "SELECT /*+ BROADCAST(rides) */ count(*) FROM range(3) AS r JOIN rides ON r.id = rides.id") == [
        (2,)
    ]
    assert rows(spark, "SELECT count(*) FROM rides TABLESAMPLE (100 PERCENT)") == [(2,)]
    for key in ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers"):
        spark.conf.set(key, "true")
    try:
        assert rows(spark, 'SELECT id FROM rides WHERE a = "b"') == [(1,)]
    finally:
        for key in ("spark.sql.ansi.enabled", "spark.sql.ansi.doubleQuotedIdentifiers"):
            spark.conf.unset(key)
    spark.sql("SET hoodie.schema.on.read.enable = true")
    try:
        spark.sql("ALTER TABLE rides ALTER COLUMN b AFTER id")
        spark.sql("ALTER TABLE rides ADD COLUMNS (c INT)")
        assert rows(spark, "SELECT id, b FROM shop.pairs") == [(1, "x"), (2, "b")]
    finally:
        spark.sql("RESET hoodie.schema.on.read.enable")
        spark.sql("USE shop")
        spark.sql("DROP TABLE hudi.rides")
        spark.sql("DROP DATABASE hudi CASCADE")


def test_partitions_that_are_overwritten(spark):
    """In static mode those that match the values of the statement, in dynamic mode those that rows are for."""
    spark.sql(
        "CREATE TABLE rides (id INT, city STRING, day STRING) USING hudi TBLPROPERTIES (primaryKey = 'id') "
        "PARTITIONED BY (city, day)"
    )
    everything = "SELECT id, city, day FROM rides"
    spark.sql("INSERT INTO rides VALUES (1, 'Oslo', '1'), (2, 'Oslo', '2'), (3, 'Bergen', '1')")
    spark.sql("INSERT OVERWRITE rides PARTITION (city = 'Oslo', day) SELECT 4, '1'")
    assert rows(spark, everything) == [(3, "Bergen", "1"), (4, "Oslo", "1")]
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql("INSERT OVERWRITE rides VALUES (5, 'Bergen', '7'), (6, 'Bergen', '1')")
        spark.sql("INSERT OVERWRITE rides PARTITION (city = 'Oslo', day) SELECT 7, '2'")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert rows(spark, everything) == [(4, "Oslo", "1"), (5, "Bergen", "7"), (6, "Bergen", "1"), (7, "Oslo", "2")]
    spark.sql("INSERT OVERWRITE rides PARTITION (city, day) SELECT 8, 'Moss', '1'")
    assert rows(spark, everything) == [(8, "Moss", "1")]


def test_values_of_partitions_are_evaluated_once(spark, monkeypatch):
    """They need not be literals: the partition that is replaced is the one that the rows are in."""
    spark.sql(
        "CREATE TABLE rides (id INT, city STRING, day DATE) USING hudi TBLPROPERTIES (primaryKey = 'id') "
        "PARTITIONED BY (city, day)"
    )
    seen = []
    real = static_partitions.spark_sql
    for module in (static_partitions, repeated_query):
        monkeypatch.setattr(module, "spark_sql", lambda spark, text: seen.append(text) or real(spark, text))
    two = "SELECT * FROM VALUES (1), (2) AS v(id)"
    for place, operation in (
        ("city = uuid(), day = date_add('2024-01-01', 1)", "OVERWRITE"),
        ("city = uuid(), day", "OVERWRITE"),
        ("city = uuid(), day = '2024-01-02'", "INTO"),
    ):
        query = two if "day =" in place else two.replace("*", "id, DATE'2024-01-02'")
        seen.clear()
        spark.sql(f"INSERT {operation} rides PARTITION ({place}) {query}")
        assert sum("uuid()" in text for text in seen) == 1, place
    assert rows(spark, "SELECT count(*), count(DISTINCT city), max(day) FROM rides") == [(6, 3, date(2024, 1, 2))]
    spark.sql("INSERT OVERWRITE rides PARTITION (city = 'x', day = '2024-01-02') IF NOT EXISTS SELECT 7")
    spark.sql("INSERT OVERWRITE rides PARTITION (city = 'x', day = '2024-01-02') IF NOT EXISTS SELECT 8")
    assert rows(spark, "SELECT id FROM rides WHERE city = 'x'") == [(7,)]


def test_temporary_views_show_the_latest_commit(spark):
    """Also those over permanent views and table functions, and global ones."""
    spark.sql(RIDES.format("cow"))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')")
    spark.sql("CREATE VIEW fares AS SELECT id, fare FROM rides")
    views = {
        "over_a_view": "CREATE TEMP VIEW over_a_view AS SELECT * FROM fares",
        "over_a_function": "CREATE TEMP VIEW over_a_function AS "
        "SELECT * FROM hudi_table_changes('rides', 'latest_state', 'earliest')",
        "global_temp.over_a_table": "CREATE GLOBAL TEMP VIEW over_a_table AS SELECT * FROM rides",
    }
    for statement in views.values():
        spark.sql(statement)
    spark.sql("INSERT INTO rides VALUES (2, 'b', 20, 'Bergen')")
    for name in views:
        assert rows(spark, f"SELECT id FROM {name}") == [(1,), (2,)], name
    spark.catalog.dropGlobalTempView("over_a_table")
    with pytest.raises(QueryError, match="fares` is a view, which has no versions"):
        spark.sql("SELECT id FROM fares VERSION AS OF '2020'")


def test_temporary_views_follow_the_names_in_their_queries(spark, tmp_path):
    """Of tables and views that are replaced, in the database where the view was created; not those of other views that
    take its place."""
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS id")
    spark.sql("CREATE VIEW kept AS SELECT id FROM t")
    for view, query in {
        "over_table": "SELECT id FROM t",
        "over_view": "SELECT id FROM kept",
        "over_function": "SELECT id FROM hudi_query('t')",
        "over_plain (n COMMENT 'AS')": "SELECT id FROM plain",
        "over_temporary": "SELECT * FROM over_plain",
    }.items():
        spark.sql(f"CREATE TEMP VIEW {view} AS {query}")
    spark.sql(f"CREATE OR REPLACE TABLE t USING hudi LOCATION '{tmp_path}/t' AS SELECT 2 AS id")
    spark.sql("CREATE OR REPLACE VIEW kept AS SELECT id + 10 AS id FROM t")
    spark.sql("DROP TABLE plain")
    spark.sql("CREATE TABLE plain USING hudi AS SELECT 3 AS id")
    spark.sql("USE default")
    shown = {"over_table": 2, "over_view": 12, "over_function": 2, "over_temporary": 3, "over_plain": 3}
    for view, value in shown.items():
        assert rows(spark, f"SELECT * FROM {view}") == [(value,)], view
    assert spark.table("over_plain").columns == ["n"]
    spark.sql("USE shop")
    spark.sql("DROP TABLE plain")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 4 AS id")
    assert rows(spark, "SELECT n FROM over_plain") == [(4,)]
    spark.sql("ALTER VIEW over_plain AS SELECT id + 5 AS m FROM t")
    assert rows(spark, "SELECT m FROM over_plain") == [(7,)]
    with pytest.raises(QueryError, match="permanent view"):
        spark.sql("ALTER VIEW kept AS SELECT * FROM hudi_query('t')")
    # views of other kinds
    frame = spark.range(3)
    frame.createOrReplaceTempView("over_table")
    frame.write.parquet(str(tmp_path / "files"))
    spark.sql(f"CREATE OR REPLACE TEMP VIEW over_view USING parquet OPTIONS (path '{tmp_path}/files')")
    type(frame).createOrReplaceTempView.__wrapped__(frame, "over_function")  # as a program in Scala does
    spark.sql("DROP TABLE t")
    for view in ("over_table", "over_view", "over_function"):
        assert spark.sql(f"SELECT * FROM {view}").count() == 3, view
    with pytest.raises(AnalysisException, match=r"`t`.*cannot be found"):
        spark.sql("SELECT m FROM over_plain")


def test_temporary_views_are_those_of_the_session(spark, tmp_path):
    """And not of an object in Python, nor of a name: other objects, copies, renamed views, views over views."""
    spark.sql(RIDES.format("cow"))
    for statement in (
        "TEMP VIEW shown AS SELECT id FROM rides",
        "GLOBAL TEMP VIEW everywhere AS SELECT id FROM rides",
        "TEMP VIEW first AS SELECT id FROM rides",
        "TEMP VIEW inner_view AS SELECT 0 AS id",
        "TEMP VIEW outer_view AS SELECT id FROM inner_view",
        "OR REPLACE TEMP VIEW inner_view AS SELECT id FROM rides",
    ):
        spark.sql(f"CREATE {statement}")
    spark.sql("ALTER VIEW first RENAME TO second")
    batches, views, other = [], [], spark.newSession()
    (tmp_path / "lines").mkdir()

    def see(batch, number):
        spark.sql(f"INSERT INTO rides VALUES ({number}, 'a', 10, 'Oslo')")
        batches.append(batch.sparkSession.sql("SELECT * FROM shown").count())
        views.append(len(spark.catalog.listTables("global_temp")))

    for number in range(2):
        (tmp_path / "lines" / f"{number}.txt").write_text("x")
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "lines"))
    stream = lines.writeStream.foreachBatch(see).option("checkpointLocation", str(tmp_path / "at"))
    stream.trigger(availableNow=True).start().awaitTermination()
    assert batches == [1, 2]
    assert views[0] == views[1]
    for number, read in enumerate(
        (
            lambda: other.sql("SELECT * FROM global_temp.everywhere"),
            lambda: spark.sql("SELECT * FROM second"),
            lambda: spark.sql("SELECT * FROM outer_view"),
            lambda: spark.read.option("x", "y").table("shown"),
        ),
        3,
    ):
        spark.sql(f"INSERT INTO rides VALUES ({number}, 'a', 10, 'Oslo')")
        assert read().count() == number, number
    for key in ("as.of.instant", "hoodie.datasource.view.type", "hoodie.datasource.read.begin.instanttime"):
        with pytest.raises(QueryError, match=rf"`shown` is a view, to which {re.escape(key)} does not apply"):
            spark.read.option(key, "2024").table("shown")
    for key in ("versionAsOf", "query.type"):
        with pytest.raises(ConfigError, match=key):
            spark.read.option(key, "snapshot").table("shown")
    spark.catalog.dropGlobalTempView("everywhere")
    spark.catalog.dropTempView("second")  # Spark lists it by its first name


def test_dataframes_and_values_in_the_text_of_a_statement(spark):
    """``{fields}``: of queries, of inserts into other tables, and of changes of Hudi tables."""
    spark.sql(RIDES.format("mor"))
    more = spark.createDataFrame([(1, 100), (7, 700)], "id INT, price BIGINT")
    joined = (
        "SELECT r.id, m.price, '{{}}' FROM rides r JOIN {more} m USING (id) WHERE r.city = {city} AND {more.price} > ?"
    )
    assert spark.sql(joined, args=[1], more=more, city="Oslo").collect() == []
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')")
    found = spark.sql(joined, args=[1], more=more, city="Oslo").collect()
    assert [tuple(row) for row in found] == [(1, 100, "{}")]
    assert spark.sql("SELECT id FROM rides WHERE id IN {ids}", ids=(1, 2)).count() == 1
    spark.sql(
        """MERGE INTO rides t USING {more} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.fare = s.price
        WHEN NOT MATCHED THEN INSERT (id, name, fare, city) VALUES (s.id, {text}, s.price, 'Bodø')""",
        more=more,
        text="it's",
    )
    assert rows(spark, ALL) == [(1, "a", 100, "Oslo"), (7, "it's", 700, "Bodø")]
    spark.sql("INSERT INTO rides SELECT {more.id} + 1, {text}, 1, 'Moss' FROM {more}", more=more, text="x")
    spark.sql("CREATE TABLE other USING parquet AS SELECT id, fare FROM rides ANTI JOIN {more} USING (id)", more=more)
    assert rows(spark, "SELECT * FROM other") == [(2, 1), (8, 1)]
    spark.sql("CREATE TABLE copy USING hudi AS SELECT * FROM {more}", more=more)
    assert rows(spark, "SELECT id, price FROM copy") == [(1, 100), (7, 700)]
    with pytest.raises(QueryError, match=r"\{sum\} is Column"):
        spark.sql("INSERT INTO rides SELECT {sum}, 'x', 1, 'Moss' FROM {more}", sum=more.id + 1, more=more)
    with pytest.raises(QueryError, match=r"\{value\} is Column"):  # and not the column of that name
        spark.sql("DELETE FROM rides WHERE city = {value}", value=F.lit("city"))
    assert not [table.name for table in spark.catalog.listTables() if table.isTemporary]


def test_static_partitions_of_any_date(spark):
    spark.sql("CREATE TABLE old (id INT, day DATE) USING hudi PARTITIONED BY (day)")
    for text in ("0001-01-01", "1582-10-10"):
        spark.sql(f"INSERT INTO old PARTITION (day = DATE'{text}') SELECT 1")
        spark.sql(f"INSERT OVERWRITE old PARTITION (day = DATE'{text}') SELECT 2")
    found = spark.sql("SELECT id, CAST(day AS STRING), _hoodie_partition_path FROM old ORDER BY day").collect()
    assert [tuple(row) for row in found] == [
        (2, "0001-01-01", "day=0001-01-01"),
        (2, "1582-10-10", "day=1582-10-10"),
    ]


def test_definitions_before_insert_and_queries_in_the_short_form(spark):
    """``WITH … INSERT`` and ``TABLE name``, with the tables as they are now."""
    spark.sql(RIDES.format("cow"))
    spark.sql("CREATE TABLE plain (id INT, name STRING, fare BIGINT, city STRING) USING parquet")
    assert rows(spark, "TABLE rides") == []
    spark.sql(
        "WITH two AS (SELECT * FROM VALUES (1), (2) AS v(id)) INSERT INTO rides SELECT id, 'a', 1, 'Oslo' FROM two"
    )
    assert rows(spark, ALL) == [(1, "a", 1, "Oslo"), (2, "a", 1, "Oslo")]
    spark.sql(f"WITH r AS ({ALL} WHERE id = 1), s (a, b, c, d) AS (TABLE r) INSERT INTO plain SELECT * FROM r")
    spark.sql(
        f"""WITH r AS ({ALL}) INSERT OVERWRITE rides PARTITION (city = 'Bergen')
        WITH r AS (SELECT id + 10 AS id, name, fare FROM r) TABLE r"""
    )
    assert rows(spark, ALL)[2:] == [(11, "a", 1, "Bergen"), (12, "a", 1, "Bergen")]
    assert rows(spark, "TABLE plain") == [(1, "a", 1, "Oslo")]
    spark.sql("INSERT INTO plain TABLE plain")
    spark.sql("CREATE TABLE more USING hudi TBLPROPERTIES (primaryKey = 'id') AS TABLE rides")
    spark.sql("INSERT INTO rides TABLE more")
    spark.sql("UPDATE rides SET fare = 7 WHERE id IN (SELECT max(id) FROM (TABLE rides))")
    assert spark.sql("TABLE rides ORDER BY fare DESC LIMIT 1").first()["id"] == 12
    assert spark.sql("SELECT id FROM plain UNION ALL SELECT id FROM (TABLE more)").count() == 6


def test_syntax_that_hudi_tables_do_not_have_passes_to_spark(spark):
    """Of tables of other formats; of Hudi tables it is refused."""
    spark.sql(RIDES.format("cow"))
    spark.sql("CREATE TABLE plain (id INT) USING parquet")
    spark.sql("INSERT INTO plain VALUES (1)")
    change = "ALTER TABLE {} ADD COLUMN x INT DEFAULT 3"
    spark.sql(change.format("plain"))
    assert rows(spark, "SELECT * FROM plain") == [(1, 3)]
    merge = "MERGE INTO {} USING plain AS s ON s.id = 0 WHEN MATCHED THEN DO NOTHING"
    with pytest.raises(ParseException, match="DO"):
        spark.sql(merge.format("plain"))
    for statement in (change, merge, "DELETE FROM {} USING plain"):
        with pytest.raises(SqlSyntaxError, match="rides"):
            spark.sql(statement.format("rides"))
