"""CACHE TABLE of Hudi tables and of views of them."""

from __future__ import annotations

import pytest

from tests.spark.sql.ride_tables import rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")


def test_cached_tables(spark):
    spark.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id', type = 'mor') AS SELECT 1 AS id, 'a' AS n")
    path = spark.sql("SHOW TBLPROPERTIES t ('path')").first()["value"]

    def plan(query):
        return spark.sql(f"EXPLAIN {query}").first()[0]

    spark.sql("CACHE TABLE c OPTIONS ('storageLevel' 'MEMORY_ONLY') AS SELECT id, n FROM t")
    assert spark.catalog.isCached("c")
    assert "InMemoryTableScan" in plan("SELECT * FROM c")
    spark.sql("CACHE LAZY TABLE t")
    for query in ("SELECT * FROM t", "SELECT n FROM shop.t AS x WHERE id = 1"):
        assert "InMemoryTableScan" in plan(query)
    assert spark.catalog.isCached("t")
    spark.sql("UPDATE t SET n = 'b'")
    assert rows(spark, "SELECT n FROM t") == [("b",)]
    frame = spark.createDataFrame([(1, "c")], "id int, n string")
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "t"}
    frame.write.format("hudi").options(**options).mode("append").save(path)  # as another writer would
    assert rows(spark, "SELECT n FROM t") == [("c",)]
    assert "InMemoryTableScan" in plan("SELECT * FROM t")
    assert rows(spark, "SELECT n FROM c") == [("a",)]
    spark.sql("UNCACHE TABLE IF EXISTS t")
    spark.sql("UNCACHE TABLE c")
    assert "InMemoryTableScan" not in plan("SELECT * FROM t")
    spark.catalog.cacheTable("t")
    assert "InMemoryTableScan" in plan("SELECT * FROM t")
    spark.sql("CLEAR CACHE")
    assert not spark.catalog.isCached("t")
    spark.catalog.cacheTable("t")
    other = spark.newSession()  # the cache is that of the application
    assert other.catalog.isCached("shop.t")
    assert "InMemoryTableScan" in other.sql("EXPLAIN SELECT * FROM shop.t").first()[0]
    other.sql("UPDATE shop.t SET n = 'd'")
    assert rows(spark, "SELECT n FROM t") == [("d",)]
    assert "InMemoryTableScan" in plan("SELECT * FROM t")
    other.sql("UNCACHE TABLE shop.t")
    assert not spark.catalog.isCached("t")
    assert "InMemoryTableScan" not in plan("SELECT * FROM t")
    spark.catalog.cacheTable("t")
    other.catalog.clearCache()
    assert not spark.catalog.isCached("t")
    spark.catalog.cacheTable("t")
    spark.sql("DROP TABLE t")
    spark.sql("CREATE TABLE t USING hudi AS SELECT 2 AS id")
    assert not spark.catalog.isCached("t")
    spark.catalog.uncacheTable("t")


def test_cached_permanent_views(spark):
    spark.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 'a' AS n")
    spark.sql("CREATE VIEW v AS SELECT id, upper(n) AS n FROM t")
    spark.sql("CREATE VIEW of_view AS SELECT n FROM v")

    def reads_cache(query):
        return "InMemoryTableScan" in spark.sql(f"EXPLAIN {query}").first()[0]

    spark.sql("CACHE TABLE v OPTIONS ('storageLevel' 'MEMORY_ONLY')")
    assert (spark.catalog.isCached("shop.v"), spark.catalog.isCached("t")) == (True, False)
    for query in ("SELECT * FROM v", "SELECT n FROM shop.v WHERE id = 1", "SELECT * FROM of_view"):
        assert reads_cache(query)
    assert not reads_cache("SELECT * FROM t")
    spark.sql("UPDATE t SET n = 'b'")
    assert rows(spark, "SELECT n FROM of_view") == [("B",)]
    spark.sql("REFRESH TABLE v")
    spark.sql("ALTER VIEW v RENAME TO w")
    assert spark.catalog.isCached("w")
    spark.sql("ALTER VIEW w RENAME TO v")
    spark.sql("UNCACHE TABLE v")
    assert not spark.catalog.isCached("v")
    assert not reads_cache("SELECT * FROM v")
    spark.catalog.cacheTable("v")
    assert reads_cache("SELECT * FROM v")
    spark.sql("UNCACHE TABLE v")
    spark.sql("CACHE LAZY TABLE v")
    spark.sql("UNCACHE TABLE t")  # as in Spark, what has its rows goes with it
    assert not spark.catalog.isCached("v")
    spark.catalog.cacheTable("v")
    spark.sql("CREATE OR REPLACE VIEW v AS SELECT n FROM t")
    assert not spark.catalog.isCached("v")
    spark.catalog.cacheTable("v")
    spark.catalog.refreshTable("v")
    spark.catalog.uncacheTable("v")
    assert not spark.catalog.isCached("v")


def test_rows_that_users_cache_stay_cached(spark):
    """Also while queries by the name of their table read later commits."""
    spark.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id")
    path = spark.sql("SHOW TBLPROPERTIES t ('path')").first()["value"]
    assert rows(spark, "SELECT id FROM t") == [(1,)]
    loaded = spark.read.format("hudi").load(path).cache()
    assert loaded.count() == 1
    spark.sql("INSERT INTO t VALUES (2)")
    assert rows(spark, "SELECT id FROM t") == [(1,), (2,)]
    assert loaded.storageLevel.useMemory
    loaded.unpersist()
