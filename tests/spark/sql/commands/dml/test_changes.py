"""Names and functions in UPDATE, DELETE and MERGE."""

from __future__ import annotations

import datetime as dt

import pyspark
import pytest
from pyspark.errors import AnalysisException, ParseException

from pyhudi import HudiTable
from pyhudi.errors import QueryError, SqlSyntaxError
from pyhudi.spark.session_settings import session_setting
from tests.cases import every, seldom
from tests.spark.sql.ride_tables import rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")


def test_fields_of_a_column_that_is_called_like_the_table(spark):
    """As Spark resolves them: first the columns of the table."""
    spark.sql("CREATE TABLE s (id INT, s STRUCT<x: INT, y: INT>, y INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("INSERT INTO s VALUES (1, named_struct('x', 5, 'y', 6), 7), (2, named_struct('x', 8, 'y', 9), 10)")
    spark.sql("UPDATE s SET s.x = s.y, s.y = s.x + 1 WHERE s.x = 5 AND s.s.y = 6 AND s.y = 7")
    expected = [(1, 7, 6, 6), (2, 8, 9, 10)]
    assert rows(spark, "SELECT id, s.s.x, s.s.y, y FROM s") == expected
    assert rows(spark, "SELECT id, s.x, s.s.y, s.y FROM s WHERE s.x = 8 AND s.y = 10") == expected[1:]
    spark.sql("DELETE FROM s WHERE s.x = 8")
    assert rows(spark, "SELECT id FROM s") == [(1,)]


_RANK = "row_number() OVER (ORDER BY id)"
_MATCHED = "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED"
_NOT_MATCHED = "MERGE INTO t USING (SELECT 3 AS id) s ON t.id = s.id WHEN NOT MATCHED"


@pytest.mark.parametrize("kind", ["cow", seldom("mor")])
def test_window_functions(spark, kind):
    spark.sql(f"CREATE TABLE t (id INT, n INT, m INT) USING hudi TBLPROPERTIES (primaryKey = 'id', type = '{kind}')")
    spark.sql("INSERT INTO t VALUES (1, 1, 5), (2, 2, 5)")
    ranks = [_RANK, f"1 + {_RANK}", "max(n) OVER ()", "max(n)", "max(n) + id", "count(*)", "explode(array(7, 8))"]
    for value in every(3, ranks):
        of_pair = value.replace("BY id", "BY t.id").replace("+ id", "+ t.id")
        for change in (
            f"UPDATE t SET m = 6, n = {value}",
            f"{_MATCHED} THEN UPDATE SET n = {of_pair}",
            f"{_MATCHED} AND {of_pair} = 1 THEN UPDATE SET n = 9",
            f"{_MATCHED} AND {of_pair} = 1 THEN DELETE",
            f"{_NOT_MATCHED} THEN INSERT (id, n) VALUES (s.id, {value.replace('id', 's.id').replace('(n)', '(s.id)')})",
        ):
            with pytest.raises(QueryError, match=r"(new value of 'n'|condition of clause 1) has a window function"):
                spark.sql(change)
        for change in (
            f"UPDATE t SET n = 9 WHERE {value} = 1",
            f"DELETE FROM t WHERE {value} = 1",
            f"MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id AND {of_pair} = 1 WHEN MATCHED THEN DELETE",
        ):
            with pytest.raises((QueryError, AnalysisException)):
                spark.sql(change)
    spark.sql("UPDATE t SET n = (SELECT max(n) + 10 FROM t), m = abs(m) + id WHERE id = 1")
    assert rows(spark, "SELECT id, n, m FROM t") == [(1, 12, 6), (2, 2, 5)]


def test_changes_of_many_columns(spark):
    """Messages of Spark Connect have at most a hundred levels."""
    names = [f"c{number}" for number in range(80)]
    spark.sql(
        f"CREATE TABLE t (id INT, {', '.join(f'{name} INT' for name in names)}) USING hudi "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    source = f"SELECT 1 AS id, {', '.join(f'{number} AS {name}' for number, name in enumerate(names))}"
    spark.sql(
        f"MERGE INTO t USING ({source}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"UPDATE t SET {', '.join(f'{name} = {name} + 1' for name in names)}")
    assert rows(spark, "SELECT id, c0, c79 FROM t") == [(1, 1, 80)]


@pytest.mark.parametrize("kind", [seldom("cow"), "mor"])
def test_merge_has_one_time(spark, kind):
    columns = "id INT, n STRING, at TIMESTAMP, day DATE, made TIMESTAMP"
    spark.sql(f"CREATE TABLE t ({columns}) USING hudi TBLPROPERTIES (primaryKey = 'id', type = '{kind}')")
    spark.sql("INSERT INTO t (id) VALUES (1), (2)")
    spark.sql(
        "MERGE INTO t USING (SELECT explode(array(2, 3)) AS id) s ON t.id = s.id "
        "WHEN MATCHED AND now() > DATE '2024-01-01' THEN UPDATE SET n = 'u', at = current_timestamp(), day = curdate() "
        "WHEN NOT MATCHED THEN INSERT (id, n, at, day, made) VALUES (s.id, 'i', now(), current_date, CURRENT_TIMESTAMP)"
    )
    assert rows(spark, "SELECT id, n FROM t") == [(1, None), (2, "u"), (3, "i")]
    assert rows(spark, "SELECT count(DISTINCT at), count(DISTINCT day), count(made), max(made = at) FROM t") == [
        (1, 1, 1, True)
    ]
    assert rows(spark, "SELECT id FROM t WHERE at NOT BETWEEN now() - INTERVAL 10 MINUTES AND now()") == []


def test_parameters_that_are_durations(spark):
    spark.sql("CREATE TABLE t (id INT, at TIMESTAMP) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("INSERT INTO t VALUES (1, TIMESTAMP '2024-01-01 00:00:00'), (2, TIMESTAMP '2024-01-03 00:00:00')")
    spark.sql(
        "UPDATE t SET at = at + :more WHERE at < TIMESTAMP '2024-01-04' - :ago",
        args={"more": dt.timedelta(hours=-1, microseconds=7), "ago": dt.timedelta(days=2)},
    )
    assert rows(spark, "SELECT id, CAST(at AS STRING) FROM t") == [
        (1, "2023-12-31 23:00:00.000007"),
        (2, "2024-01-03 00:00:00"),
    ]


@pytest.mark.parametrize("kind", ["cow", seldom("mor")])
def test_incomplete_conditions_are_refused(spark, kind):
    """Spark's ``expr`` takes the last word for an alias, as of a condition to which a variable has added nothing."""
    spark.sql(f"CREATE TABLE t (id INT, n INT) USING hudi TBLPROPERTIES (primaryKey = 'id', type = '{kind}')")
    spark.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
    table = HudiTable.for_name("t", spark=spark)
    merge = "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id"
    for change in (
        "DELETE FROM t WHERE id > 0 AND ${nothing}",
        "DELETE FROM t x WHERE x.id > 0 OR",
        "DELETE FROM t WHERE id IN (SELECT 1) AND -- n = 2",
        "UPDATE t SET n = 0 WHERE id > 0 AND",
        "UPDATE t SET n = id AS m",
        "DELETE FROM t WHERE n = 1) OR (n > 0",
        "DELETE FROM t WHERE n IN (1)) OR (n > 0",
        "UPDATE t SET n = SELECT max(id) FROM t WHERE id = 1",
        f"{merge} AND WHEN MATCHED THEN DELETE",
        f"{merge} WHEN MATCHED AND t.n > 0 AND THEN DELETE",
    ):
        with pytest.raises(ParseException):
            spark.sql(change)
    for call in (
        lambda: table.delete("id > 0 AND"),
        lambda: table.update({"n": "0"}, "id > 0 AND"),
        lambda: table.scan(filter="id > 0 AND").to_spark().collect(),
    ):
        with pytest.raises(ParseException):
            call()
    assert rows(spark, "SELECT id, n FROM t") == [(1, 10), (2, 20)]
    spark.sql("DELETE FROM t WHERE id = 2 AND '(' < 'a' -- AND )")
    assert [row["id"] for row in table.scan(filter="id > 0 -- AND").to_spark().collect()] == [1]


def test_parameters_where_backslashes_are_no_escapes(spark):
    texts = {"quote": "it's", "path": "a\\b\\", "lines": "x\ny", "plain": "${x}"}
    spark.sql("CREATE TABLE t (id STRING, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    with session_setting(spark, "spark.sql.parser.escapedStringLiterals", "true"):
        for name, text in texts.items():
            spark.sql("INSERT INTO t VALUES (:name, :text)", args={"name": name, "text": text})
        assert rows(spark, "SELECT id, v FROM t") == sorted(texts.items())
        spark.sql("DELETE FROM t WHERE v IN (?, ?)", args=[texts["quote"], texts["path"]])
    assert rows(spark, "SELECT id FROM t") == [("lines",), ("plain",)]


@pytest.mark.skipif(pyspark.__version__.startswith("3."), reason="Spark 4 has pipes")
def test_subqueries_without_select_mean_the_row_of_the_statement(spark):
    spark.sql("CREATE TABLE t (id INT, n INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("CREATE TABLE u (id INT, n INT) USING parquet")
    spark.sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    spark.sql("INSERT INTO u VALUES (2, 200), (4, 400)")
    spark.sql("UPDATE t SET n = (TABLE u |> WHERE u.id = t.id |> AGGREGATE max(n)) WHERE t.id < 3")
    assert rows(spark, "SELECT id, n FROM t") == [(1, None), (2, 200), (3, 30)]
    spark.sql("DELETE FROM t WHERE EXISTS (FROM u |> WHERE u.id = t.id)")
    assert rows(spark, "SELECT id, n FROM t") == [(1, None), (3, 30)]
    spark.sql("DELETE FROM shop.t WHERE NOT EXISTS (FROM u |> WHERE u.id = shop.t.id + 1)")
    assert rows(spark, "SELECT id, n FROM t") == [(1, None), (3, 30)]


def test_schema_evolution_by_statements_is_refused(spark):
    spark.sql("CREATE TABLE t (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    for statement in (
        "INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1 AS id, 2 AS n",
        "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(SqlSyntaxError, match="SCHEMA EVOLUTION is not supported: add the columns by ALTER TABLE"):
            spark.sql(statement)
