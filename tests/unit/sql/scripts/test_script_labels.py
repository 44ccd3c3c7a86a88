"""Variables with the label of their block in statements of scripts."""

from __future__ import annotations

import pytest

from pyhudi.sql.scripts.script_labels import with_variables

pytest.importorskip("sqlglot")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT l.x, L . `X` FROM t", "SELECT V, V FROM t"),
        ("SET VARIABLE l.x = l.x + x", "SET VARIABLE V = V + x"),
        ("SELECT l.x.field, array(l.x)[l.x]", "SELECT V.field, array(V)[V]"),
        ("EXECUTE IMMEDIATE 'SELECT l.x' INTO l.x USING l.x", "EXECUTE IMMEDIATE 'SELECT l.x' INTO V USING V"),
        ("SELECT l.y, t.l.x, f(1).l.x, l.* FROM db.t", "SELECT l.y, t.l.x, f(1).l.x, l.* FROM db.t"),
        # columns of a table come before variables
        ("SELECT l.x FROM t AS l", "SELECT l.x FROM t AS l"),
        ("SELECT l.x FROM `L`", "SELECT l.x FROM `L`"),
        ("SELECT l.x, 'l', \"l\" -- l\n FROM t", "SELECT V, 'l', \"l\" -- l\n FROM t"),
        ("SELECT outer.x FROM t LEFT OUTER JOIN u", "SELECT W FROM t LEFT OUTER JOIN u"),
        ("SELECT 'not a text", "SELECT 'not a text"),
    ],
)
def test_variables_have_their_names_in_the_session(text: str, expected: str) -> None:
    names = {("l", "x"): "V", ("outer", "x"): "W"}
    assert with_variables(text, lambda label, name: names.get((label.lower(), name.lower()))) == expected
