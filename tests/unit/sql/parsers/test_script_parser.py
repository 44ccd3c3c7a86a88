"""Scripts of Spark 4: which statements, queries and conditions they have."""

from __future__ import annotations

import pytest

from pyhudi.sql.parsers.statement_parser import parse
from pyhudi.sql.statements import ExecuteImmediate, Script

pytest.importorskip("sqlglot")

SCRIPT = """
outer: BEGIN
  DECLARE x INT DEFAULT (SELECT max(i) FROM t);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION, NOT FOUND BEGIN DELETE FROM a; END;
  DECLARE CONTINUE HANDLER FOR SQLSTATE '22012' SET y = 1;
  DECLARE rows CURSOR FOR SELECT c FROM t;
  IF CASE WHEN x = 1 THEN true ELSE false END THEN INSERT INTO t SELECT CASE WHEN a THEN 1 END FROM u;
  ELSEIF x > 1 THEN SELECT 2;
  ELSE DELETE FROM t;
  END IF;
  inner: WHILE (SELECT count(*) FROM t) < 3 DO SET x = x + 1; LEAVE inner; END WHILE inner;
  FOR r AS SELECT i FROM t DO SELECT r.i; END FOR;
  FOR SELECT j FROM t DO SELECT j; END FOR;
  REPEAT SET VAR x = x - 1; UNTIL x < 0 END REPEAT;
  CASE x WHEN 1 THEN SELECT 3; ELSE SELECT 4; END CASE;
  CASE WHEN x = 5 THEN CALL show_commits('t'); END CASE;
  LOOP EXECUTE IMMEDIATE 'DELETE FROM t'; END LOOP;
  OPEN rows;
  BEGIN NOT ATOMIC SELECT 'a;b'; END;
END outer
"""
PARTS = [
    "DECLARE x INT DEFAULT (SELECT max(i) FROM t)",
    "DELETE FROM a",
    "SET VARIABLE y = 1",
    "SELECT c FROM t",
    "SELECT CASE WHEN x = 1 THEN true ELSE false END",
    "INSERT INTO t SELECT CASE WHEN a THEN 1 END FROM u",
    "SELECT x > 1",
    "SELECT 2",
    "DELETE FROM t",
    "SELECT (SELECT count(*) FROM t) < 3",
    "SET VARIABLE x = x + 1",
    "SELECT i FROM t",
    "SELECT r.i",
    "SELECT j FROM t",
    "SELECT j",
    "SET VAR x = x - 1",
    "SELECT x < 0",
    "SELECT x",
    "SELECT 1",
    "SELECT 3",
    "SELECT 4",
    "SELECT x = 5",
    "CALL show_commits('t')",
    "EXECUTE IMMEDIATE 'DELETE FROM t'",
    "SELECT 'a;b'",
]


def test_parts_of_a_script():
    script = parse(SCRIPT)
    assert isinstance(script, Script)
    assert list(script.parts) == PARTS


@pytest.mark.parametrize(
    ("text", "parts"),
    [("BEGIN END", []), ("begin select 1; end;", ["select 1"]), ("BEGIN SHOW VIEWS; END", ["SHOW VIEWS"])],
)
def test_short_scripts(text, parts):
    assert list(parse(text).parts) == parts


def test_statements_that_are_texts():
    assert parse("EXECUTE IMMEDIATE 'SELECT ?' INTO x USING 1") == ExecuteImmediate("'SELECT ?'", "INTO x USING 1")
    assert parse("EXECUTE IMMEDIATE concat(q, ' FROM t')") == ExecuteImmediate("concat(q, ' FROM t')")
    assert parse("EXECUTE something") is None
