"""Temporary views of Hudi tables, and queries in the forms that Spark reads."""

from __future__ import annotations

import re
from collections import OrderedDict

import pytest
from pyspark.errors import AnalysisException

from pyhudi.errors import ConfigError, HudiError, QueryError
from pyhudi.spark.sql.queries import generated_views
from tests.cases import classic
from tests.spark.sql.ride_tables import RIDES, rows

pytest.importorskip("sqlglot")


pytestmark = pytest.mark.usefixtures("database")


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


@classic
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


def test_views_are_not_changed(spark):
    """The error has the tables to use instead. Views of other tables are left to Spark."""
    spark.sql(RIDES.format("cow"))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')")
    path = spark.sql("SHOW TBLPROPERTIES rides ('path')").first()["value"]
    spark.read.format("hudi").load(path).createOrReplaceTempView("loaded")
    spark.read.format("hudi").load(path).where("id = 1").createOrReplaceTempView("derived")
    spark.sql("CREATE TEMPORARY VIEW shown AS SELECT * FROM shop.rides")
    spark.sql("CREATE VIEW kept AS SELECT * FROM rides JOIN (SELECT 1 AS x)")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS id")
    spark.sql("CREATE TEMPORARY VIEW others AS SELECT * FROM plain")
    instead = {
        "loaded": f"temporary view of Hudi tables.*: hudi.`{path}`".replace("hudi.`", "`hudi`.`"),
        "derived": "temporary view of Hudi tables.*: hudi.`path of the table`",
        "shown": "temporary view of Hudi tables.*: `shop`.`rides`",
        "kept": "view of Hudi tables.*: `rides`",
    }
    statements = (
        "DELETE FROM {0} WHERE id = 1",
        "UPDATE {0} SET fare = 1",
        "MERGE INTO {0} USING (SELECT 1 AS n) s ON id = n WHEN MATCHED THEN DELETE",
        "INSERT INTO {0} SELECT * FROM rides",
    )
    for view, message in instead.items():
        for statement in statements:
            with pytest.raises(QueryError, match=f"`{view}` is a {message}"):
                spark.sql(statement.format(view))
    for statement in statements:
        with pytest.raises(Exception, match=r"\w") as refused:  # internal errors of Spark among them
            spark.sql(statement.format("others"))
        assert not isinstance(refused.value, HudiError)
    assert rows(spark, "SELECT id, fare FROM rides") == [(1, 10)]
    spark.sql(f"DELETE FROM hudi.`{path}` WHERE id = 1")
    assert rows(spark, "SELECT id FROM shown") == []


def test_subqueries_in_expressions_of_dataframes(spark):
    spark.sql(RIDES.format("cow"))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Bergen')")
    spark.sql("CREATE TEMPORARY VIEW shown AS SELECT * FROM rides")
    spark.sql("CREATE VIEW kept AS SELECT id FROM rides")
    frame = spark.createDataFrame([(2,), (3,)], "id int")
    for number in (2, 3):
        largest = "(SELECT max(id) FROM shop.rides) AS a"
        selected = frame.selectExpr(
            "id", largest, "(SELECT max(id) FROM shown) AS b", "exists(SELECT id FROM kept) AS c"
        )
        assert [tuple(row) for row in selected.collect()] == [(2, number, number, True), (3, number, number, True)]
        assert frame.selectExpr([largest]).first() == (number,)
        assert frame.where("id IN (SELECT id FROM rides)").count() == number - 1
        assert spark.table("rides").filter("id = (SELECT max(id) FROM kept) AND city <> 'Moss'").count() == 1
        spark.sql("INSERT INTO rides VALUES (3, 'c', 30, 'Oslo')")
    assert frame.selectExpr("trim(BOTH 'x' FROM 'xax') AS a").first() == ("a",)


@classic
def test_views_that_no_query_uses_any_more_are_dropped(spark, monkeypatch):
    """Those of past snapshots, and of functions with other arguments; not those of temporary views. Rows that users
    have cached stay."""
    monkeypatch.setattr(generated_views, "_used", OrderedDict())

    def names():
        return {row.tableName for row in spark.sql("SHOW TABLES IN global_temp LIKE '_pyhudi*'").collect()}

    def after_an_hour(query):
        for name in generated_views._used:
            generated_views._used[name] -= 3601
        return rows(spark, query)

    before = names()
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id")
    spark.sql("INSERT INTO t VALUES (2)")
    path = spark.sql("SHOW TBLPROPERTIES t ('path')").first()["value"]
    spark.sql("CREATE TEMP VIEW changes AS SELECT id FROM hudi_table_changes('t', 'latest_state', '2000-01-01')")
    loaded = spark.read.format("hudi").load(path).cache()
    for row in spark.sql("CALL show_commits(table => 't')").collect():
        past = spark.sql(f"SELECT id FROM t TIMESTAMP AS OF '{row.commit_time}'")
        assert rows(spark, f"SELECT id FROM hudi_table_changes('t', 'latest_state', '{row.commit_time}')")
    made = names() - before
    assert len(made) == 5
    assert after_an_hour("SELECT id FROM t WHERE id = 2") == [(2,)]
    kept = names() & made
    assert len(kept) == 1
    assert past.count() == 1
    assert loaded.storageLevel.useMemory
    assert rows(spark, "SELECT * FROM changes") == [(1,), (2,)]
    spark.sql("DROP VIEW changes")
    loaded.unpersist()
    assert after_an_hour("SELECT id FROM t WHERE id = 3") == []
    assert not names() & kept
