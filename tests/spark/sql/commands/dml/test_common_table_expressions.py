"""WITH before statements that change a table."""

from __future__ import annotations

import pytest

from tests.cases import seldom
from tests.spark.sql.ride_tables import RIDES, rows

pytest.importorskip("sqlglot")


pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize("kind", ["cow", seldom("mor")])
def test_changes(spark, kind):
    spark.sql(RIDES.format(kind))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Bergen'), (3, 'c', 30, 'Oslo')")
    highest = "highest AS (SELECT id, fare FROM rides ORDER BY fare DESC LIMIT 1)"
    spark.sql(
        f"WITH {highest}, s AS (SELECT id, fare + 1 AS fare FROM highest UNION ALL SELECT 4, 40) "
        "MERGE INTO rides t USING s ON t.id = s.id WHEN MATCHED AND s.id IN (SELECT id FROM highest) "
        "THEN UPDATE SET fare = s.fare "
        "WHEN NOT MATCHED THEN INSERT (id, name, fare, city) VALUES (s.id, 'd', s.fare, 'Oslo')"
    )
    assert rows(spark, "SELECT id, fare FROM rides") == [(1, 10), (2, 20), (3, 31), (4, 40)]
    spark.sql(f"WITH {highest} UPDATE rides SET fare = (SELECT max(fare) FROM highest) WHERE id = :id", {"id": 1})
    assert rows(spark, "SELECT id, fare FROM rides") == [(1, 40), (2, 20), (3, 31), (4, 40)]
    spark.sql(
        "WITH old(id) AS (SELECT id FROM rides WHERE fare < 35) DELETE FROM rides WHERE id IN (SELECT id FROM old)"
    )
    assert rows(spark, "SELECT id FROM rides") == [(1,), (4,)]


def test_other_tables(spark):
    spark.sql("CREATE TABLE plain (id INT) USING parquet")
    with pytest.raises(Exception, match=r"(?i)delete") as refused:
        spark.sql("WITH s AS (SELECT 1 AS id) DELETE FROM plain WHERE id IN (SELECT id FROM s)").collect()
    assert "pyhudi" not in str(refused.value)
