"""INSERT, and DataFrames that are inserted: columns by name or by position."""

from __future__ import annotations

import datetime as dt
from contextlib import contextmanager, nullcontext

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructField, StructType

from pyhudi.errors import ConfigError, QueryError, SchemaMismatchError
from pyhudi.spark.dml.assignments.store_assignment import StoreAssignment, StoreRules, stored_as
from pyhudi.spark.session_settings import session_setting
from pyhudi.spark.spark_errors import task_errors
from tests.cases import seldom
from tests.spark.sql.ride_tables import rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")


@contextmanager
def settings(spark, **changed):
    """Session settings of Spark SQL, by their last words."""
    keys = {f"spark.sql.{name.replace('_', '.')}": value for name, value in changed.items()}
    before = {key: spark.conf.get(key) for key in keys}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


FARES = "CREATE TABLE fares (id INT, name STRING, price INT, ts INT, dt STRING) USING hudi PARTITIONED BY (dt)"


def test_columns_are_taken_by_name_if_the_query_has_all_names(spark):
    spark.sql(FARES)
    spark.sql("INSERT INTO fares PARTITION (dt = 'a') SELECT 20 AS price, 2000 AS ts, 1 AS id, 'n' AS name")
    spark.sql("INSERT INTO fares SELECT 'b' AS DT, 20 AS Price, 2000 AS ts, 2 AS id, 'n' AS name")
    spark.sql("INSERT INTO fares SELECT 3 AS id, 'n' AS name, 20 AS ts, 2000 AS price, 'c' AS day")
    spark.sql("INSERT INTO fares VALUES (4, 'n', 20, 2000, 'd')")
    frame = spark.sql("SELECT 'e' AS dt, 20 AS price, 2000 AS ts, 5 AS id, 'n' AS name")
    frame.write.insertInto("fares")
    expected = [(1, "n", 20, 2000, "a"), (2, "n", 20, 2000, "b"), (3, "n", 20, 2000, "c"), (4, "n", 20, 2000, "d")]
    assert rows(spark, "SELECT id, name, price, ts, dt FROM fares") == [*expected, (5, "n", 20, 2000, "e")]
    # meta columns of another table's rows are left out, however columns are taken
    spark.sql("CREATE TABLE others LIKE fares USING hudi")
    spark.sql("INSERT INTO others BY NAME SELECT * FROM fares WHERE id = 1")
    spark.table("fares").where("id = 2").write.mode("append").saveAsTable("others")
    spark.table("fares").where("id = 3").writeTo("others").append()
    spark.sql("INSERT INTO others SELECT * FROM fares WHERE id = 4")
    assert rows(spark, "SELECT id, name, price, ts, dt FROM others") == expected
    with pytest.raises(SchemaMismatchError, match=r"no column 'tip'.* new columns are added by ALTER TABLE"):
        spark.table("fares").selectExpr("*", "1 AS tip").write.mode("append").saveAsTable("others")


def test_fields_of_structs_are_taken_by_name_or_by_position_as_columns_are(spark):
    spark.sql("CREATE TABLE nested (id INT, a STRUCT<x: INT, y: STRING>, b ARRAY<STRUCT<p: INT, q: INT>>) USING hudi")
    reordered = "named_struct('y', 'Y', 'x', 1) AS a, array(named_struct('q', 1L, 'p', 2L)) AS b"
    others = "named_struct('m', 1, 'm', 'N') AS a, array(named_struct('m', 1, 'n', 2)) AS b"
    spark.sql(f"INSERT INTO nested SELECT 1 AS id, {reordered}")
    spark.sql(f"INSERT INTO nested SELECT {reordered}, 2 AS id")
    spark.sql(f"INSERT INTO nested SELECT 3 AS id, {others}")
    spark.sql("INSERT INTO nested SELECT 4, named_struct('q', 5, 'x', 'N'), array(named_struct('q', 1L, 'p', 2L))")
    with pytest.raises(SchemaMismatchError, match="'a'"):
        spark.sql(f"INSERT INTO nested BY NAME SELECT 5 AS id, {others}")
    # with a list of columns, structs go by position, and those in arrays by name, as in Spark
    with pytest.raises(SchemaMismatchError, match="'b'"):
        spark.sql(f"INSERT INTO nested (id, a, b) SELECT 5, {others}")
    spark.sql(
        "INSERT INTO nested (b, a, id) SELECT array(named_struct('q', 2, 'p', 1)), named_struct('y', 1, 'x', 'N'), 5"
    )
    spark.sql("UPDATE nested SET a = named_struct('y', 'new', 'x', 9) WHERE id = 4")
    assert rows(spark, "SELECT id, a.x, a.y, b[0].p, b[0].q FROM nested") == [
        (1, 1, "Y", 2, 1),
        (2, 1, "Y", 2, 1),
        (3, 1, "N", 1, 2),
        (4, 9, "new", 1, 2),
        (5, 1, "N", 1, 2),
    ]


def test_partition_columns_come_last_in_their_order(spark, tmp_path):
    place = str(tmp_path / "t")
    keys = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "p1,p2"}
    frame = spark.createDataFrame([("B", 0, "A")], "p2 string, id int, p1 string")
    frame.write.format("hudi").options(**keys, **{"hoodie.table.name": "t"}).save(place)
    spark.sql(f"CREATE TABLE t USING hudi LOCATION '{place}'")
    spark.sql("INSERT INTO t VALUES (1, 'A', 'B')")
    spark.sql("INSERT INTO t SELECT 2, 'A', 'B'")
    assert rows(spark, "SELECT id, p1, p2 FROM t") == [(n, "A", "B") for n in range(3)]
    spark.sql("ALTER TABLE t ADD COLUMNS (v INT)")
    for listed in (spark.table("t").columns, [c.name for c in spark.catalog.listColumns("t")]):
        assert listed[-4:] == ["id", "v", "p1", "p2"]
    spark.sql("CREATE TABLE like_t LIKE t USING hudi")
    assert spark.table("like_t").columns[-4:] == ["id", "v", "p1", "p2"]
    spark.sql("INSERT INTO t PARTITION (p1 = 'A', p2) SELECT 3, 0, 'B'")
    assert rows(spark, "SELECT id, p1, p2, v FROM t WHERE id = 3") == [(3, "A", "B", 0)]


@pytest.mark.parametrize(
    ("value", "column", "stored"),
    [
        ("CAST(7.5 AS DECIMAL(38, 37))", "BIGINT", 7),
        ("CAST(-99.5 AS DECIMAL(38, 36))", "TINYINT", -99),
        ("CAST(-128.5 AS DECIMAL(4, 1))", "TINYINT", -128),
        ("CAST(128 AS DECIMAL(38, 20))", "TINYINT", None),
        ("127.9D", "TINYINT", 127),
        ("-128.5D", "TINYINT", -128),
        ("-129D", "TINYINT", None),
        ("-9223372036854775808D", "BIGINT", -(2**63)),
        ("9223372036854775808D", "BIGINT", None),
        ("double('nan')", "BIGINT", None),
    ],
)
@pytest.mark.parametrize("ansi", ["false", "true"])
def test_integral_parts_of_numbers_are_stored(spark, value, column, stored, ansi):
    """As by Spark, whatever the number of decimal digits; None: the value does not fit."""
    number = spark.range(1).select(F.expr(value).alias("n"), F.lit(0).cast(column).alias("c"))
    source, target = (field.dataType for field in number.schema)
    result = number.select(stored_as(F.col("n"), source, target, "c", StoreRules(StoreAssignment.ANSI)))
    expected = pytest.raises(SchemaMismatchError, match="does not fit the column 'c'")
    with settings(spark, ansi_enabled=ansi), nullcontext() if stored is not None else expected, task_errors():
        assert result.first()[0] == stored


@pytest.mark.parametrize("policy", ["ANSI", "STRICT", "LEGACY"])
def test_bytes_inside_of_values_are_stored_as_text(spark, policy):
    source, target = (
        StructType([StructField("a", ArrayType(kind)), StructField("m", MapType(kind, StructType([field])))])
        for kind in (BinaryType(), StringType())
        for field in [StructField("x", kind)]
    )
    with settings(spark, storeAssignmentPolicy=policy, ansi_enabled="false"):
        rules = StoreRules.for_insert(spark, by_position=True)
        for inside, key, value in (("41", "42", "43"), ("FF", "42", "43"), ("41", "FF", "43"), ("41", "42", "FF")):
            bytes_in = f"named_struct('a', array(X'{inside}', NULL), 'm', map(X'{key}', named_struct('x', X'{value}')))"
            stored = spark.range(1).select(stored_as(F.expr(bytes_in), source, target, "c", rules).alias("c"))
            assert stored.schema[0].dataType.simpleString() == target.simpleString()
            if "FF" in bytes_in:
                refused = "the bytes FF are not UTF-8, as text of the column 'c'"
                with pytest.raises(SchemaMismatchError, match=refused), task_errors():
                    stored.collect()
            else:
                assert stored.collect() == [((["A", None], {"B": ("C",)}),)]


def test_policies_of_store_assignment(spark):
    spark.sql("CREATE TABLE n (i INT, s STRING, a ARRAY<INT>, f STRUCT<x: INT, y: INT>) USING hudi")
    with settings(spark, storeAssignmentPolicy="strict"):
        for value in (
            "i) SELECT 1L",
            "i) SELECT '1'",
            "a) SELECT array(1L)",
            "f) SELECT named_struct('y', 1L, 'x', 2)",
        ):
            with pytest.raises(SchemaMismatchError, match="STRICT"):
                spark.sql(f"INSERT INTO n ({value}")
        spark.sql("INSERT INTO n VALUES (1S, 1, array(1Y), named_struct('x', 1S, 'y', 2))")
        with pytest.raises(SchemaMismatchError, match="STRICT"):
            spark.sql("UPDATE n SET i = '7'")
        for statement in (
            "INSERT INTO n (i) VALUES (NULL)",
            "INSERT INTO n (a) SELECT array(NULL)",
            "UPDATE n SET s = NULL",
        ):
            with pytest.raises(SchemaMismatchError, match=r"NULL without a type.*STRICT: write CAST"):
                spark.sql(statement)
        spark.sql("INSERT INTO n (i, s) SELECT 8, X'4142'")
    spark.sql("INSERT INTO n (s, a) VALUES (X'43', NULL)")  # by the policy ANSI
    with pytest.raises(SchemaMismatchError, match="the bytes FF41 are not UTF-8"):
        spark.sql("INSERT INTO n (s) SELECT X'FF41'")
    refused = pytest.raises(ConfigError, match=r"LEGACY .*ansi\.enabled=false")
    with settings(spark, storeAssignmentPolicy="LEGACY", ansi_enabled="true"), refused:
        spark.sql("INSERT INTO n (i, s) VALUES (9, 9)")
        spark.sql("INSERT INTO n (i) VALUES ('x')")
    with settings(spark, storeAssignmentPolicy="LEGACY", ansi_enabled="false"):
        spark.sql(
            "INSERT INTO n SELECT 4294967298L, true, array('3', 'x'), named_struct('a', '5', 'b', DATE'2024-01-01')"
        )
        spark.sql("UPDATE n SET f = named_struct('y', '8', 'x', 'z') WHERE i = 1")
    assert rows(spark, "SELECT coalesce(i, 0), s FROM n WHERE s IN ('AB', 'C')") == [
        (0, "C"),
        (8, "AB"),
    ]
    assert rows(spark, "SELECT i, s, a, f.x, f.y FROM n WHERE s NOT IN ('AB', 'C')") == [
        (1, "1", [1], None, 8),
        (2, "true", [3, None], 5, None),
        (9, "9", None, None, None),
    ]


def test_parameters_of_statements_that_change_a_table(spark):
    spark.sql("CREATE TABLE p (id INT, n STRING, at TIMESTAMP) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    at = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    spark.sql("INSERT INTO p VALUES (:id, :n, :at), (:id + 1, 'b', NULL)", args={"id": 1, "n": "it's :id", "at": at})
    assert rows(spark, "SELECT id, n, unix_timestamp(at) FROM p") == [
        (1, "it's :id", int(at.timestamp())),
        (2, "b", None),
    ]
    spark.sql("UPDATE p SET n = ? WHERE id = ?", args=["?", 2])
    spark.sql("DELETE FROM p WHERE at = :at", args={"at": at})
    merge = (
        "MERGE INTO p USING (SELECT :id AS id) s ON p.id = s.id WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, :n)"
    )
    spark.sql(merge, args={"id": 5, "n": None})
    assert rows(spark, "SELECT id, n FROM p") == [(2, "?"), (5, None)]
    with pytest.raises(QueryError, match=r":ids is \[1\]"):
        spark.sql("DELETE FROM p WHERE id IN (:ids)", args={"ids": [1]})


@pytest.mark.parametrize(
    ("insert", "expected"),
    [
        ("INTO t SELECT 1, DEFAULT, 2", (1, None, 2)),
        seldom(("OVERWRITE t ((SELECT 1, default, 2))", (1, None, 2))),
        ("INTO t (c, a, b) SELECT a, DEFAULT, 7 FROM others", (None, 7, 1)),
        ("INTO t WITH w AS (SELECT 1 AS z) SELECT z, DEFAULT, 2 FROM w ORDER BY z LIMIT 1", (1, None, 2)),
        seldom(("INTO t SELECT *, DEFAULT, DEFAULT FROM VALUES (1)", (1, None, None))),
        seldom(("INTO t SELECT col1, 2, col2 FROM VALUES (1, DEFAULT)", (1, 2, None))),
        ("INTO t REPLACE WHERE a = 1 SELECT 1, DEFAULT, 2", (1, None, 2)),
        # a column of that name comes first, also of Hudi tables
        ("INTO t SELECT a, DEFAULT, 7 FROM others_default", (1, 5, 7)),
        seldom(("INTO t WITH c AS (VALUES (1, 2, DEFAULT)) SELECT * FROM c", (1, 2, None))),
        seldom(("INTO t SELECT a, default, 7 FROM VALUES (1, DEFAULT) AS v(a, default)", (1, None, 7))),
    ],
)
def test_default_is_null_unless_it_is_a_column(spark, insert, expected):
    spark.sql("CREATE TABLE t (a INT, b INT, c INT) USING hudi")
    spark.sql("CREATE TABLE others USING hudi AS SELECT 1 AS a")
    spark.sql("CREATE TABLE others_default USING hudi AS SELECT 1 AS a, 5 AS default")
    spark.sql(f"INSERT {insert}")
    assert rows(spark, "SELECT a, b, c FROM t") == [expected]


def test_default_that_spark_refuses(spark):
    spark.sql("CREATE TABLE t (a INT, b INT) USING hudi")
    for query in ("SELECT DEFAULT + 1, 2", "SELECT DEFAULT AS a, 2", "SELECT 1, DEFAULT UNION ALL SELECT 1, 2"):
        with pytest.raises(AnalysisException, match=r"(?i)column.*DEFAULT"):
            spark.sql(f"INSERT INTO t {query}")
    spark.sql("CREATE OR REPLACE TEMP VIEW d AS SELECT 5 AS default")
    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE"):
        spark.sql("INSERT INTO t SELECT 1, DEFAULT FROM d, d AS e")
    with pytest.raises(AnalysisException, match="nothing_so_called"):
        spark.sql("INSERT INTO t SELECT nothing_so_called, DEFAULT FROM d")
    assert rows(spark, "SELECT a, b FROM t") == []


def test_defaults_of_tables_of_spark_stay(spark):
    """Also where the query reads a Hudi table."""
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS a")
    spark.sql("CREATE TABLE plain (a INT, b INT DEFAULT 5) USING parquet")
    spark.sql("INSERT INTO plain SELECT a, DEFAULT FROM t")
    assert rows(spark, "SELECT * FROM plain") == [(1, 5)]


def test_options_after_the_name(spark):
    """For this statement alone, before those of the session."""
    spark.sql("CREATE TABLE o (id INT, n STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("INSERT INTO o VALUES (1, 'a')")
    upsert = "WITH ('hoodie.spark.sql.insert.into.operation' = 'upsert')"
    with session_setting(spark, "hoodie.spark.sql.insert.into.operation", "insert"):
        spark.sql(f"INSERT INTO o {upsert} VALUES (1, 'b')")
        assert rows(spark, "SELECT id, n FROM o") == [(1, "b")]
        spark.sql("INSERT INTO o (n, id) VALUES ('c', 1)")
    assert rows(spark, "SELECT id, n FROM o") == [(1, "b"), (1, "c")]
    with pytest.raises(ConfigError, match="did you mean"):
        spark.sql("INSERT INTO o WITH ('hoodie.datasource.write.recordkey.filed' = 'id') VALUES (2, 'a')")


def test_options_of_a_writer_override_those_of_the_session(spark):
    spark.sql("CREATE TABLE p (id INT, n STRING) USING hudi TBLPROPERTIES (primaryKey = 'id') PARTITIONED BY (n)")
    spark.sql("INSERT INTO p VALUES (1, 'a'), (2, 'b')")
    more = spark.sql("SELECT 3 AS id, 'b' AS n")
    with session_setting(spark, "hoodie.datasource.overwrite.mode", "STATIC"):
        more.writeTo("p").overwritePartitions()
        assert rows(spark, "SELECT id, n FROM p") == [(1, "a"), (3, "b")]
    with session_setting(spark, "hoodie.spark.sql.insert.into.operation", "insert"):
        more.write.option("hoodie.spark.sql.insert.into.operation", "upsert").insertInto("p")
        more.writeTo("p").option("Hoodie.Spark.Sql.Insert.Into.Operation", "upsert").append()
        assert rows(spark, "SELECT id, n FROM p") == [(1, "a"), (3, "b")]
