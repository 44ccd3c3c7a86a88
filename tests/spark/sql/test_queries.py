"""Queries of Hudi tables, and statements that only read them."""

from __future__ import annotations

import pytest

from pyhudi.errors import QueryError

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")


def rows(spark, query, **given):
    return sorted(tuple(row) for row in spark.sql(query, **given).collect())


def test_times_are_expressions_and_parameters(spark):
    spark.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 'a' AS n")
    first = spark.sql("CALL show_commits('t')").first()["commit_time"]
    spark.sql("UPDATE t SET n = 'b'")
    query = "SELECT n FROM t TIMESTAMP AS OF"
    assert rows(spark, f"{query} '{first[:4]}' || '{first[4:]}' AS x WHERE x.n IN ('a', 'b')") == [("a",)]
    assert rows(spark, f"{query} current_timestamp() + INTERVAL 1 DAY") == [("b",)]
    assert rows(spark, f"{query} :time WHERE id = :id", args={"time": first, "id": 1}) == [("a",)]
    with pytest.raises(QueryError, match="name it"):
        spark.sql(f"{query} ?", args=[first])
    merge = "MERGE INTO t USING t TIMESTAMP AS OF '{}' {} ON {}.id = t.id WHEN MATCHED THEN UPDATE SET n = {}"
    spark.sql(merge.format(first, "old", "old", "old.n || '!'"))
    assert rows(spark, "SELECT n FROM t") == [("a!",)]
    spark.sql("CREATE TABLE target USING hudi AS SELECT 1 AS id, 'z' AS n")
    text = f"MERGE INTO target USING t TIMESTAMP AS OF '{first}' ON t.id = target.id"
    spark.sql(f"{text} WHEN MATCHED THEN UPDATE SET n = t.n")
    assert rows(spark, "SELECT n FROM target") == [("a",)]
