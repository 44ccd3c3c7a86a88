"""`pyhudi.sql.rewriting.identifier_clauses`."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot")

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.rewriting.identifier_clauses import with_plain_identifiers


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("SELECT * FROM IDENTIFIER('db.t')", "SELECT * FROM `db`.`t`"),
        ("INSERT INTO identifier(:t) VALUES (1)", "INSERT INTO `a`.`b c` VALUES (1)"),
        ("SELECT IDENTIFIER('x') FROM t WHERE identifier = 1", "SELECT `x` FROM t WHERE identifier = 1"),
        ("SELECT * FROM IDENTIFIER('a' || 'b')", "SELECT * FROM IDENTIFIER('a' || 'b')"),
        ("SELECT * FROM IDENTIFIER(:unknown)", "SELECT * FROM IDENTIFIER(:unknown)"),
        ('SELECT "a" FROM t', 'SELECT "a" FROM t'),
    ],
)
def test_identifier_clauses(text, plain):
    assert with_plain_identifiers(text, {"t": "a.`b c`", "n": 1}) == plain


def test_names_in_double_quotes():
    text = """UPDATE "t" SET "a b" = 'say "x"', `c"d` = "e`f" """
    assert with_plain_identifiers(text, double_quoted=True) == """UPDATE `t` SET `a b` = 'say "x"', `c"d` = `e``f` """


def test_a_clause_cannot_bring_other_sql():
    with pytest.raises(SqlSyntaxError, match=r"IDENTIFIER\('t; DROP TABLE u'\) is not a name"):
        with_plain_identifiers("SELECT * FROM IDENTIFIER(:t)", {"t": "t; DROP TABLE u"})


def test_arguments_that_are_computed():
    asked = []

    def evaluate(expression):
        asked.append(expression)
        return {"'a' || f(1)": "a.b", "x": 1}.get(expression)

    text = "SELECT IDENTIFIER('c') FROM IDENTIFIER('a' || f(1)), IDENTIFIER(x), IDENTIFIER(y"
    plain = "SELECT `c` FROM `a`.`b`, IDENTIFIER(x), IDENTIFIER(y"
    assert with_plain_identifiers(text, evaluate=evaluate) == plain
    assert asked[:2] == ["'a' || f(1)", "x"]
