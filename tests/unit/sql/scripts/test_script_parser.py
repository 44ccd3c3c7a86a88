"""Scripts of Spark 4: which statements, queries and conditions they have."""

from __future__ import annotations

import pytest

from pyhudi.sql.parsers.statement_parser import parse
from pyhudi.sql.scripts.script_nodes import (
    Assign,
    Block,
    CloseCursor,
    Declare,
    DeclareCursor,
    FetchCursor,
    For,
    Handler,
    If,
    Jump,
    Loop,
    OpenCursor,
    Run,
    Script,
    nodes_of,
)
from pyhudi.sql.statements import ExecuteImmediate

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
    [
        ("BEGIN END", []),
        ("begin select 1; end;", ["select 1"]),
        ("BEGIN SHOW VIEWS; END", ["SHOW VIEWS"]),
        ("BEGIN IF :p > 0 THEN SELECT :q FROM t; END IF; END", ["SELECT :p > 0", "SELECT :q FROM t"]),
    ],
)
def test_short_scripts(text, parts):
    assert list(parse(text).parts) == parts


TREES = {
    "SELECT 1; BEGIN NOT ATOMIC SHOW VIEWS; END": (Run("SELECT 1"), Block((Run("SHOW VIEWS"),))),
    "DECLARE x INT; DECLARE VARIABLE a, b = 'x;y'; SET (a, b) = (SELECT 1, 2)": (
        Declare(("x",), "INT"),
        Declare(("a", "b"), "= 'x;y'"),
        Assign("(a, b) = (SELECT 1, 2)"),
    ),
    "SET VAR x = 1; SET VARIABLE (x) = (SELECT 2); SET var = 3": (
        Assign("x = 1"),
        Assign("(x) = (SELECT 2)"),
        Assign("var = 3"),
    ),
    "IF CASE WHEN x THEN true END THEN SELECT 1; SELECT 2; ELSEIF y THEN DELETE FROM t; END IF": (
        If((("CASE WHEN x THEN true END", (Run("SELECT 1"), Run("SELECT 2"))), ("y", (Run("DELETE FROM t"),)))),
    ),
    "CASE x + 1 WHEN 1 THEN SELECT 1; ELSE SELECT 2; END CASE": (
        If((("1", (Run("SELECT 1"),)),), (Run("SELECT 2"),), "x + 1"),
    ),
    "CASE WHEN x THEN SELECT 1; END CASE": (If((("x", (Run("SELECT 1"),)),)),),
    "Inner: WHILE x DO LEAVE INNER; END WHILE inner": (Loop((Jump("LEAVE", "inner"),), "inner", condition="x"),),
    "l: REPEAT ITERATE l; UNTIL x END REPEAT": (Loop((Jump("ITERATE", "l"),), "l", until="x"),),
    "b: BEGIN l: LOOP LEAVE b; END LOOP; END b": (Block((Loop((Jump("LEAVE", "b"),), "l"),), "b"),),
    "FOR r AS SELECT i FROM t DO SELECT r.i; END FOR": (For("SELECT i FROM t", (Run("SELECT r.i"),), variable="r"),),
    "l: FOR SELECT i FROM t DO SELECT i; END FOR l": (For("SELECT i FROM t", (Run("SELECT i"),), "l"),),
    "DECLARE C ASENSITIVE CURSOR FOR SELECT 1 AS `read` FOR READ ONLY; DECLARE d CURSOR FOR SELECT :x; OPEN c; "
    "OPEN d USING 1 AS x, (2); FETCH c INTO x; FETCH NEXT FROM `c` INTO a, session.b; FETCH FROM d INTO x; CLOSE c": (
        DeclareCursor("c", "SELECT 1 AS `read`"),
        DeclareCursor("d", "SELECT :x"),
        OpenCursor(("c",)),
        OpenCursor(("d",), "1 AS x, (2)"),
        FetchCursor(("c",), ("x",)),
        FetchCursor(("c",), ("a", "session.b")),
        FetchCursor(("d",), ("x",)),
        CloseCursor(("c",)),
    ),
    "L: BEGIN DECLARE c CURSOR FOR SELECT 1; BEGIN DECLARE C CURSOR FOR SELECT 2; OPEN l.C; FETCH l.c INTO l.x; END; "
    "END": (
        Block(
            (
                DeclareCursor("c", "SELECT 1"),
                Block((DeclareCursor("c", "SELECT 2"), OpenCursor(("l", "c")), FetchCursor(("l", "c"), ("l.x",)))),
            ),
            "l",
        ),
    ),
    "DECLARE x INT; BEGIN DECLARE X INT; SELECT x; END; l: BEGIN SELECT l.x; END": (
        Declare(("x",), "INT"),
        Block((Declare(("X",), "INT"), Run("SELECT x"))),
        Block((Run("SELECT l.x"),), "l"),
    ),
    "EXECUTE IMMEDIATE 'SELECT x INTO y'": (Run("EXECUTE IMMEDIATE 'SELECT x INTO y'"),),
    "EXECUTE IMMEDIATE q INTO x USING 'a'": (Run("EXECUTE IMMEDIATE q INTO x USING 'a'"),),
}


@pytest.mark.parametrize("text", TREES)
def test_trees(text):
    assert parse(f"BEGIN {text}; END").body == Block(TREES[text])


@pytest.mark.parametrize(
    "text",
    [
        "DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 1; DECLARE x INT",
        "DECLARE EXIT HANDLER FOR A SELECT 1; DECLARE EXIT HANDLER FOR a SELECT 2",
        "DECLARE EXIT HANDLER FOR NOT FOUND, A SELECT 1",
        "DECLARE EXIT HANDLER FOR SQLEXCEPTION IF x THEN SELECT 1; END IF",
        "DECLARE UNDO HANDLER FOR SQLEXCEPTION SELECT 1",
        "DECLARE EXIT HANDLER FOR SQLSTATE 22012 SELECT 1",
        "l: LOOP BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION LEAVE l; END; END LOOP",
        "DECLARE c CONDITION FOR SQLSTATE '02'",
        "DECLARE c CONDITION FOR SQLSTATE '00123'",
        "DECLARE c CONDITION FOR SQLSTATE 12345",
        "DECLARE c CONDITION; DECLARE C CONDITION",
        "DECLARE c, d CONDITION",
        "DECLARE c CURSOR FOR",
        "DECLARE c, d CURSOR FOR SELECT 1",
        "DECLARE c CURSOR FOR SELECT 1; DECLARE C CURSOR FOR SELECT 2",
        "l: BEGIN DECLARE c CURSOR FOR SELECT 1; END; OPEN l.c",
        "l: BEGIN DECLARE c CURSOR FOR SELECT 1; OPEN m.c; END",
        "DECLARE c CURSOR FOR SELECT 1; FETCH c",
        "DECLARE c CURSOR FOR SELECT 1; OPEN c USING",
        "DECLARE c CURSOR FOR SELECT 1; CLOSE c d",
        "BEGIN DECLARE c CURSOR FOR SELECT 1; END; OPEN c",
        "OPEN c",
        "SIGNAL c",
        "SELECT 1; DECLARE x INT",
        "DECLARE x INT; DECLARE X INT",
        "l: BEGIN L: LOOP LEAVE l; END LOOP; END",
        "LEAVE l",
        "l: BEGIN ITERATE l; END",
        "l: SELECT 1",
        "IF x THEN SELECT 1; END",
        "IF THEN SELECT 1; END IF",
        "CASE x END CASE",
        "SELECT 1; END; SELECT 2",
        "SELECT 1;; SELECT 2",
    ],
)
def test_what_only_spark_can_run_has_no_tree(text):
    assert parse(f"BEGIN {text}; END").body is None


def test_handlers():
    block = parse(
        "BEGIN DECLARE x INT; DECLARE EXIT HANDLER FOR sqlexception, NOT FOUND SET x = 1; DECLARE CONTINUE HANDLER FOR "
        "SQLSTATE VALUE '2200f', Divide_By_Zero, A.B BEGIN DECLARE y INT; SELECT y; END; SELECT 2; END"
    ).body
    inner = Block((Declare(("y",), "INT"), Run("SELECT y")))
    assert block == Block(
        (Declare(("x",), "INT"), Run("SELECT 2")),
        handlers=(
            Handler(frozenset({"SQLEXCEPTION", "NOT FOUND"}), Assign("x = 1")),
            Handler(frozenset({"SQLSTATE 2200F", "DIVIDE_BY_ZERO", "A.B"}), inner, continues=True),
        ),
    )
    assert list(nodes_of(block)) == [block, *block.body, Assign("x = 1"), inner, *inner.body]


def test_statements_that_are_texts():
    assert parse("EXECUTE IMMEDIATE 'SELECT ?' INTO x USING 1;") == ExecuteImmediate("'SELECT ?'", "x", "1")
    assert parse("EXECUTE IMMEDIATE q INTO a, s.b USING (1 AS c, f(2, d) e)") == ExecuteImmediate(
        "q", "a, s.b", "1 AS c, f(2, d) e"
    )
    assert parse("EXECUTE IMMEDIATE q USING (1), (b)") == ExecuteImmediate("q", using="(1), (b)")
    assert parse("EXECUTE IMMEDIATE concat(q, ' FROM t')") == ExecuteImmediate("concat(q, ' FROM t')")
    assert parse("EXECUTE something") is None
