"""Scripts of Spark 4 with Hudi tables, and EXECUTE IMMEDIATE."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException

from pyhudi.errors import QueryError, SqlSyntaxError, UnsupportedTableError
from pyhudi.spark.session_settings import session_setting
from tests.spark.sql.ride_tables import rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")


REFUSED_SCRIPTS = [  # with a label that ends nothing
    "SELECT id FROM v",
    "IF (SELECT count(*) FROM t) = 0 THEN SELECT 1; END IF",
    "FOR r AS SELECT id FROM t DO SELECT r.id; END FOR",
    "CREATE TABLE u (id INT) USING hudi",
    "INSERT INTO p SELECT id FROM t",
    "CALL show_commits('t')",
    "SHOW TABLE EXTENDED LIKE 't' PARTITION (p = 1)",
    "EXECUTE IMMEDIATE 'DELETE FROM t'",
    "DELETE FROM t; END IF",
]


def test_invalid_scripts_are_refused_before_they_begin(spark):
    spark.sql("CREATE TABLE t (id INT) USING hudi")
    spark.sql("CREATE TABLE p (id INT) USING parquet")
    spark.sql("CREATE VIEW v AS SELECT id FROM t")
    for part in REFUSED_SCRIPTS:
        with pytest.raises(UnsupportedTableError, match="nothing of it has run"):
            spark.sql(f"BEGIN INSERT INTO p VALUES (1); {part}; LEAVE nothing; END")
    assert rows(spark, "SELECT id FROM p") == []


SCRIPT = """
BEGIN
  DECLARE n, total INT DEFAULT 0;
  turns: WHILE n < 9 DO
    SET n = n + 1;
    IF n = 2 THEN ITERATE turns; ELSEIF (SELECT count(*) FROM t) > 2 THEN LEAVE turns; END IF;
    INSERT INTO t VALUES (n, 'w');
  END WHILE turns;
  FOR r AS SELECT id, name FROM t ORDER BY id DO
    SET total = total * 10 + r.id;
    UPDATE t SET name = r.name || n WHERE id = r.id;
  END FOR;
  REPEAT DELETE FROM t WHERE id = n - 1; SET n = n + 1; UNTIL n > 5 END REPEAT;
  CASE (SELECT count(*) FROM t) WHEN 1 THEN SELECT 'one'; WHEN 2 THEN SELECT total AS found; END CASE;
  INSERT INTO p SELECT id FROM t;
  SHOW TABLES;
END
"""


def test_scripts_and_statements_in_texts(spark, monkeypatch):
    if spark.version.startswith("3"):
        return  # it has none
    spark.sql("CREATE TABLE t (id INT, name STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("CREATE TABLE p (id INT) USING parquet")
    result = spark.sql(SCRIPT)
    assert (result.columns, result.collect()) == (["found"], [(134,)])
    assert rows(spark, "SELECT id, name FROM t") == [(1, "w5"), (3, "w5")]
    assert rows(spark, "SELECT id FROM p") == [(1,), (3,)]
    with pytest.raises(AnalysisException):
        spark.sql("SELECT total")
    nested = """BEGIN
        DECLARE seen STRING DEFAULT '';
        FOR outside AS SELECT id, name FROM t ORDER BY id DO
            BEGIN DECLARE name STRING DEFAULT '.'; SET seen = seen || name; END;
            FOR SELECT upper(name) AS id FROM t ORDER BY 1 LIMIT 1 DO SET seen = seen || id || outside.id; END FOR;
            SET seen = seen || id || name;
        END FOR;
        SELECT seen;
    END"""
    assert rows(spark, nested) == [(".W511w5.W533w5",)]
    repeated_hour = """BEGIN
        DECLARE seconds STRING DEFAULT '';
        FOR r AS SELECT array(timestamp_seconds(1729988400 + 1200 * id)) AS times FROM t ORDER BY id DO
            SET seconds = seconds || unix_seconds(times[0]) || ' ' || unix_seconds(r.times[0]) || ';';
        END FOR;
        SELECT seconds;
    END"""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert rows(spark, repeated_hour) == [("1729989600 1729989600;1729992000 1729992000;",)]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert rows(spark, "BEGIN SELECT count(*) FROM p; INSERT INTO p SELECT id + 3 FROM t; END") == [(2,)]
    assert rows(spark, "BEGIN DECLARE x STRING DEFAULT '2100-01-01'; SELECT id FROM t TIMESTAMP AS OF x; END") == [
        (1,),
        (3,),
    ]
    here = spark.catalog.currentDatabase()
    spark.sql("USE default")
    assert rows(spark, f"BEGIN USE {here}; UPDATE t SET name = 'u' WHERE id = 3; SELECT name FROM t; END") == [
        ("u",),
        ("w5",),
    ]
    spark.sql("CREATE TEMPORARY VIEW w AS SELECT 1 AS id")
    assert rows(spark, "BEGIN ALTER VIEW w AS SELECT id + 1 AS id FROM t; SELECT id FROM w; END") == [(2,), (4,)]
    spark.sql("DROP VIEW w")
    for script, cause in {
        "SELECT raise_error('stop'); DELETE FROM t": "stop",
        "DELETE FROM t; UPDATE t WHERE id = 1": "expected SET",
        "FOR SELECT id, name AS id FROM t DO DELETE FROM t; END FOR": "of another column",
    }.items():
        with pytest.raises(Exception, match=cause):
            spark.sql(f"BEGIN {script}; END")
    assert spark.table("t").count() == 2
    spark.sql("DECLARE OR REPLACE VARIABLE text STRING DEFAULT 'SELECT id FROM t'")
    with pytest.raises(QueryError, match="the session has a variable 'text'"):
        spark.sql("BEGIN DECLARE text INT; DELETE FROM t; END")
    with pytest.raises(QueryError, match="no BOOLEAN but int"):
        spark.sql("BEGIN IF 1 THEN DELETE FROM t; END IF; END")
    script = (
        "BEGIN DECLARE n INT DEFAULT :n; INSERT INTO p SELECT id + n FROM {new}; SELECT id FROM t WHERE id = :n; END"
    )
    assert rows(spark, script, args={"n": 1}, new=spark.range(-3, -2)) == [(1,)]
    assert rows(spark, "SELECT id FROM p WHERE id < 0") == [(-2,)]
    with pytest.raises(QueryError, match=r"the parameter :n is .*single values"):
        spark.sql("BEGIN DELETE FROM t; SELECT :n; END", args={"n": [1]})
    assert spark.sql("BEGIN INSERT INTO t VALUES (4, 'x'); END").columns == []
    spark.sql("BEGIN DECLARE t INT DEFAULT 7; INSERT INTO p VALUES (t); END")  # Spark's own
    spark.sql("EXECUTE IMMEDIATE 'INSERT INTO t VALUES (6, NULL)'")
    assert rows(spark, "EXECUTE IMMEDIATE concat(text, ' WHERE id > 3')") == [(4,), (6,)]
    assert rows(spark, "EXECUTE IMMEDIATE 'SELECT id + ? FROM p WHERE id > 6' USING 1") == [(8,)]
    spark.sql("DROP TEMPORARY VARIABLE text")


def test_statements_in_texts_with_arguments_and_variables(spark):
    if spark.version.startswith("3"):
        return  # it has none
    spark.sql("CREATE TABLE t (id INT, name STRING, at TIMESTAMP) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    for variable in ("id INT DEFAULT 1", "name STRING", "a INT", "b STRING"):
        spark.sql(f"DECLARE OR REPLACE VARIABLE {variable}")
    spark.sql(
        "EXECUTE IMMEDIATE 'INSERT INTO t VALUES (?, ?, ?), (-2, NULL, NULL)' "
        "USING session.id, 'it''s :id ?', TIMESTAMP'2024-10-27 00:30:00 UTC'"
    )
    assert rows(spark, "SELECT id, name, unix_seconds(at) FROM t") == [
        (-2, None, None),
        (1, "it's :id ?", 1729989000),
    ]
    # a column has no name of an argument
    spark.sql("EXECUTE IMMEDIATE 'UPDATE t SET name = :name WHERE id = :id' USING (-2 AS id, 'two' AS name)")
    spark.sql("EXECUTE IMMEDIATE 'DELETE FROM t WHERE id = :id' USING id")
    assert rows(spark, "SELECT id, name FROM t") == [(-2, "two")]
    by_name = "EXECUTE IMMEDIATE 'SELECT name FROM IDENTIFIER(:tab) WHERE array_contains(:ids, id)'"
    assert rows(spark, f"{by_name} USING 't' AS tab, array(-2, CAST(NULL AS INT)) AS ids") == [("two",)]
    assert rows(spark, "EXECUTE IMMEDIATE ? USING ?", args=["SELECT id + ? FROM t", 5]) == [(3,)]

    def variables():
        return spark.sql("SELECT session.a, session.b").first()

    spark.sql("EXECUTE IMMEDIATE 'SELECT id + :more, name FROM t -- all' INTO a, session.b USING 1 AS more")
    assert variables() == (-1, "two")
    spark.sql("EXECUTE IMMEDIATE 'SELECT id, name FROM t WHERE id > 0;' INTO a, b")
    assert variables() == (None, None)
    spark.sql(
        "BEGIN DECLARE n INT DEFAULT 6; DECLARE total BIGINT; INSERT INTO t SELECT 5, 'five', NULL; "
        "EXECUTE IMMEDIATE 'SELECT sum(id + ?) FROM t' INTO total USING n; SET VARIABLE a = total; END"
    )
    assert variables() == (15, None)
    script = "BEGIN SELECT 1; EXECUTE IMMEDIATE 'SELECT id FROM t WHERE id > ?' USING 4; {} END"
    assert rows(spark, script.format("EXECUTE IMMEDIATE 'SHOW TABLES';")) == [(5,)]
    assert rows(spark, script.format("EXECUTE IMMEDIATE concat('SELECT', ' 2');")) == [(2,)]
    computed = (
        "BEGIN DECLARE q STRING DEFAULT 'SELECT max(id) '; SET q = q || 'FROM ' || '{}'; EXECUTE IMMEDIATE q; END"
    )
    for name in ("T", f"{spark.catalog.currentDatabase()}.t"):
        assert rows(spark, computed.format(name)) == [(5,)]
    assert rows(spark, computed.format("range(3)")) == [(2,)]
    for statement, cause in {
        "'DELETE FROM t' INTO a": "takes a query",
        "'SELECT id FROM t' INTO a": "(?i)too.*many.*rows|more than one row",
        "'SELECT id FROM t WHERE id = 5' INTO a, b": "(?i)mismatch",
        "'DELETE FROM t WHERE id IN (?, ?)' USING 5": "2 parameters, and there are 1 values",
        "'DELETE FROM t WHERE id = :x' USING 5 AS x, 6 AS x": "two arguments named 'x'",
        "'DELETE FROM t WHERE id = ?' USING parse_json('1')": "variant",
        "'BEGIN DELETE FROM t; END'": "no script",
        "'BEGIN SELECT 1; END'": "SQL_SCRIPT_IN_EXECUTE_IMMEDIATE",
    }.items():
        with pytest.raises(Exception, match=cause):
            spark.sql(f"EXECUTE IMMEDIATE {statement}")
    assert spark.table("t").count() == 2
    # values that Python does not have
    values = "DATE'-0044-03-15', TIMESTAMP_NTZ'-0044-03-15 12:00:00', array(DATE'+12024-01-01'), INTERVAL '-1' DAY"
    years = "year(?), hour(?), year(?[0]), extract(DAY FROM ?)"
    for source in ("t WHERE id = 5", "range(1)"):
        found = spark.sql(f"EXECUTE IMMEDIATE 'SELECT {years} FROM {source}' USING {values}").collect()
        assert [tuple(row) for row in found] == [(-44, 12, 12024, -1)]
    spark.sql("EXECUTE IMMEDIATE 'DELETE FROM t WHERE at < current_date - ?' USING INTERVAL 1 DAY")
    assert spark.table("t").count() == 2  # the times are NULL
    for variable in ("id", "name", "a", "b"):
        spark.sql(f"DROP TEMPORARY VARIABLE {variable}")


HANDLERS_AND_CURSORS = [
    "DECLARE x INT DEFAULT 0; DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO SELECT 'divided', x; SET x = 1; "
    "INSERT INTO {t} VALUES (1); SELECT 1 / (id - 1) FROM {t}; INSERT INTO {t} VALUES (2)",
    "DECLARE n INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR SQLEXCEPTION, NOT FOUND SET n = n + 1; SELECT 1 / 0; "
    "INSERT INTO {t} SELECT CAST('x' AS INT); IF 1 / 0 = 1 THEN SET n = 50; END IF; "
    "WHILE 1 / 0 = 1 DO SET n = 60; END WHILE; CASE 1 / 0 WHEN 1 THEN SET n = 70; END CASE; "
    "FOR SELECT 1 / 0 AS q DO SET n = 80; END FOR; INSERT INTO {t} SELECT n; SELECT n, id FROM {t}",
    "BEGIN DECLARE EXIT HANDLER FOR SQLSTATE VALUE '22012' BEGIN INSERT INTO {t} VALUES (1); SELECT 8; END; "
    "DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 9; SELECT 1 / 0; END; INSERT INTO {t} VALUES (5)",
    "DECLARE s STRING DEFAULT ''; WHILE length(s) < 8 DO BEGIN DECLARE EXIT HANDLER FOR SQLSTATE '22012' "
    "SET s = s || 'h'; SET s = s || 'b'; INSERT INTO {t} SELECT int(1 div (length(s) % 3)); SET s = s || 'n'; END; "
    "END WHILE; SELECT s, count(*) FROM {t}",
    "DECLARE EXIT HANDLER FOR NOT FOUND SELECT 'no'; DECLARE EXIT HANDLER FOR SQLSTATE '99999' SELECT 0; "
    "INSERT INTO {t} VALUES (1); SELECT 1 / 0",
    "DECLARE x INT DEFAULT 1 / 0; DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 'declared'; SELECT id FROM {t}",
    "DECLARE s STRING DEFAULT ''; BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN DECLARE y INT DEFAULT 3; "
    "SET s = s || y; END; FOR r AS SELECT id FROM range(3) DO SET s = s || id; "
    "INSERT INTO {t} SELECT int(1 div (1 - r.id)); END FOR; END; SELECT s, id FROM {t}",
    "DECLARE n INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR UNRESOLVED_COLUMN BEGIN DECLARE EXIT HANDLER FOR "
    "DIVIDE_BY_ZERO SET n = n + 10; SELECT 1 / 0; SET n = 100; END; SELECT nothing FROM {t}; SET n = n + 1; "
    "INSERT INTO {t} SELECT n; SELECT id FROM {t}",
    "DECLARE x, n INT DEFAULT 0; DECLARE done BOOLEAN DEFAULT false; DECLARE r STRUCT<a: INT, b: STRING>; "
    "DECLARE c CURSOR FOR SELECT id + n FROM {t} ORDER BY id; DECLARE d INSENSITIVE CURSOR FOR SELECT n + ?, 'b' "
    "FOR READ ONLY; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = true; INSERT INTO {t} VALUES (1), (2); "
    "SET n = 10; OPEN c; INSERT INTO {t} VALUES (3); l: WHILE NOT done DO FETCH NEXT FROM c INTO x; "
    "IF NOT done THEN SET n = n + x; END IF; END WHILE; CLOSE c; OPEN d USING x; FETCH d INTO r; FETCH FROM d INTO r; "
    "SELECT n, x, r.a, r.b, count(*) FROM {t}",
    "DECLARE x INT DEFAULT 7; DECLARE c CURSOR FOR SELECT id FROM {t}; OPEN c; FETCH c INTO x; SELECT x; "
    "FETCH c INTO x",
    "DECLARE x INT; DECLARE c CURSOR FOR SELECT 1; DECLARE EXIT HANDLER FOR CURSOR_NOT_OPEN SELECT x, id FROM {t}; "
    "OPEN c; FETCH c INTO x; CLOSE c; INSERT INTO {t} VALUES (1); FETCH c INTO x; SELECT 9",
    "DECLARE c CURSOR FOR SELECT id FROM {t}; OPEN c; INSERT INTO {t} VALUES (1); OPEN c",
    "DECLARE x, y INT; DECLARE c CURSOR FOR SELECT 1; INSERT INTO {t} VALUES (1); OPEN c; FETCH c INTO x, y",
]


def test_handlers_and_cursors_of_scripts_run_as_in_spark(spark):
    if spark.version.startswith("3"):
        return  # it has none
    with (
        session_setting(spark, "spark.sql.scripting.continueHandlerEnabled", "true"),
        session_setting(spark, "spark.sql.scripting.cursorEnabled", "true"),
    ):
        differing = {}
        for number, script in enumerate(HANDLERS_AND_CURSORS):
            found = []
            for provider in ("hudi", "parquet"):
                table = f"{provider}_{number}"
                spark.sql(f"CREATE TABLE {table} (id INT) USING {provider}")
                try:
                    found.append(rows(spark, f"BEGIN {script.format(t=table)}; END"))
                except (PySparkException, QueryError):
                    found.append("failed")
                found.append(rows(spark, f"SELECT id FROM {table}"))
            if found[:2] != found[2:]:
                differing[script] = found
    assert not differing, differing
    spark.sql("CREATE TABLE t (id INT) USING hudi")
    script = "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION INSERT INTO t VALUES (0); {}; SELECT count(*) FROM t; END"
    failing = "UPDATE t SET nothing = 1; CALL show_commits(table => 'nothing'); DELETE FROM t WHERE id = 'x'"
    assert rows(spark, script.format(failing)) == [(3,)]
    inner = "BEGIN DECLARE NOTHING CONDITION; END; BEGIN DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO, NOTHING SELECT 1; END"
    with pytest.raises(SqlSyntaxError, match="there is no condition NOTHING"):
        spark.sql(f"BEGIN DELETE FROM t; {inner}; END")
    assert spark.table("t").count() == 3


_FAILING_HANDLER = (
    "BEGIN DECLARE {0} HANDLER FOR SQLEXCEPTION SET s = s || 'O'; SET s = s || '1'; BEGIN DECLARE {1} HANDLER FOR "
    "DIVIDE_BY_ZERO BEGIN SET s = s || 'i'; SELECT * FROM nowhere; SET s = s || 'j'; END; SELECT 1 div 0; "
    "SET s = s || '2'; END; SET s = s || '3'; END; "
)
SCOPES = {
    "labels, and variables that hide others": "DECLARE s STRING DEFAULT ''; l: BEGIN DECLARE x INT DEFAULT 1; "
    "DECLARE y STRUCT<a: INT> DEFAULT struct(8); m: BEGIN DECLARE x INT DEFAULT x + 1; SET l.x = l.x + 10; "
    "SET s = s || x || l.x || m.x || l.y.a || y.a; BEGIN DECLARE x STRING DEFAULT x || '!'; SET s = s || x; "
    "END; SET x = 5; END; INSERT INTO {t} SELECT l.x; SET s = s || ',' || x || l.x; SET x = DEFAULT; "
    "SET s = s || x; IF l.x = 1 THEN EXECUTE IMMEDIATE 'SELECT max(id) + ? FROM {t}' INTO l.x USING l.x; END IF; "
    "SET s = s || x; END; SELECT s, id FROM {t} AS l WHERE l.id > 3",
    "loops": "DECLARE s STRING DEFAULT ''; DECLARE x INT DEFAULT 1; WHILE x < 3 DO BEGIN DECLARE y, x INT DEFAULT 5; "
    "SET y = y + x; SET s = s || y; SET x = 100; END; SET x = x + 1; END WHILE; b: BEGIN DECLARE x INT DEFAULT 2; "
    "LEAVE b; END; SELECT s, x, count(*) FROM {t}",
    "handlers see their block": "DECLARE x INT DEFAULT 1; DECLARE s STRING DEFAULT ''; DECLARE CONTINUE HANDLER FOR "
    "DIVIDE_BY_ZERO BEGIN DECLARE y INT DEFAULT 9; SET x = x + 10; SET s = s || x || y; END; "
    "BEGIN DECLARE x INT DEFAULT 3; DECLARE y STRING DEFAULT 'w'; SELECT 1 div 0; SET s = s || ',' || x || y; "
    "FOR x AS SELECT 4 AS y DO SELECT 1 div 0; SET s = s || x.y; END FOR; END; SET s = s || ',' || x; "
    "SELECT s, count(*) FROM {t}",
    "errors of handlers": "DECLARE s STRING DEFAULT ''; "
    + "".join(_FAILING_HANDLER.format(*kinds) for kinds in product(("EXIT", "CONTINUE"), repeat=2))
    + "SELECT s, count(*) FROM {t}",
    "cursors": "l: BEGIN DECLARE s STRING DEFAULT ''; DECLARE x INT DEFAULT 1; DECLARE k CURSOR FOR SELECT id + l.x "
    "FROM {t} WHERE id < ? ORDER BY id; OPEN l.k USING l.x + 2; FETCH l.k INTO x; SET s = s || x; m: BEGIN "
    "DECLARE K CURSOR FOR SELECT x * 10; OPEN k; FETCH L.k INTO x; SET s = s || x; FETCH m.k INTO l.x; "
    "SET s = s || x; END; CLOSE k; SELECT s; END",
    "rows of FOR": "DECLARE s STRING DEFAULT ''; DECLARE id INT DEFAULT 7; FOR r AS SELECT id, id * 2 AS d FROM {t} "
    "WHERE id < 3 ORDER BY id DO SET id = id * 10; SET s = s || id || r.id || d || r.d || (SELECT count(*) FROM {t} "
    "WHERE id > r.id); END FOR; SET s = s || id; SELECT s",
    "default values": "DECLARE a INT DEFAULT 1; DECLARE b INT = a + 1; DECLARE c STRING; DECLARE s STRING DEFAULT ''; "
    "SET a = 10; SET b = DEFAULT; SET c = 'x'; SET s = s || b; l: BEGIN DECLARE a INT DEFAULT a + 1; DECLARE d INT "
    "DEFAULT l.a + 1; SET b = DEFAULT; SET s = s || ',' || b; SET a = 7; SET l.a = DEFAULT; SET c = DEFAULT; "
    "SET d = DEFAULT; SET s = s || ',' || a || d || ifnull(c, 'none'); END; SET a = DEFAULT; "
    "SELECT s, a, count(*) FROM {t}",
    "conditions": "DECLARE other CONDITION; DECLARE divide_by_zero CONDITION FOR SQLSTATE VALUE '4200A'; DECLARE "
    "EXIT HANDLER FOR divide_by_zero, Other SELECT count(*) FROM {t}; SELECT 1 div 0",
    "the value of CASE": "DECLARE s STRING DEFAULT ''; CASE 5 WHEN 1 THEN SET s = 'x'; END CASE; CASE (SELECT max(id) "
    "FROM {t} WHERE id < 3) WHEN 2 THEN SET s = s || 'two'; WHEN 1 / 0 THEN SET s = 'x'; END CASE; SELECT s",
}


def test_scopes_of_scripts_are_those_of_spark(spark):
    if spark.version.startswith("3"):
        return  # it has none
    with (
        session_setting(spark, "spark.sql.scripting.continueHandlerEnabled", "true"),
        session_setting(spark, "spark.sql.scripting.cursorEnabled", "true"),
    ):
        for provider in ("hudi", "parquet"):
            spark.sql(f"CREATE TABLE {provider} (id INT) USING {provider}")
            spark.sql(f"INSERT INTO {provider} VALUES (1), (2), (3)")
        for what, script in SCOPES.items():
            found, expected = (rows(spark, f"BEGIN {script.format(t=name)}; END") for name in ("hudi", "parquet"))
            assert found == expected, what
        # in the handler of 4.3 it is a variable of the block around that is in scope
        own = (
            "DECLARE x INT; BEGIN DECLARE x INT DEFAULT 2; DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT x, id FROM hudi"
        )
        assert rows(spark, f"BEGIN {own} WHERE id = 1; SELECT 1 / 0; END; END") == [(2, 1)]
    with pytest.raises(ParseException):
        spark.sql("BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION DELETE FROM hudi; SELEC 1; END")
    assert spark.table("hudi").count() == 4


def test_values_in_scripts_are_evaluated_once(spark, tmp_path):
    if spark.version.startswith("3"):
        return  # it has none
    spark.sql("CREATE TABLE t (id INT) USING hudi")

    def noted(text):
        with (tmp_path / "calls").open("a") as calls:
            calls.write(f"{text}\n")
        return text

    spark.udf.register("noted", noted)
    script = (
        "BEGIN INSERT INTO t VALUES (4); EXECUTE IMMEDIATE noted('SELECT id FROM t'); CASE noted('c') "
        "WHEN 'a' THEN DELETE FROM t; WHEN 'b' THEN DELETE FROM t; END CASE; EXECUTE IMMEDIATE noted('SHOW TABLES'); "
        "END"
    )
    assert rows(spark, script) == [(4,)]
    assert (tmp_path / "calls").read_text().splitlines() == ["SELECT id FROM t", "c", "SHOW TABLES"]
    spark.sql("DROP TEMPORARY FUNCTION noted")


def test_scripts_of_one_session_wait_for_each_other(spark):
    if spark.version.startswith("3"):
        return  # it has none
    spark.sql("CREATE TABLE t (id INT) USING hudi")
    script = "BEGIN DECLARE n INT DEFAULT {0}; INSERT INTO t VALUES (n); SELECT n; END"
    with ThreadPoolExecutor(2) as threads:
        results = threads.map(lambda number: rows(spark, script.format(number)), (1, 2))
    assert list(results) == [[(1,)], [(2,)]]
    assert rows(spark, "SELECT id FROM t") == [(1,), (2,)]
