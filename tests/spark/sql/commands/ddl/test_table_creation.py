"""Tables that are created, replaced and renamed."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import functions as sf

from pyhudi import HudiTable
from pyhudi.errors import ConfigError, QueryError, SchemaMismatchError, StorageError, TableExistsError
from tests.cases import classic
from tests.spark.sql.ride_tables import rows
from tests.unit.storage.s3_server import running_s3_server

pytest.importorskip("sqlglot")


pytestmark = pytest.mark.usefixtures("database")


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


def test_columns_without_a_type_are_refused_before_the_table_is_made(spark):
    spark.sql("CREATE TABLE old USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id")
    for query, path in (("1 AS id, NULL AS note", "note"), ("1 AS id, named_struct('x', NULL) AS s", r"s\.x")):
        for create in ("CREATE TABLE t", "CREATE OR REPLACE TABLE t", "CREATE OR REPLACE TABLE old"):
            with pytest.raises(SchemaMismatchError, match=rf"'{path}' has no type.*CAST\(NULL AS STRING\)"):
                spark.sql(f"{create} USING hudi AS SELECT {query}")
        with pytest.raises(SchemaMismatchError, match=rf"'{path}' has no type"):
            spark.sql(f"SELECT {query}").write.format("hudi").saveAsTable("t")
    assert rows(spark, "SELECT id FROM old") == [(1,)]
    assert not spark.catalog.tableExists("t")


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
    with pytest.raises(QueryError, match=r"not by functions such as days\(id\): add a column"):
        frame(5).writeTo("other").using("hudi").partitionedBy(sf.days("id"))
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


@classic  # Spark Connect does not show keys to clients
def test_the_session_has_the_settings_of_the_object_store(spark, tmp_path):
    with running_s3_server() as server:
        path = f"s3://{server.new_bucket()}/t"
        keys = {"access.key": "test-id", "secret.key": "test-secret", "endpoint": server.endpoint}
        for key, value in keys.items():
            spark.conf.set(f"spark.hadoop.fs.s3a.{key}", value)
        try:
            spark.sql(
                f"CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}' AS SELECT 1 AS id, 2 v"
            )
            spark.sql(f"CREATE TABLE local USING hudi LOCATION '{tmp_path}/local' AS SELECT 1 AS id")
            compared = spark.sql(f"CALL commits_compare(table => 't', path => '{tmp_path}/local')").first()
            assert "is behind by 1 commits" in compared[0]
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
