"""Queries of Hudi tables, and statements that only read them."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from pyhudi.errors import ConfigError, QueryError, SqlSyntaxError, UnsupportedTableError
from pyhudi.spark.session_settings import session_setting
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from tests.spark.sql.ride_tables import rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")


ANSI = "spark.sql.ansi.enabled"
OTHER_CATALOG = {
    "spark.sql.catalog.elsewhere": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    "spark.sql.catalog.elsewhere.url": "jdbc:hive2://127.0.0.1:1",
    "spark.sql.catalog.elsewhere.driver": "org.apache.hive.jdbc.HiveDriver",
}
"""A catalog that is part of Spark, and connects to nothing before it is asked for a table."""


def test_times_are_expressions_and_parameters(spark):
    spark.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 'a' AS n")
    first = spark.sql("CALL show_commits('t')").first()["commit_time"]
    spark.sql("UPDATE t SET n = 'b'")
    query = "SELECT n FROM t TIMESTAMP AS OF"
    assert rows(spark, f"{query} '{first[:4]}' || '{first[4:]}' AS x WHERE x.n IN ('a', 'b')") == [("a",)]
    assert rows(spark, f"{query} current_timestamp() + INTERVAL 1 DAY") == [("b",)]
    assert rows(spark, f"{query} :time WHERE id = :id", args={"time": first, "id": 1}) == [("a",)]
    for zone in ("America/New_York", "Asia/Tokyo"):
        with session_setting(spark, "spark.sql.session.timeZone", zone):
            assert rows(spark, f"{query} current_timestamp()") == [("b",)]
            assert rows(spark, f"{query} current_timestamp() - INTERVAL 1 HOUR") == []
    with pytest.raises(QueryError, match="name it"):
        spark.sql(f"{query} ?", args=[first])
    merge = "MERGE INTO t USING t TIMESTAMP AS OF '{}' {} ON {}.id = t.id WHEN MATCHED THEN UPDATE SET n = {}"
    spark.sql(merge.format(first, "old", "old", "old.n || '!'"))
    assert rows(spark, "SELECT n FROM t") == [("a!",)]
    spark.sql("CREATE TABLE target USING hudi AS SELECT 1 AS id, 'z' AS n")
    text = f"MERGE INTO target USING t TIMESTAMP AS OF '{first}' ON shop.t.id = target.id"
    spark.sql(f"{text} WHEN MATCHED THEN UPDATE SET n = t.n")
    assert rows(spark, "SELECT n FROM target") == [("a",)]


def test_statements_that_only_read_hudi_tables(spark, tmp_path):
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id, 'a' AS n")
    path = spark.sql("SHOW TBLPROPERTIES t ('path')").first()["value"]
    spark.sql("CREATE TABLE plain (id INT, n STRING) USING parquet")
    spark.sql(f"INSERT OVERWRITE DIRECTORY '{tmp_path}/out' USING parquet SELECT * FROM t WHERE id = 1")
    assert spark.read.parquet(f"{tmp_path}/out").select("id", "n").collect() == [(1, "a")]
    spark.sql(f"INSERT OVERWRITE DIRECTORY '{tmp_path}/out' USING parquet (SELECT id + 1 AS id, n FROM t)")
    assert spark.read.parquet(f"{tmp_path}/out").select("id", "n").collect() == [(2, "a")]
    assert "Insert" in spark.sql("EXPLAIN INSERT INTO plain SELECT id, n FROM t").first()[0]
    spark.sql("FROM t INSERT INTO plain SELECT id, n INSERT INTO plain SELECT id + 1, n")
    assert rows(spark, "SELECT id FROM plain") == [(1,), (2,)]
    spark.sql("CREATE TABLE other USING hudi AS SELECT 5 AS id, 'x' AS n")
    spark.sql("FROM t INSERT INTO other SELECT id, n WHERE id > 0")
    assert rows(spark, "SELECT id FROM other") == [(1,), (5,)]
    spark.sql(
        "FROM plain INSERT INTO other SELECT id + 10, n WHERE id = :id "
        "INSERT INTO TABLE other (n, id) SELECT 'z', id + 5 WHERE id = :id",
        {"id": 2},
    )
    assert rows(spark, "SELECT id, n FROM other") == [(1, "a"), (5, "x"), (7, "z"), (12, "a")]
    spark.sql(
        "WITH s AS (SELECT id + 20 AS id FROM t) FROM s "
        "INSERT INTO other SELECT id, 'w' INSERT INTO other (id) SELECT 22"
    )
    assert rows(spark, "SELECT id, n FROM other WHERE id > 20") == [(21, "w"), (22, None)]
    for later in ("nowhere SELECT id", "plain SELECT nothing, n", "other SELECT id, n, 1", "plain SELECT id, n, 1"):
        with pytest.raises(Exception, match=r"(?i)nowhere|`nothing`|columns"):
            spark.sql(f"FROM t INSERT INTO other SELECT id + 30, n INSERT INTO {later}")
    assert rows(spark, "SELECT count(*) FROM other WHERE id > 30") == [(0,)]
    for statement, cause in {
        "EXPLAIN CREATE TABLE t USING hudi AS SELECT 2 AS id": "EXPLAIN the query",
        "FROM (SELECT * FROM t) s INSERT INTO plain SELECT id, n INSERT INTO t SELECT id, n": "one INSERT for each",
        "ANALYZE TABLE t COMPUTE STATISTICS": "column.stats",
        "LOAD DATA INPATH '/x' OVERWRITE INTO TABLE shop.t": "INSERT INTO",
        "OPTIMIZE t ZORDER BY (id)": "OPTIMIZE does not support; CALL run_clustering",
        "VACUUM shop.t RETAIN 168 HOURS": "run_clean",
        "DESCRIBE HISTORY t": "show_commits",
        "DESC DETAIL t": "DESCRIBE EXTENDED",
        "RESTORE TABLE t TO VERSION AS OF 1": "rollback_to_savepoint",
    }.items():
        with pytest.raises(UnsupportedTableError, match=cause):
            spark.sql(statement)
    for function in (
        "f() RETURNS INT RETURN (SELECT max(id) FROM t)",
        "f() RETURNS TABLE (i INT) RETURN SELECT id FROM t",
    ):
        with pytest.raises(UnsupportedTableError, match="the function `f` cannot read Hudi tables"):
            spark.sql(f"CREATE TEMPORARY FUNCTION {function}")
    for query in ("t VERSION AS OF 1", "hudi_query_timeline('t')", f"hudi.`{path}`"):
        with pytest.raises(QueryError, match="permanent view"):
            spark.sql(f"CREATE VIEW v AS SELECT * FROM {query}")
    assert spark.sql("MSCK REPAIR TABLE t SYNC PARTITIONS").count() == spark.sql("REPAIR TABLE t").count() == 0
    # what Spark says of its own tables, it says of these statements, too
    with pytest.raises(Exception, match=r"(?i)merge") as refused:
        spark.sql("MERGE INTO plain USING t ON plain.id = t.id WHEN MATCHED THEN DELETE").collect()
    assert "pyhudi" not in str(refused.value)


def test_streams_of_tables_in_sql_are_refused(spark):
    if spark.version.startswith("3."):
        pytest.skip("Spark 4 has these clauses")
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id")
    for statement in ("SELECT id FROM STREAM t", "SELECT id FROM STREAM(shop.t) AS s", "INSERT INTO t FROM STREAM t"):
        with pytest.raises(QueryError, match=r"spark\.readStream\.table\('(shop\.)?t'\)"):
            spark.sql(statement)
    spark.sql("CREATE TEMPORARY VIEW stream AS SELECT id FROM t")
    assert rows(spark, "SELECT id FROM stream") == [(1,)]


def test_names_without_a_database_that_spark_looks_for_elsewhere_first(spark):
    if spark.version.startswith(("3.", "4.0", "4.1", "4.2")):
        pytest.skip("Spark 4.3 has SET PATH, which sets a property in earlier releases")
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id")
    try:
        spark.sql("SET spark.sql.path.enabled = true")
        spark.sql("SET PATH = spark_catalog.default, spark_catalog.shop, system.builtin, system.session")
        for statement in ("SELECT id FROM t", "DELETE FROM t", "INSERT INTO t SELECT 2 AS id", "UPDATE t SET id = id"):
            with pytest.raises(QueryError, match=r"SET PATH `t` may be .* than `shop`\.`t`.* write database\.table"):
                spark.sql(statement)
        spark.sql("DELETE FROM shop.t WHERE id = 2")
        assert rows(spark, "SELECT id FROM shop.t") == [(1,)]
        spark.sql("SET PATH = spark_catalog.shop, system.builtin, system.session")
        assert rows(spark, "SELECT id FROM t") == [(1,)]
        spark.sql("SET PATH = DEFAULT_PATH")
    finally:
        spark.conf.unset("spark.sql.path.enabled")


def test_functions_that_show_files_and_the_timeline(spark, monkeypatch):
    keyed = "primaryKey = 'id', type = 'mor', 'hoodie.metadata.enable' = 'false'"
    kept = "'hoodie.clean.commits.retained' = '2', 'hoodie.keep.min.commits' = '3', 'hoodie.keep.max.commits' = '4'"
    spark.sql(
        f"CREATE TABLE t (id INT, n STRING, day STRING) USING hudi TBLPROPERTIES ({keyed}, {kept}) PARTITIONED BY (day)"
    )
    spark.sql("INSERT INTO t VALUES (1, 'a', 'mon'), (2, 'b', 'tue')")
    spark.sql("UPDATE t SET n = 'c' WHERE id = 1")
    columns = (
        "Partition_Path, Base_File_Size > 0, Log_File_Count, Log_File_Size = Log_File_Unscheduled, Log_File_Scheduled"
    )
    monday, tuesday = ("day=mon", True, 1, True, 0), ("day=tue", True, 0, True, 0)
    view = "SELECT {} FROM hudi_filesystem_view('t'{})"
    for pattern, found in {"": 2, ", 'day=*'": 2, ", '*'": 2, ", 'day=mon'": 1, ", '*/*'": 0}.items():
        assert rows(spark, view.format(columns, pattern)) == [monday, tuesday][:found]
    for step in ("schedule", "run"):
        options = "options => 'hoodie.compact.inline.max.delta.commits=1'"
        spark.sql(f"CALL run_compaction(op => '{step}', table => 't', {options})")
    slices = rows(spark, view.format("Base_File_Size > 0, Log_File_Count", ", 'day=mon'"))
    assert slices == [(True, 0), (True, 1)]
    for number in (10, 11, 12, 13, 14):
        spark.sql(f"INSERT INTO t VALUES ({number}, 'x', 'wed')")
    active = "SELECT Timestamp, Action, Total_Records_Written FROM hudi_query_timeline('t'{})"
    both, newest = rows(spark, active.format(", 'true'")), rows(spark, active.format(""))
    assert newest == both[len(both) - len(newest) :]
    assert newest == rows(spark, active.format(", 'false'"))
    assert [row[1:] for row in both[:2]] == [("deltacommit", 2), ("deltacommit", 1)]
    assert {row[2] for row in both if row[1] in ("clean", "rollback")} <= {-1}
    assert len(both) > len(newest)
    # procedures of another catalog
    with pytest.raises(QueryError, match="unknown procedure"):
        spark.sql("CALL system.expire_snapshots('t', TIMESTAMP '2024-01-01')")
    monkeypatch.setattr("pyhudi.spark.sql.command_execution.has_other_catalog", lambda _: True)
    with pytest.raises(Exception, match=r"(?i)syntax|routine|procedure") as refused:
        spark.sql("CALL system.expire_snapshots('t', TIMESTAMP '2024-01-01')")
    assert not isinstance(refused.value, QueryError)


def test_queries_that_sqlglot_cannot_parse(spark):
    spark.sql(
        "CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT id, id % 2 AS values FROM range(1, 5)"
    )
    assert rows(spark, "SELECT id, values FROM t WHERE t.values = 1") == [(1, 1), (3, 1)]
    assert rows(spark, "SELECT shop.t.values, t.id FROM shop.t WHERE values = id") == [(1, 1)]
    either = " OR ".join(f"id = {number}" for number in range(3, 600))
    assert rows(spark, f"SELECT id FROM t WHERE {either}") == [(3,), (4,)]
    spark.sql(f"DELETE FROM t WHERE {'(' * 200}{either.replace('id = 3 OR ', '')}{')' * 200}")
    for kind in ("VIEW", "TEMPORARY VIEW"):
        spark.sql(f"CREATE {kind} shown AS SELECT id AS update, values FROM t")
        assert rows(spark, "SELECT update, values FROM shown WHERE values = 0") == [(2, 0)]
    spark.sql("DELETE FROM t WHERE id IN (SELECT update FROM shown WHERE values = 0)")
    assert rows(spark, "SELECT id FROM t") == [(1,), (3,)]
    if spark.version.startswith("3."):
        return
    piped = "FROM t |> SET values = values + id |> WHERE values > 2 |> SELECT id, values |> DROP id"
    assert rows(spark, piped) == [(4,)]
    assert rows(spark, "TABLE t |> UNION ALL TABLE t |> AGGREGATE count(*)") == [(4,)]


def test_options_after_a_table(spark):
    if spark.version.startswith("3."):
        pytest.skip("Spark 4 has options of tables in queries")
    spark.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 'a' AS n")
    first = spark.sql("CALL show_commits('t')").first()["commit_time"]
    spark.sql("UPDATE t SET n = 'b'")
    before = f"WITH ('as.of.instant' = '{first}')"
    assert rows(spark, f"SELECT t.n, u.n FROM t {before}, shop.t u WHERE t.id = u.id") == [("a", "b")]
    assert rows(spark, f"FROM t {before} AS x |> WHERE x.id = 1 |> SELECT n") == [("a",)]
    changed = (
        f"WITH ('hoodie.datasource.query.type' = 'incremental', 'hoodie.datasource.read.begin.instanttime' = {first})"
    )
    assert rows(spark, f"SELECT t.n FROM t {changed}") == [("b",)]
    spark.sql(f"CREATE TEMPORARY VIEW old AS SELECT n FROM t {before}")
    assert rows(spark, "SELECT n FROM old") == [("a",)]
    with pytest.raises(ConfigError, match="did you mean"):
        spark.sql("SELECT n FROM t WITH ('as.of.instnt' = '2024')")
    spark.sql("CREATE VIEW v AS SELECT n FROM t")
    with pytest.raises(QueryError, match="is a view, to which WITH"):
        spark.sql(f"SELECT n FROM v {before}")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS id")
    assert rows(spark, "SELECT plain.id, t.n FROM plain WITH (a = 1) JOIN t USING (id)") == [(1, "b")]


def test_functions_of_tables(spark):
    udtf = pytest.importorskip("pyspark.sql.functions").udtf

    @udtf(returnType="n int")
    class Doubled:
        def eval(self, row):
            yield (row["id"] * 2,)

    spark.udtf.register("doubled", Doubled)
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id UNION ALL SELECT 2")
    for argument in ("TABLE(t)", "TABLE t", "TABLE(SELECT * FROM t)"):
        assert rows(spark, f"SELECT n FROM doubled({argument})") == [(2,), (4,)]


def test_variables_in_statements(spark):
    """Spark replaces them before it parses a statement, also in names."""
    settings = {"kind": "t", "least": "2", "read": "shop.${kind} x", "word": "it\\'s"}
    for key, value in {**settings, "endless": "${endless}"}.items():
        spark.conf.set(key, value)
    try:
        spark.sql("CREATE TABLE ${kind} (id INT, n STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
        spark.sql("INSERT INTO shop.${kind} VALUES (1, '${word}'), (${least}, '${absent}'), (3, '$${')")
        assert rows(spark, "SELECT id, n FROM ${read} WHERE x.id > 0") == [(1, "it's"), (2, ""), (3, "$${")]
        spark.sql("UPDATE ${hiveconf:kind} SET n = '${kind}' WHERE id = ${least}")
        spark.sql("DELETE FROM ${spark:kind} WHERE id > ${least}")
        assert rows(spark, "SELECT n FROM t WHERE id >= ${least}") == [("t",)]
        spark.sql("CREATE TEMPORARY VIEW few AS SELECT id FROM ${kind} WHERE id < ${least}")
        spark.conf.set("least", "3")
        assert rows(spark, "SELECT * FROM few") == [(1,)]
        with pytest.raises(SqlSyntaxError, match="endless → endless"):
            spark.sql("DELETE FROM t WHERE n = '${endless}'")
        with session_setting(spark, "spark.sql.variable.substitute", "false"):
            spark.sql("UPDATE t SET n = '${kind}'")
            assert rows(spark, "SELECT DISTINCT n FROM t") == [("${kind}",)]
    finally:
        for key in (*settings, "endless"):
            spark.conf.unset(key)


def test_columns_are_qualified_by_full_names(spark):
    spark.sql(
        "CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, named_struct('t', 2) AS shop"
    )
    assert rows(spark, "SELECT shop.t FROM t") == [(2,)]
    spark.sql("CREATE OR REPLACE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id, 'a' AS n")
    assert rows(spark, "SELECT shop.t.id, spark_catalog.shop.t.n FROM t WHERE Shop.t.id = 1") == [(1, "a")]
    assert rows(spark, "SELECT t.id FROM t TABLESAMPLE (100 PERCENT) WHERE t.id = 1") == [(1,)]
    spark.sql("UPDATE shop.t SET shop.t.n = concat(shop.t.n, 'b') WHERE shop.t.id = 1 AND shop.t.id IN (SELECT 1)")
    spark.sql(
        "MERGE INTO shop.t USING (SELECT 1 AS id) s ON shop.t.id = s.id WHEN MATCHED THEN UPDATE SET shop.t.n = 'c'"
    )
    spark.sql("CREATE VIEW shown AS SELECT id, n FROM t")
    columns = "shop.shown.n, spark_catalog.shop.shown.id"
    assert rows(spark, f"SELECT {columns} FROM shown WHERE shop.shown.id = 1") == [("c", 1)]
    spark.sql("DELETE FROM t WHERE shop.t.id = 1")
    assert rows(spark, "SELECT n FROM t") == []


@pytest.mark.slow
def test_tables_of_the_same_name_in_two_databases(spark):
    spark.sql("CREATE TABLE t (id INT, v INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    spark.sql("CREATE DATABASE other")
    try:
        spark.sql("CREATE TABLE other.t (id INT, v INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
        spark.sql("INSERT INTO other.t VALUES (2, 20)")
        inner = "(SELECT max(other.t.v) FROM other.t WHERE other.t.id = shop.t.id)"
        assert rows(spark, f"SELECT shop.t.id, {inner} FROM shop.t") == [(1, None), (2, 20)]
        with pytest.raises(AnalysisException, match="shop"):
            spark.sql("DELETE FROM shop.t WHERE EXISTS (SELECT 1 FROM other.t WHERE other.t.id = shop.t.id)")
        assert rows(spark, "SELECT id, v FROM t") == [(1, 1), (2, 2)]
        spark.sql(
            "MERGE INTO shop.t USING other.t ON shop.t.id = other.t.id "
            "WHEN MATCHED THEN UPDATE SET shop.t.v = other.t.v + shop.t.v WHEN NOT MATCHED THEN INSERT *"
        )
        assert rows(spark, "SELECT id, v FROM t") == [(1, 1), (2, 22)]
        with pytest.raises(AnalysisException, match=r"t`?\.`?id"):
            spark.sql("MERGE INTO shop.t USING other.t ON t.id = t.id WHEN MATCHED THEN DELETE")
        spark.sql("DELETE FROM shop.t AS s WHERE EXISTS (SELECT 1 FROM other.t WHERE other.t.id = s.id)")
        assert rows(spark, "SELECT id, v FROM t") == [(1, 1)]
        spark.sql("CREATE VIEW p AS SELECT * FROM t")
        spark.sql("CREATE VIEW other.p AS SELECT * FROM other.t")
        views = {
            "over_a_view": "SELECT id, v FROM p",
            "over_a_function": "SELECT id, v FROM hudi_query('t')",
        }
        for name, query in views.items():
            spark.sql(f"CREATE TEMP VIEW {name} AS {query}")
        spark.sql("USE other")
        for name in views:
            assert rows(spark, f"SELECT a.id, p.id FROM {name} a CROSS JOIN p") == [(1, 2)], name
        assert rewrite_query(spark, "SELECT * FROM hudi_query('t')").locations == {find_table(spark, ("t",)).location}
        spark.sql("CREATE VIEW both AS SELECT t.id AS i, o.id AS j FROM shop.t AS t CROSS JOIN t AS o")
        for key, value in OTHER_CATALOG.items():
            spark.conf.set(key, value)
        spark.sql("USE elsewhere")
        assert rows(spark, "SELECT id FROM spark_catalog.shop.p") == [(1,)]
        assert rows(spark, "SELECT i, j FROM spark_catalog.other.both") == [(1, 2)]
    finally:
        spark.sql("USE spark_catalog.shop")
        for key in OTHER_CATALOG:
            spark.conf.unset(key)
        spark.sql("DROP DATABASE other CASCADE")


def test_names_by_identifier_clauses_and_in_double_quotes(spark):
    spark.sql("CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("INSERT INTO IDENTIFIER('shop.t') VALUES (1, 'a'), (2, DEFAULT)")
    spark.sql("UPDATE IDENTIFIER('t') SET name = DEFAULT WHERE id = 1")
    assert rows(spark, "SELECT id FROM IDENTIFIER('t') WHERE name IS NULL") == [(1,), (2,)]
    found = spark.sql("SELECT id FROM IDENTIFIER(:t) WHERE id > :low", args={"t": "t", "low": 1}).collect()
    assert [tuple(row) for row in found] == [(2,)]
    spark.sql("UPDATE IDENTIFIER(:db || '.t') SET name = 'y' WHERE id = 2", {"db": "shop"})
    assert rows(spark, "SELECT name FROM IDENTIFIER(concat('sh', 'op', '.t')) WHERE id = 2") == [("y",)]
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    try:
        spark.sql("""UPDATE "t" SET "name" = 'x' WHERE "id" = 2""")
        assert rows(spark, """SELECT "name" FROM "t" WHERE "id" = 2""") == [("x",)]
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        spark.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")


def test_texts_where_backslashes_are_no_escapes(spark):
    """Files are not skipped by the text that the backslashes would mean elsewhere."""
    stats = "'hoodie.metadata.index.column.stats.enable' = 'true'"
    spark.sql(f"CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id', {stats})")
    with session_setting(spark, "spark.sql.parser.escapedStringLiterals", "true"):
        spark.sql(r"INSERT INTO t VALUES (1, '\n')")
        assert rows(spark, r"SELECT id FROM t WHERE v = '\n'") == [(1,)]


def test_subqueries_and_blobs_in_the_clauses_of_merge(spark):
    spark.sql("CREATE TABLE t (id INT, n INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("CREATE TABLE w (id INT, n INT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    spark.sql("INSERT INTO w VALUES (1, 10), (3, 30)")
    source = "MERGE INTO t USING (SELECT explode(array(1, 2, 3)) AS id) s ON t.id = s.id "
    spark.sql(source + "WHEN MATCHED AND t.n < (SELECT count(*) FROM w) THEN UPDATE SET n = (SELECT max(n) FROM w)")
    assert rows(spark, "SELECT id, n FROM t") == [(1, 30), (2, 2)]
    spark.sql(source + "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, (SELECT min(n) FROM t))")
    assert rows(spark, "SELECT id, n FROM t") == [(1, 30), (2, 2), (3, 2)]
    with pytest.raises(QueryError, match="cannot have the function read_blob"):
        spark.sql("CREATE VIEW v AS SELECT read_blob(b) FROM t")


@pytest.mark.parametrize("clause", ["DEFAULT COLLATION UTF8_LCASE", "WITH SCHEMA EVOLUTION"])
def test_clauses_that_decide_rows_or_columns_of_permanent_views(spark, clause):
    """Spark would follow them; a view of Hudi tables is evaluated here."""
    if spark.version.startswith("3."):
        pytest.skip("Spark 4 has these clauses")
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id")
    with pytest.raises(QueryError, match=r"`v` of Hudi tables cannot have (DEFAULT COLLATION|SCHEMA EVOLUTION)"):
        spark.sql(f"CREATE VIEW v {clause} AS SELECT id, 'a' = 'A' AS same FROM t")
    spark.sql(f"CREATE VIEW v COMMENT '{clause}' AS SELECT id FROM t")
    assert rows(spark, "SELECT id FROM v") == [(1,)]
    spark.sql(f"CREATE VIEW w {clause} AS SELECT 1 AS id")
    assert rows(spark, "SELECT id FROM w") == [(1,)]
    if clause.startswith("WITH"):
        with pytest.raises(QueryError, match="`v` of Hudi tables cannot have SCHEMA EVOLUTION"):
            spark.sql(f"ALTER VIEW v {clause}")
        spark.sql("ALTER VIEW v SET TBLPROPERTIES (note = 'WITH SCHEMA EVOLUTION')")
        spark.sql(f"ALTER VIEW w {clause}")
        spark.sql("ALTER VIEW v WITH schema AS (SELECT 2 AS id) SELECT id, true AS same FROM schema")
        assert rows(spark, "SELECT id FROM v") == [(2,)]


def test_permanent_views_keep_the_settings_with_which_they_were_created(spark):
    query = (
        """SELECT id, hour(at) AS hour, size(CAST(NULL AS ARRAY<INT>)) AS size, "n" AS text FROM {} """
        """WHERE at >= '2024-01-01 09:00:00' ORDER BY 1"""
    )
    zone, names = "spark.sql.session.timeZone", "spark.sql.ansi.doubleQuotedIdentifiers"
    usual = {key: spark.conf.get(key) for key in (zone, "spark.sql.ansi.enabled", names)}
    for table, provider in (("h", "hudi"), ("p", "parquet")):
        spark.sql(
            f"CREATE TABLE {table} USING {provider} AS SELECT 1 AS id, TIMESTAMP'2024-01-01 00:30:00Z' AS at, 'x' AS n"
        )
        spark.sql(f"CREATE VIEW {table}_usual AS {query.format(table)}")
    try:
        for key, value in ((zone, "Asia/Tokyo"), ("spark.sql.ansi.enabled", "true"), (names, "true")):
            spark.conf.set(key, value)
        for table in ("h", "p"):
            spark.sql(f"CREATE VIEW {table}_other AS {query.format(table)}")
        there = {view: rows(spark, f"SELECT * FROM {view}") for view in ("h_usual", "p_usual", "h_other", "p_other")}
    finally:
        for key, value in usual.items():
            spark.conf.set(key, value)
    here = {view: rows(spark, f"SELECT * FROM {view}") for view in there}
    assert here == there
    for suffix, expected in (("usual", []), ("other", [(1, 9, None, "x")])):
        assert here[f"h_{suffix}"] == here[f"p_{suffix}"] == expected


def test_permanent_views_keep_settings_that_the_session_leaves_to_spark(spark):
    usual = str(spark.conf.get(ANSI)).lower()
    with session_setting(spark, ANSI, "false" if usual == "true" else "true"):
        for table, provider in (("h", "hudi"), ("p", "parquet")):
            spark.sql(f"CREATE TABLE {table} USING {provider} AS SELECT 1 AS id")
            spark.sql(f"CREATE VIEW {table}_sizes AS SELECT size(CAST(NULL AS ARRAY<INT>)) AS size FROM {table}")
    spark.conf.unset(ANSI)
    assert rows(spark, "SELECT * FROM h_sizes") == rows(spark, "SELECT * FROM p_sizes")
    assert rows(spark, "SELECT * FROM h_sizes") == [(-1 if usual == "true" else None,)]


def test_double_quotes_in_the_ansi_mode_that_is_the_default_of_spark_4(spark):
    """Texts without it, where files are skipped by them, and names of columns with it."""
    for table, provider in (("h", "hudi"), ("p", "parquet")):
        files = "TBLPROPERTIES ('hoodie.parquet.small.file.limit' = '0')"  # each of one row
        spark.sql(f"CREATE TABLE {table} USING {provider} {files} AS SELECT 1 AS id, 'x' AS a, 'x' AS b")
        spark.sql(f"INSERT INTO {table} VALUES (2, 'b', 'y')")
    spark.conf.unset(ANSI)
    with session_setting(spark, "spark.sql.ansi.doubleQuotedIdentifiers", "true"):
        found = rows(spark, 'SELECT id FROM h WHERE a = "b"')
        assert found == rows(spark, 'SELECT id FROM p WHERE a = "b"')
        assert found == [(2,) if spark.version.startswith("3.") else (1,)]


def test_views_with_other_settings_read_what_was_inserted(spark):
    spark.sql("CREATE TABLE h USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT 1 AS id")
    spark.sql("CREATE TABLE p USING parquet AS SELECT 1 AS id")
    spark.sql("CREATE VIEW v AS SELECT h.id FROM h JOIN p ON h.id = p.id")
    with session_setting(spark, "spark.sql.session.timeZone", "Asia/Tokyo"):
        assert rows(spark, "SELECT * FROM v") == [(1,)]
        for table in ("h", "p"):
            spark.sql(f"INSERT INTO {table} VALUES (2)")
        assert rows(spark, "SELECT * FROM v") == [(1,), (2,)]
