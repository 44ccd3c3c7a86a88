"""Calls of ``read_blob`` in queries."""

from __future__ import annotations

import pytest

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.rewriting.blob_calls import with_blob_calls

pytest.importorskip("sqlglot")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT read_blob(b) FROM t", "SELECT <b> AS `read_blob(b)` FROM t"),
        ("SELECT id, READ_BLOB( t.`my b` ) AS x FROM t", "SELECT id, <t.`my b`> AS x FROM t"),
        ("SELECT DISTINCT Read_Blob(`b`), n FROM t", "SELECT DISTINCT <`b`> AS `read_blob(b)`, n FROM t"),
        (
            "WITH w AS (SELECT read_blob(b) FROM t) SELECT length(read_blob(c)) FROM w WHERE read_blob(d) = X'00'",
            "WITH w AS (SELECT <b> AS `read_blob(b)` FROM t) SELECT length(<c>) FROM w WHERE <d> = X'00'",
        ),
        (
            "SELECT coalesce(read_blob(a), read_blob(s.b)) FROM t -- read_blob(x)",
            "SELECT coalesce(<a>, <s.b>) FROM t -- read_blob(x)",
        ),
        ("SELECT 'read_blob(b)', read_blob, `read_blob`, db.read_blob(b) FROM t", None),
        ("SELECT read_blob FROM t", None),
        ("SELECT 1", None),
    ],
)
def test_calls(query: str, expected: str | None) -> None:
    assert with_blob_calls(query, lambda blob: f"<{blob}>") == (query if expected is None else expected)


@pytest.mark.parametrize("arguments", ["", "b, c"])
def test_other_arguments(arguments: str) -> None:
    with pytest.raises(SqlSyntaxError, match=rf"read_blob takes one argument.*\({arguments}\)"):
        with_blob_calls(f"SELECT read_blob({arguments}) FROM t", str)


def test_calls_inside_of_calls():
    with pytest.raises(SqlSyntaxError, match="takes one argument, a column of the type BLOB"):
        with_blob_calls("SELECT read_blob(read_blob(b)) FROM t", lambda blob: f"f({blob})")
