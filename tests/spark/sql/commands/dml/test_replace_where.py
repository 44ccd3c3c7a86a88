"""INSERT … REPLACE WHERE, and ``writeTo(…).overwrite(condition)``."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from pyhudi import HudiTable
from pyhudi.errors import ConflictError, QueryError, RecordKeyError, SchemaMismatchError
from tests.cases import seldom
from tests.spark.sql.ride_tables import RIDES, rows

pytest.importorskip("sqlglot")


pytestmark = pytest.mark.usefixtures("database")
ALL = "SELECT id, name, fare, city FROM rides"
FOUR = "(1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Oslo'), (3, 'c', 30, 'Bergen'), (4, null, null, 'Moss')"


def history(spark, name="rides"):
    path = spark.sql(f"SHOW TBLPROPERTIES {name} ('path')").first()["value"]
    return HudiTable.for_path(path).history()["operation"].to_pylist()


@pytest.mark.parametrize("kind", [seldom("cow"), "mor"])
def test_rows_are_replaced_in_one_commit(spark, kind):
    spark.sql(RIDES.format(kind))
    spark.sql(f"INSERT INTO rides VALUES {FOUR}")
    spark.sql("UPDATE rides SET fare = fare + 1 WHERE id = 2")  # in a log file
    before = len(history(spark))
    spark.sql("INSERT INTO rides REPLACE WHERE rides.city = 'Oslo' SELECT 5, 'e', 50, 'Oslo'")
    assert rows(spark, "SELECT id FROM rides") == [(3,), (4,), (5,)]
    # other columns: rows that do not meet the condition, or for which it is null, stay
    spark.sql("INSERT INTO rides VALUES (6, 'f', 60, 'Oslo')")
    spark.sql(
        "INSERT INTO shop.rides BY NAME REPLACE WHERE fare > 50 VALUES ('Moss', 7, 'g', 70) AS v(city, id, name, fare)"
    )
    assert rows(spark, "SELECT id, city, fare FROM rides") == [
        (3, "Bergen", 30),
        (4, "Moss", None),
        (5, "Oslo", 50),
        (7, "Moss", 70),
    ]
    frame = spark.createDataFrame(
        [("Bergen", 3, 31, "cc"), ("Bergen", 8, 80, "h")], "city string, id int, fare int, name string"
    )
    frame.writeTo("rides").overwrite(F.col("city") == "Bergen")
    assert rows(spark, f"{ALL} WHERE city = 'Bergen'") == [(3, "cc", 31, "Bergen"), (8, "h", 80, "Bergen")]
    spark.sql("INSERT INTO rides REPLACE WHERE id = :id AND city = 'Bergen' SELECT * FROM rides WHERE false", {"id": 8})
    assert rows(spark, "SELECT id FROM rides") == [(3,), (4,), (5,), (7,)]
    assert history(spark)[:-before] == [
        "INSERT_OVERWRITE",
        "INSERT_OVERWRITE",
        "INSERT_OVERWRITE",
        "INSERT",
        "INSERT_OVERWRITE",
    ]
    # nothing to replace, and nothing new
    commits = history(spark)
    spark.sql("INSERT INTO rides REPLACE WHERE city = 'Vardo' SELECT * FROM rides WHERE false")
    assert history(spark) == commits


def test_what_is_refused_before_anything_is_written(spark):
    spark.sql(RIDES.format("cow"))
    spark.sql(f"INSERT INTO rides VALUES {FOUR}")
    frame = spark.table("rides").where("id = 1")
    refused = {
        "SELECT 5, 'e', 50, 'Moss' UNION ALL SELECT 6, 'f', 60, 'Oslo'": (
            QueryError,
            "1 of the 2 new rows do not meet",
        ),
        "SELECT 5, 'e', 50, null": (QueryError, "1 of the 1 new rows do not meet"),
        "SELECT 5, 'e'": (SchemaMismatchError, "the query has 2 columns"),
        "SELECT null, 'e', 50, 'Oslo'": (RecordKeyError, "null"),
    }
    for query, (error, message) in refused.items():
        with pytest.raises(error, match=message):
            spark.sql(f"INSERT INTO rides REPLACE WHERE city = 'Oslo' {query}")
    with pytest.raises(RecordKeyError, match=r"the key '2' of a row in the partition 'city=Oslo' that does not meet"):
        spark.sql("INSERT INTO rides REPLACE WHERE city = 'Oslo' AND (id = 1 OR fare > 50) SELECT 2, 'e', 60, 'Oslo'")
    spark.sql("SET hoodie.index.type = GLOBAL_SIMPLE")
    try:
        with pytest.raises(RecordKeyError, match=r"the key '3' of a row in the partition 'city=Bergen'"):
            spark.sql("INSERT INTO rides REPLACE WHERE city = 'Oslo' SELECT 3, 'e', 60, 'Oslo'")
    finally:
        spark.sql("RESET hoodie.index.type")
    with pytest.raises(QueryError, match="has a subquery"):
        spark.sql("INSERT INTO rides REPLACE WHERE id IN (SELECT id FROM rides) SELECT * FROM rides")
    with pytest.raises(QueryError, match=r"do not meet the condition (`city` = 'Bergen'|\(city = Bergen\)) of"):
        frame.writeTo("rides").overwrite(F.col("city") == "Bergen")
    with pytest.raises(QueryError, match=r"do not meet the condition \(length\(city\) = 9\) of"):
        frame.writeTo("rides").overwrite(F.length("city") == 9)
    with pytest.raises(PySparkException):
        frame.writeTo("rides").overwrite(F.col("nothing") == 1)
    assert rows(spark, ALL)[:3] == [(1, "a", 10, "Oslo"), (2, "b", 20, "Oslo"), (3, "c", 30, "Bergen")]
    assert history(spark) == ["INSERT"]
    # what Spark says of tables that do not support it, it says of others
    spark.sql("CREATE TABLE plain (id INT) USING parquet")
    with pytest.raises(PySparkException):
        spark.sql("INSERT INTO plain REPLACE WHERE id = 1 SELECT id FROM rides")


TABLES = {
    "buckets": "primaryKey = 'id', preCombineField = 'fare', 'hoodie.index.type' = 'BUCKET', "
    "'hoodie.bucket.index.num.buckets' = '2'",
    "record index": "primaryKey = 'id', preCombineField = 'fare', type = 'mor', "
    "'hoodie.metadata.record.index.enable' = 'true'",
    "generated keys": "type = 'cow'",
}


@pytest.mark.parametrize("what", ["buckets", seldom("record index"), seldom("generated keys")])
@pytest.mark.parametrize("partitioned", [seldom(""), "PARTITIONED BY (city)"])
def test_new_rows_win_in_every_table(spark, what, partitioned):
    """Also with lower ordering values."""
    spark.sql(
        "CREATE TABLE rides (id INT, name STRING, fare BIGINT, city STRING) USING hudi "
        f"TBLPROPERTIES ({TABLES[what]}) {partitioned}"
    )
    spark.sql("INSERT INTO rides VALUES " + FOUR.replace("null, null", "'d', 40"))
    spark.sql("INSERT INTO rides REPLACE WHERE id < 3 SELECT id, 'new', fare - 5, city FROM rides WHERE id = 2")
    assert rows(spark, "SELECT id, name, fare FROM rides WHERE id < 4") == [(2, "new", 15), (3, "c", 30)]
    spark.sql("UPDATE rides SET name = 'newer', fare = 16 WHERE id = 2")
    spark.sql("DELETE FROM rides WHERE id = 3")
    assert rows(spark, ALL) == [(2, "newer", 16, "Oslo"), (4, "d", 40, "Moss")]


@pytest.mark.slow
def test_a_row_of_another_writer_that_meets_the_condition_is_a_conflict(spark, meanwhile):
    spark.sql(RIDES.format("cow"))
    spark.sql(f"INSERT INTO rides VALUES {FOUR}")
    settings = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    replace = "INSERT INTO rides REPLACE WHERE city IN ('Oslo', 'Vardo') SELECT 5, 'e', 50, 'Oslo'"
    for key, value in settings.items():
        spark.sql(f"SET {key} = {value}")
    try:
        meanwhile.append("INSERT INTO rides VALUES (9, 'i', 90, 'Vardo')")
        with pytest.raises(ConflictError):
            spark.sql(replace)
        meanwhile.append("INSERT INTO rides VALUES (10, 'j', 100, 'Bergen')")  # which it does not read
        spark.sql(replace)
        assert rows(spark, "SELECT id FROM rides") == [(3,), (4,), (5,), (10,)]
        spark.sql("SET hoodie.write.num.retries.on.conflict.failures = 1")
        meanwhile.append("INSERT INTO rides VALUES (11, 'k', 110, 'Vardo')")
        spark.sql(replace.replace("SELECT 5", "SELECT 6"))
        assert rows(spark, "SELECT id FROM rides") == [(3,), (4,), (6,), (10,)]
    finally:
        for key in (*settings, "hoodie.write.num.retries.on.conflict.failures"):
            spark.sql(f"RESET {key}")
