"""Statements that read the table that they change, beside other writers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pyhudi.errors import ConflictError, NonRetryableConflictError
from tests.cases import classic, every, seldom
from tests.spark.sql.ride_tables import RIDES, rows

pytest.importorskip("sqlglot")


pytestmark = pytest.mark.usefixtures("database")


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
    from pyhudi.spark.dml import update
    from pyhudi.spark.dml.merge import merge_builder

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


def test_an_insert_that_reads_its_table_is_retried_with_what_it_reads_then(spark, meanwhile):
    spark.sql(RIDES.format("cow"))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo')")
    spark.table("rides").createOrReplaceTempView("earlier")
    settings = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.num.retries.on.conflict.failures": "2",
    }
    for key, value in settings.items():
        spark.sql(f"SET {key} = {value}")
    try:
        meanwhile.append("INSERT INTO rides VALUES (2, 'b', 20, 'Oslo')")
        spark.sql("INSERT OVERWRITE rides PARTITION (city = 'Oslo') SELECT id, name, fare + 1 FROM rides")
        assert rows(spark, "SELECT id, fare FROM rides") == [(1, 11), (2, 21)]
        inserts = (
            lambda: spark.sql("INSERT OVERWRITE rides SELECT * FROM earlier"),
            lambda: spark.sql("UPDATE rides SET fare = (SELECT max(fare) FROM earlier) WHERE id IN (1, 3)"),
            lambda: spark.table("rides").write.insertInto("rides", overwrite=True),
        )
        for insert in every(2, inserts):
            meanwhile.append("INSERT INTO rides VALUES (3, 'c', 30, 'Oslo')")
            with pytest.raises(NonRetryableConflictError):
                insert()
            assert rows(spark, "SELECT id FROM rides WHERE id = 3") == [(3,)]
            spark.sql("DELETE FROM rides WHERE id = 3")
    finally:
        for key in settings:
            spark.sql(f"RESET {key}")


@classic  # Spark Connect analyzes queries late, so they are not pruned
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
