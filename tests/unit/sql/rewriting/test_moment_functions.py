"""`pyhudi.sql.rewriting.moment_functions`."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot")

from pyhudi.sql.rewriting.moment_functions import with_moment_columns

COLUMNS = {"current_timestamp()": "T", "current_date()": "D", "localtimestamp()": "L"}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("current_timestamp()", "T"),
        ("s.id + 1", "s.id + 1"),
        ("NOW ( ) > s.at AND Current_Date = curdate()", "T > s.at AND D = D"),
        ("localtimestamp - INTERVAL 1 DAY", "L - INTERVAL 1 DAY"),
        ("'now()' || /* now() */ now", "'now()' || /* now() */ now"),
        ("s.current_date = t.now AND current_date.x = current_date(1)",) * 2,
        ("`current_date` = taken AND current_timestamp = T", "`current_date` = taken AND T = T"),
        ("coalesce(s.at, current_timestamp)", "coalesce(s.at, T)"),
        ("(SELECT max(at) FROM u WHERE at < now())",) * 2,
        ("now() || '",) * 2,
    ],
)
def test_columns_take_the_places_of_functions(text, changed):
    assert with_moment_columns(text, COLUMNS, {"id"}) == changed


def test_columns_of_the_table_come_first():
    text = "current_date < current_date() AND localtimestamp = 1"
    assert with_moment_columns(text, COLUMNS, {"current_date"}) == "current_date < D AND L = 1"
