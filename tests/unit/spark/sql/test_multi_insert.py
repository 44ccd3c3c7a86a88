"""Several INSERTs after one FROM."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from pyhudi.errors import QueryError
from pyhudi.spark.sql.commands.dml import multi_insert
from pyhudi.sql.statements import MultiInsert

STATEMENT = MultiInsert((("t",), ("u",)), "FROM s", ("INSERT INTO t SELECT 1", "INSERT INTO u SELECT f(2)"))


@pytest.mark.parametrize(
    "lines",
    [
        ["Error occurred during query planning: ", "[CAUSE] what is wrong", "in line 1"],
        ["== Physical Plan ==\norg.apache.spark.sql.AnalysisException: [CAUSE] what is wrong\nin line 1"],
    ],
)
def test_none_is_run_if_a_later_one_cannot_be_planned(monkeypatch, lines):
    """EXPLAIN has the error in one row, or each line of it in a row of its own."""
    monkeypatch.setattr(multi_insert, "find_table", lambda *_: SimpleNamespace(location="/t"))
    monkeypatch.setattr(multi_insert, "rewrite_query", lambda *_, **__: SimpleNamespace(locations=()))
    values = SimpleNamespace(frames_as_views=lambda _: nullcontext(), with_literals=lambda statement: statement)
    call = SimpleNamespace(spark=None, args=None, values=values)
    run: list[str] = []

    def run_one(text):
        run.append(text)
        return SimpleNamespace(collect=lambda: [(line,) for line in lines])

    with pytest.raises(QueryError, match=r"nothing was written.*: \[CAUSE\] what is wrong\nin line 1$"):
        multi_insert.run_inserts(call, STATEMENT, run_one)
    assert run == ["EXPLAIN FROM s INSERT INTO u SELECT f(2)"]
