"""Names of tables in scripts that compute the statements they execute."""

from __future__ import annotations

import pytest

from pyhudi.sql.computed_texts import names_in_computed_texts
from pyhudi.sql.parsers.statement_parser import parse
from pyhudi.sql.scripts.script_nodes import Script


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("EXECUTE IMMEDIATE 'SELECT 1 FROM t';", ()),
        ("SET q = 'SELECT 1 FROM t';", ()),
        ("SET q = 'DELETE FROM ' || 'db.t'; EXECUTE IMMEDIATE q;", (("db", "t"),)),
        ("EXECUTE IMMEDIATE concat('INSERT INTO `a b`.c VALUES (', '1)');", (("a b", "c"),)),
        ("EXECUTE IMMEDIATE concat('DELETE FROM d WHERE x = ''', s, '''');", (("d",), ("x",))),
        ("IF true THEN EXECUTE IMMEDIATE 'TABLE ' || 'x.y.z'; END IF;", (("x", "y", "z"),)),
        ("EXECUTE IMMEDIATE 'SELECT ' || '1 + 2. ';", ()),
        ("EXECUTE IMMEDIATE 'a.b.c.d' || '.';", ()),
        ("EXECUTE IMMEDIATE q;", ()),
    ],
)
def test_names(body: str, names: tuple[tuple[str, ...], ...]) -> None:
    script = parse(f"BEGIN {body} END")
    assert isinstance(script, Script)
    assert names_in_computed_texts(script) == names
