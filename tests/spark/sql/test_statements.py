"""SQL, and tables by name, on Spark."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.catalog import Table

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import (
    AmbiguousMergeError,
    ConfigError,
    NotAHudiTableError,
    QueryError,
    SchemaMismatchError,
    SqlSyntaxError,
    TableConfigConflictError,
    TableExistsError,
    UnsupportedTableError,
)
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.catalog_listing import listed_tables, shown_table
from tests.cases import IN_CONNECT, seldom
from tests.spark.sql.ride_tables import RIDES, rows

pytest.importorskip("sqlglot")


pytestmark = pytest.mark.usefixtures("database")
ALL = "SELECT id, name, fare, city FROM rides"


@contextmanager
def logged_errors() -> Iterator[list[logging.LogRecord]]:
    """Collect what PySpark 4 logs of errors of queries."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger("SQLQueryContextLogger") if pyspark.__version__ < "4" else spark_logger()
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


def spark_logger() -> logging.Logger:
    from pyspark.logger import PySparkLogger

    return PySparkLogger.getLogger("SQLQueryContextLogger")


@pytest.mark.skipif(IN_CONNECT, reason="Spark Connect tells nothing of jobs")
def test_small_results_need_no_job(spark):
    spark.sql(RIDES.format("cow"))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')")
    spark.sparkContext.setJobGroup("small results", "")
    assert rows(spark, "SHOW PARTITIONS rides") == [("city=Oslo",)]
    commit = spark.sql("CALL show_commits(table => 'rides')").collect()
    for statement in ("DESCRIBE EXTENDED rides", "SHOW CREATE TABLE rides", "SHOW TBLPROPERTIES rides"):
        assert spark.sql(statement).collect()
    assert rows(spark, f"{ALL} WHERE city = 'Bergen'") == []
    assert spark.sparkContext.statusTracker().getJobIdsForGroup("small results") == []
    assert [(row.total_records_written, row.total_errors) for row in commit] == [(1, 0)]


@pytest.mark.parametrize("kind", ["cow", seldom("mor")])
def test_the_life_of_a_table(spark, kind):
    spark.sql(RIDES.format(kind))
    assert spark.sql("SELECT * FROM rides").count() == 0
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Oslo'), (3, 'c', 30, 'Bergen')")
    spark.sql("INSERT INTO rides PARTITION (city = 'Moss') SELECT 4, 'd', 40")
    spark.sql("INSERT INTO shop.rides (city, id) VALUES ('Moss', 5)")
    assert rows(spark, ALL)[3:] == [(4, "d", 40, "Moss"), (5, None, None, "Moss")]
    with logged_errors() as errors:
        spark.sql("UPDATE rides SET fare = rides.fare + 1, name = concat(name, '!') WHERE rides.id < 3")
        spark.sql("DELETE FROM rides AS r WHERE r.id IN (SELECT max(id) FROM rides)")
    assert not errors
    with logged_errors() as errors, pytest.raises(AnalysisException):
        spark.sql("SELECT nam FROM rides")
    assert len(errors) == (0 if spark.version.startswith("3.") else 1)
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
    path = spark.sql("SHOW TBLPROPERTIES rides ('path')").first()["value"]
    table = HudiTable.for_path(path)
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
    assert not HudiTable.exists(path)


def test_what_is_shown(spark, tmp_path):
    spark.sql(RIDES.format("mor") + " COMMENT 'of people'")
    for comment in ("of all people", None):
        spark.sql(f"COMMENT ON TABLE rides IS {'NULL' if comment is None else repr(comment)}")
        assert spark.catalog.getTable("rides").description == comment
    assert [tuple(r) for r in spark.sql("DESCRIBE rides").collect()][5:8] == [
        ("id", "int", None),
        ("name", "string", "who"),
        ("fare", "bigint", None),
    ]
    assert ("Provider", "hudi", "") in rows_of(spark, "DESC EXTENDED rides")
    for column in ("fare", "rides.fare"):
        assert ("data_type", "bigint") in rows_of(spark, f"DESCRIBE TABLE rides {column}")
    properties = dict(rows_of(spark, "SHOW TBLPROPERTIES rides"))
    assert properties["primaryKey"] == "id"
    assert properties["type"] == "mor"
    spark.sql("ALTER TABLE rides SET TBLPROPERTIES ('hoodie.keep.max.commits' = '77', note = 'it\\'s')")
    if spark.version.startswith("3"):
        with pytest.raises(AnalysisException, match="non-existent properties"):
            spark.sql("ALTER TABLE rides UNSET TBLPROPERTIES ('note', 'absent')")
        assert dict(rows_of(spark, "SHOW TBLPROPERTIES rides"))["note"] == "it's"
    else:
        spark.sql("ALTER TABLE rides UNSET TBLPROPERTIES ('absent')")
    spark.sql("ALTER TABLE rides UNSET TBLPROPERTIES IF EXISTS ('note', 'absent')")
    assert "note" not in dict(rows_of(spark, "SHOW TBLPROPERTIES rides"))
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
    for statement in ("SHOW VIEWS", "SHOW VIEWS IN shop LIKE '*'"):
        assert [row.viewName for row in spark.sql(statement).collect() if not row.isTemporary] == ["plain"]
    details = {row[1]: row[3] for row in rows_of(spark, "SHOW TABLE EXTENDED IN shop LIKE '*'")}
    assert "Type: VIEW" in details["plain"]
    assert f"Type: EXTERNAL\nProvider: hudi\nLocation: {tmp_path}/other\nSchema: root\n" in details["other"]
    assert "Type: MANAGED\nProvider: hudi\nTable Properties: [" in details["rides"]
    assert "raise_error" not in details["rides"]
    if not spark.version.startswith("3"):
        entry = json.loads(spark.sql("DESCRIBE EXTENDED rides AS JSON").first()[0])
        assert (entry["type"], entry["provider"], entry["partition_columns"]) == ("MANAGED", "hudi", ["city"])
    assert {name: spark.catalog.getTable(f"shop.{name}").tableType for name in expected} == expected
    elsewhere = Table("rides", "elsewhere", ["shop"], None, "VIEW", isTemporary=False)
    assert listed_tables(spark, [elsewhere]) == [elsewhere] == [shown_table(spark, elsewhere)]
    assert dict(rows_of(spark, "CALL show_table_properties('rides', limit => 100)"))["hoodie.table.name"] == "rides"
    one = "CALL show_table_properties(table => 'rides', limit => 100, filter => \"key = 'hoodie.table.name'\")"
    assert rows_of(spark, one) == [("hoodie.table.name", "rides")]
    with pytest.raises(Exception, match=r"PARSE_SYNTAX_ERROR"):
        spark.sql(one.replace("name'", "name' AND")).collect()
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
    with pytest.raises(TableExistsError, match=r"use append\(\) to add the rows, createOrReplace\(\) or replace\(\)"):
        frame.writeTo("b").create()
    with pytest.raises(ConfigError, match="clustering"):
        frame.writeTo("b").clusterBy("id").append()
    for write in ("append", "replace", "overwritePartitions"):
        with pytest.raises(QueryError, match="there is no Hudi table nowhere; create it"):
            getattr(frame.writeTo("nowhere").using("hudi"), write)()
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
        "SHOW INDEXES FROM nowhere": NotAHudiTableError,
        "CALL show_comits('rides')": QueryError,
        "CALL show_commits(tabel => 'rides')": QueryError,
        "CALL hive_sync(table => 'rides', mode => 'jdbc')": ConfigError,
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
    examples = re.findall(r"^```(python|sql)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(examples) > 15
    names = {"spark": spark}
    for language, example in examples:
        if language == "python":
            exec(compile(example, "docs/sql.md", "exec"), names)
        elif not example.startswith("BEGIN"):
            for statement in filter(str.strip, example.split(";\n")):
                spark.sql(statement).collect()
        elif not spark.version.startswith("3."):
            spark.sql(example)


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
    with pytest.raises(SchemaMismatchError, match="3000000000 does not fit the column 'a'"):
        spark.sql("UPDATE deep SET a = array(3000000000L)")
    source = "(SELECT 3 AS id) u ON t.id = u.id"
    with pytest.raises(SchemaMismatchError, match="give the whole column 's'"):
        spark.sql(f"MERGE INTO deep t USING {source} WHEN NOT MATCHED THEN INSERT (id, s.x) VALUES (3, 1)")
    assert rows(spark, "SELECT id, a, s, m FROM deep ORDER BY id") == before
    whole = "s = named_struct('x', 1, 'y_z', 'd')"
    for assigned, twice in (
        (f"{whole}, s.x = 2", "s"),
        (f"s.x = 2, {whole}", "s"),
        ("s.x = 2, s.y_z = 'd', S.X = 3", "s.x"),
    ):
        for statement in (
            f"UPDATE deep SET {assigned}",
            f"MERGE INTO deep t USING {source} WHEN MATCHED THEN UPDATE SET {assigned}",
        ):
            with pytest.raises(QueryError, match=f"'{twice}' is assigned twice"):
                spark.sql(statement)
    spark.sql("UPDATE deep SET s.y_z = 'c' WHERE id = 1")
    assert rows(spark, "SELECT s.x, s.y_z FROM deep WHERE id = 1") == [(8, "c")]
    spark.sql("UPDATE deep SET S.Y_Z = 'd', s.x = 1 WHERE id = 2")
    assert rows(spark, "SELECT s FROM deep WHERE id = 2") == [((1, "d"),)]
    with pytest.raises(SchemaMismatchError, match=r"'s' has no field 'z'; its fields are x, y_z"):
        spark.sql("UPDATE deep SET s.z = 1")
    with pytest.raises(SchemaMismatchError, match=r"'a' has no field 'z'; its type is array<int>"):
        spark.sql("UPDATE deep SET a.z = 1")


def test_an_update_of_many_fields_of_a_struct(spark):
    """The expression of the new struct grows with the number of its fields, and not with its power."""
    fields = range(12)
    spark.sql(
        f"CREATE TABLE wide (id INT, s STRUCT<{', '.join(f'f{n}: INT' for n in fields)}>) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    spark.sql(f"INSERT INTO wide SELECT 1, struct({', '.join(map(str, fields))})")
    spark.sql(f"UPDATE wide SET {', '.join(f's.f{n} = s.f{n} + 1' for n in fields[1:])}")
    assert rows(spark, "SELECT s FROM wide") == [((0, *(n + 1 for n in fields[1:])),)]


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
