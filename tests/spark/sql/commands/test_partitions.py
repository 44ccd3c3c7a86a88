"""Partitions in statements."""

from __future__ import annotations

from datetime import date

import pytest

from pyhudi.errors import QueryError, SchemaMismatchError, SqlSyntaxError
from pyhudi.spark.sql.commands import static_partitions
from pyhudi.spark.sql.commands.dml import repeated_query
from tests.cases import seldom
from tests.spark.sql.ride_tables import rows

pytest.importorskip("sqlglot")


pytestmark = pytest.mark.usefixtures("database")


def test_partitions_are_named_exactly(spark):
    """No text of a value names another partition: commas, stars, values of another type."""
    spark.sql("CREATE TABLE odd (id INT, y INT, p STRING) USING hudi PARTITIONED BY (y, p)")
    names = [(1, "a"), (1, "a,b"), (1, "a*"), (1, "abc"), (None, "a")]
    values = ", ".join(f"({n}, {'null' if y is None else y}, '{p}')" for n, (y, p) in enumerate(names))
    spark.sql(f"INSERT INTO odd VALUES {values}")
    spark.sql("INSERT OVERWRITE odd PARTITION (y = 1, p = 'a,b') SELECT 9")
    spark.sql("INSERT OVERWRITE odd PARTITION (y = 1, p = 'a') IF NOT EXISTS SELECT 10")
    spark.sql("ALTER TABLE odd DROP PARTITION (y = 1, p = 'a*')")
    left = [(0, 1, "a"), (3, 1, "abc"), (4, None, "a"), (9, 1, "a,b")]
    assert rows(spark, "SELECT id, y, p FROM odd") == left
    for value in ("'abc'", "4294967297", "1.5"):
        for statement in (
            "ALTER TABLE odd DROP PARTITION (y = {})",
            "TRUNCATE TABLE odd PARTITION (y = {})",
            "INSERT OVERWRITE odd PARTITION (y = {}, p = 'a') SELECT 1",
        ):
            with pytest.raises(SchemaMismatchError, match="'y' is no int"):
                spark.sql(statement.format(value))
    for statement in (
        "ALTER TABLE odd DROP PARTITION ()",
        "TRUNCATE TABLE odd PARTITION ()",
        "INSERT OVERWRITE odd PARTITION (y = 1, p) IF NOT EXISTS SELECT 1, 'a'",
    ):
        with pytest.raises(SqlSyntaxError):
            spark.sql(statement)
    with pytest.raises(QueryError, match="assigned twice"):
        spark.sql("UPDATE odd SET odd.id = 1, id = 2")
    for columns in ("y = 1", "p = 'a'", "y", "id = 1, y = 1, p = 'a'", "id = 1, p"):
        with pytest.raises(QueryError, match=r"partitioned by \(y, p\), and PARTITION has"):
            spark.sql(f"INSERT INTO odd PARTITION ({columns}) SELECT 1, 1, 'a'")
    spark.sql("CREATE TABLE flat (id INT, y INT) USING hudi")
    with pytest.raises(QueryError, match="`flat` is not partitioned; leave PARTITION out"):
        spark.sql("INSERT INTO flat PARTITION (y = 1) SELECT 1")
    with pytest.raises(QueryError, match="each partition column"):
        spark.sql("INSERT OVERWRITE odd PARTITION (y = 1) IF NOT EXISTS SELECT 1, 'a'")
    assert rows(spark, "SELECT id, y, p FROM odd") == left
    spark.sql("TRUNCATE TABLE odd PARTITION (y = '1')")
    assert rows(spark, "SELECT id, y, p FROM odd") == [(4, None, "a")]
    # the text that paths have for null names the same partition, as in Apache Hudi
    for value in ("NULL", "'__HIVE_DEFAULT_PARTITION__'"):
        shown = spark.sql(f"SHOW PARTITIONS odd PARTITION (y = {value})").collect()
        assert [row.partition for row in shown] == ["y=__HIVE_DEFAULT_PARTITION__/p=a"]
    # paths and patterns of procedures; without a partition there is no commit
    commits = "CALL show_commits(table => 'odd', limit => 100)"
    before = spark.sql(commits).collect()
    for call, missing in (
        ("drop_partition(table => 'odd', partition => 'y=7/p=a,y=8*')", r"'y=7/p=a', 'y=8\*'; it has 'y=__HIVE"),
        ("truncate_table(table => 'odd', partitions => 'y=7/p=a')", "'y=7/p=a'; it has 'y=__HIVE"),
    ):
        with pytest.warns(UserWarning, match=f"has no partition {missing}"):
            spark.sql(f"CALL {call}")
    with pytest.raises(QueryError, match="' ' names no partition"):
        spark.sql("CALL drop_partition(table => 'odd', partition => ' ')")
    with pytest.raises(QueryError, match="'' names no partition"):
        spark.sql("CALL truncate_table(table => 'odd', partitions => '${nothing}')")
    assert spark.sql(commits).collect() == before
    with pytest.warns(UserWarning, match="has no partition 'y=7/p=a'"):
        spark.sql("CALL drop_partition(table => 'odd', partition => 'y=7/p=a,y=*')")
    assert rows(spark, "SELECT id, y, p FROM odd") == []


def test_partitions_whose_paths_are_no_values(spark):
    """Dates as folders, and times: paths are found as the write makes them, and null is no path that tells nothing."""
    spark.sql(
        "CREATE TABLE dated (id INT, dt STRING, region STRING) USING hudi PARTITIONED BY (dt, region) TBLPROPERTIES "
        "('hoodie.datasource.write.slash.separated.date.partitioning' = 'true')"
    )
    spark.sql("INSERT INTO dated VALUES (1, '2024-01-02', 'eu')")
    spark.sql("INSERT OVERWRITE dated PARTITION (dt = '2024-01-02', region = 'eu') IF NOT EXISTS SELECT 2")
    with pytest.warns(UserWarning, match="has no partition with region = NULL"):
        spark.sql("ALTER TABLE dated DROP PARTITION (region = NULL)")
    commits = "CALL show_commits(table => 'dated')"
    assert spark.sql(commits).count() == 1
    assert [row["id"] for row in spark.sql("SELECT id FROM dated").collect()] == [1]
    spark.sql("CREATE TABLE timed (id INT, at TIMESTAMP) USING hudi PARTITIONED BY (at)")
    hours = ", ".join(f"({hour}, TIMESTAMP'2024-01-01 {hour}:00:00')" for hour in (10, 11, 12))
    spark.sql(f"INSERT INTO timed VALUES {hours}")
    spark.sql("ALTER TABLE timed DROP PARTITION (at = TIMESTAMP'2024-01-01 11:00:00')")
    assert rows(spark, "SELECT id FROM timed") == [(10,), (12,)]


@pytest.mark.parametrize("kind", ["STRING", seldom("DATE")])
def test_partitions_of_dates_with_slashes(spark, kind):
    """They are found by their values, as other partitions are."""
    name = f"days_of_{kind}"
    spark.sql(
        f"CREATE TABLE {name} (id INT, day {kind}) USING hudi PARTITIONED BY (day) TBLPROPERTIES "
        "('hoodie.datasource.write.slash.separated.date.partitioning' = 'true', "
        "'hoodie.datasource.write.hive_style_partitioning' = 'false')"
    )
    days = ", ".join(f"({number}, {kind}('2024-01-0{number}'))" for number in range(1, 6))
    spark.sql(f"INSERT INTO {name} VALUES {days}, (6, NULL)")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION (day = '2024-01-01')")
    spark.sql(f"TRUNCATE TABLE {name} PARTITION (day = '2024-01-02')")
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (day = '2024-01-03') SELECT 7")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION (day = NULL)")
    assert rows(spark, f"SHOW PARTITIONS {name} PARTITION (day = '2024-01-04')") == [("2024/01/04",)]
    assert rows(spark, f"SELECT id, CAST(day AS STRING) FROM {name}") == [
        (4, "2024-01-04"),
        (5, "2024-01-05"),
        (7, "2024-01-03"),
    ]


def test_partitions_that_are_overwritten(spark):
    """In static mode those that match the values of the statement, in dynamic mode those that rows are for."""
    spark.sql(
        "CREATE TABLE rides (id INT, city STRING, day STRING) USING hudi TBLPROPERTIES (primaryKey = 'id') "
        "PARTITIONED BY (city, day)"
    )
    everything = "SELECT id, city, day FROM rides"
    spark.sql("INSERT INTO rides VALUES (1, 'Oslo', '1'), (2, 'Oslo', '2'), (3, 'Bergen', '1')")
    spark.sql("INSERT OVERWRITE rides PARTITION (city = 'Oslo', day) SELECT 4, '1'")
    assert rows(spark, everything) == [(3, "Bergen", "1"), (4, "Oslo", "1")]
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql("INSERT OVERWRITE rides VALUES (5, 'Bergen', '7'), (6, 'Bergen', '1')")
        spark.sql("INSERT OVERWRITE rides PARTITION (city = 'Oslo', day) SELECT 7, '2'")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert rows(spark, everything) == [(4, "Oslo", "1"), (5, "Bergen", "7"), (6, "Bergen", "1"), (7, "Oslo", "2")]
    spark.sql("INSERT OVERWRITE rides PARTITION (city, day) SELECT 8, 'Moss', '1'")
    assert rows(spark, everything) == [(8, "Moss", "1")]
    spark.sql("INSERT INTO rides PARTITION (city, day = '2') SELECT 9, 'Voss'")  # which Spark refuses, not Apache Hudi
    spark.sql("INSERT OVERWRITE rides PARTITION (day = '1', city) SELECT 10, 'Hamar'")
    assert rows(spark, everything) == [(9, "Voss", "2"), (10, "Hamar", "1")]
    spark.sql("INSERT INTO rides VALUES (11, 'Oslo', '1')")
    spark.sql("ALTER TABLE rides DROP PARTITION (day = '1')")  # all of that day, which Apache Hudi refuses
    assert rows(spark, everything) == [(9, "Voss", "2")]


def test_values_of_partitions_are_evaluated_once(spark, monkeypatch):
    """They need not be literals: the partition that is replaced is the one that the rows are in."""
    spark.sql(
        "CREATE TABLE rides (id INT, city STRING, day DATE) USING hudi TBLPROPERTIES (primaryKey = 'id') "
        "PARTITIONED BY (city, day)"
    )
    seen = []
    real = static_partitions.spark_sql
    for module in (static_partitions, repeated_query):
        monkeypatch.setattr(module, "spark_sql", lambda spark, text: seen.append(text) or real(spark, text))
    two = "SELECT * FROM VALUES (1), (2) AS v(id)"
    for place, operation in (
        ("city = uuid(), day = date_add('2024-01-01', 1)", "OVERWRITE"),
        ("city = uuid(), day", "OVERWRITE"),
        ("city = uuid(), day = '2024-01-02'", "INTO"),
    ):
        query = two if "day =" in place else two.replace("*", "id, DATE'2024-01-02'")
        seen.clear()
        spark.sql(f"INSERT {operation} rides PARTITION ({place}) {query}")
        assert sum("uuid()" in text for text in seen) == 1, place
    assert rows(spark, "SELECT count(*), count(DISTINCT city), max(day) FROM rides") == [(6, 3, date(2024, 1, 2))]
    spark.sql("INSERT OVERWRITE rides PARTITION (city = 'x', day = '2024-01-02') IF NOT EXISTS SELECT 7")
    spark.sql("INSERT OVERWRITE rides PARTITION (city = 'x', day = '2024-01-02') IF NOT EXISTS SELECT 8")
    assert rows(spark, "SELECT id FROM rides WHERE city = 'x'") == [(7,)]


def test_static_partitions_of_any_date(spark):
    spark.sql("CREATE TABLE old (id INT, day DATE) USING hudi PARTITIONED BY (day)")
    for text in ("0001-01-01", "1582-10-10"):
        spark.sql(f"INSERT INTO old PARTITION (day = DATE'{text}') SELECT 1")
        spark.sql(f"INSERT OVERWRITE old PARTITION (day = DATE'{text}') SELECT 2")
    found = spark.sql("SELECT id, CAST(day AS STRING), _hoodie_partition_path FROM old ORDER BY day").collect()
    assert [tuple(row) for row in found] == [
        (2, "0001-01-01", "day=0001-01-01"),
        (2, "1582-10-10", "day=1582-10-10"),
    ]
