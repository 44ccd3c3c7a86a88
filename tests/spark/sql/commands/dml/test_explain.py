"""EXPLAIN of statements that change a table."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from pyhudi.errors import ConfigError, SchemaMismatchError
from tests.cases import seldom
from tests.spark.sql.ride_tables import RIDES, rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")

WHOLE = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


@pytest.mark.parametrize("kind", [seldom("cow"), "mor"])
def test_what_a_statement_would_do_is_shown_and_not_done(spark, kind):
    spark.sql(RIDES.format(kind))
    given = "(1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Bergen'), (3, 'c', 30, 'Moss')"
    spark.sql(f"INSERT INTO rides VALUES {given}")
    commits = "SELECT * FROM hudi_query_timeline('rides')"
    before = rows(spark, commits)

    def explained(text, mode="", **parameters):
        result = spark.sql(f"EXPLAIN {mode} {text}", **parameters)
        assert result.columns == ["plan"]
        return result.first()[0]

    place = {"cow": "base files with such rows", "mor": "log files are added"}[kind]
    deletion = explained("DELETE FROM rides WHERE city = :city", args={"city": "Oslo"})
    assert deletion.startswith("== Hudi DELETE of `shop`.`rides` ==")
    for part in (place, "partitions  1 of 3", "slices      1 of 1", "filter      city = 'Oslo'", "Physical Plan"):
        assert part in deletion, deletion
    update = explained("UPDATE rides r SET fare = r.fare + 1 WHERE r.id IN (SELECT max(id) FROM rides)", "EXTENDED")
    for part in ("UPDATE", place, "slices      3 of 3", "Analyzed Logical Plan", "fare"):
        assert part in update, update
    insert = explained("INSERT OVERWRITE rides PARTITION (city = 'Oslo') SELECT 5 AS id, 'e' AS name, 50 AS fare")
    for part in ("operation   insert_overwrite", "replaces    city=Oslo"):
        assert part in insert, insert
    source = "USING (SELECT 4 AS id, 'd' AS name, 40 AS fare, 'Oslo' AS city) s"
    upsert = explained(f"MERGE INTO rides t {source} ON t.id = s.id AND t.city = s.city {WHOLE}")
    assert "executes    upsert of the source" in upsert, upsert
    join = explained(f"MERGE INTO rides t {source} ON t.id = s.id {WHOLE}")
    for part in ("inner join of the table with the source on t.id = s.id, then a search", place, "slices      3 of 3"):
        assert part in join, join
    outer = explained(f"MERGE INTO rides t {source} ON t.fare < s.fare WHEN NOT MATCHED BY SOURCE THEN DELETE")
    assert "left join" in outer, outer
    for text, error in {
        "UPDATE rides SET id = 1": ConfigError,
        "UPDATE rides SET nothing = 1": SchemaMismatchError,
        "DELETE FROM rides WHERE nothing = 1": AnalysisException,
        "INSERT INTO rides VALUES (1)": SchemaMismatchError,
    }.items():
        with pytest.raises(error):
            explained(text)
    assert rows(spark, commits) == before
    assert rows(spark, "SELECT id, name, fare FROM rides") == [(1, "a", 10), (2, "b", 20), (3, "c", 30)]


def test_a_cached_source_stays_cached(spark):
    spark.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 2 AS n")
    source = spark.sql("SELECT 1 AS id, 3 AS n").cache()
    source.createOrReplaceTempView("cached_source")
    source.count()
    merge = f"MERGE INTO t USING cached_source s ON t.id = s.id {WHOLE}"
    assert "InMemoryTableScan" in spark.sql(f"EXPLAIN {merge}").first()[0]
    assert source.storageLevel.useMemory
    source.unpersist()
