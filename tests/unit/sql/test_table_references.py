"""Tables in queries, and other names in their places."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("sqlglot")

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql import table_references
from pyhudi.sql.table_query_shorthand import expand_table_statements
from pyhudi.sql.table_references import find_references, replaced, streamed_names
from pyhudi.sql.time_travel_clause import TimeTravel


def swapped(query: str) -> str:
    """The query with every table t by the name X."""
    found = find_references(query)
    assert found is not None
    return replaced(query, [(ref, "X") for ref in found if ref.name[-1] in ("t", "hudi_query_timeline")], lambda n: n)


CASES = {
    "select t.a from t": "select t.a from X AS t",
    "select x.a, ' t ' from /* t */ db.t x where exists (select 1 from `db`.`t` where b = 1)": (
        "select x.a, ' t ' from /* t */ X x where exists (select 1 from X AS t where b = 1)"
    ),
    "select db.t.a, t.b from db.t": "select t.a, t.b from X AS t",
    "with t as (select * from t) select * from t": "with t as (select * from X AS t) select * from t",
    "with a as (select 1), t as (select * from a) select * from t join db.t using (a)": (
        "with a as (select 1), t as (select * from a) select * from t join X AS t using (a)"
    ),
    "select * from t timestamp as of '2024-01-01' where a = 1": "select * from X AS t where a = 1",
    "select * from t version as of 20240101 as v join t for system_time as of current_timestamp() w": (
        "select * from X as v join X w"
    ),
    "select * from t timestamp as of date '2024-01-01'": "select * from X AS t",
    "select * from hudi_query_timeline('t', true) q, hudi_query_timeline('u')": (
        "select * from X q, X AS hudi_query_timeline"
    ),
    "select 1 union all select a from u where b in (select b from t)": (
        "select 1 union all select a from u where b in (select b from X AS t)"
    ),
    "select * from t@v20240101 where a = 1": "select * from X AS t where a = 1",
    "values (1)": "values (1)",
    "from t select a": "from X AS t select a",
    "select * from t lateral view explode(a) e as b": "select * from X AS t lateral view explode(a) e as b",
}


BEYOND_SQLGLOT = {
    "select x.a from t@20240101000000000 x join db.t@v3 |> where a = 1": (
        "select x.a from X x join X AS t |> where a = 1"
    ),
    "from t |> set a = a + 1 |> as x |> where x.a > 2": "from X AS t |> set a = a + 1 |> as x |> where x.a > 2",
    "from db.t |> where db.t.a = 1 |> drop b |> union all select db.t.* from `db`.t tablesample (5 rows)": (
        "from X AS t |> where t.a = 1 |> drop b |> union all select t.* from X tablesample (5 rows) AS t"
    ),
    "select values, x.update from t version as of 3 x, (t join u on t.a = u.a, (v)), t": (
        "select values, x.update from X x, (X AS t join u on t.a = u.a, (v)), X AS t"
    ),
    "select values from u w natural join t where exists (select 1 from t where t is distinct from t) order by a, t": (
        "select values from u w natural join X AS t where exists (select 1 from X AS t where t is distinct from t) "
        "order by a, t"
    ),
    "select any, extract(year from t), trim(both from t), f(t, t) from range(3) t, lateral (select 1) t, t as z": (
        "select any, extract(year from t), trim(both from t), f(t, t) from range(3) t, lateral (select 1) t, X as z"
    ),
    "with t as (select values from t) select * from t join db.t using (a)": (
        "with t as (select values from X AS t) select * from t join X AS t using (a)"
    ),
    "with recursive t (n) max recursion level 9 as (select values from t) select * from t": (
        "with recursive t (n) max recursion level 9 as (select values from t) select * from t"
    ),
    "select values from (with t as (select 1) select * from t) join t": (
        "select values from (with t as (select 1) select * from t) join X AS t"
    ),
    "select db.t.update, t.a from db.t join other.t on t.b = db.t.b": (
        "select _pyhudi_29_t.update, t.a from X AS _pyhudi_29_t join X AS t on t.b = _pyhudi_29_t.b"
    ),
    "select values from hudi_query_timeline('t', true) q, values (1) as v(a), t": (
        "select values from X q, values (1) as v(a), X AS t"
    ),
    f"select {'(' * 300}a{')' * 300} from t": f"select {'(' * 300}a{')' * 300} from X AS t",
    "select from, values, a = from, t.from, then, table from t, u where from > 1": (
        "select from, values, a = from, t.from, then, table from X AS t, u where from > 1"
    ),
    "select values, a::array<int> from t": "select values, a::array<int> from X AS t",
    "select any from t lateral view explode(a) u as t, b": "select any from X AS t lateral view explode(a) u as t, b",
}
"""Queries that sqlglot cannot parse."""


@pytest.mark.parametrize("query", CASES)
def test_tables_are_found(query):
    assert swapped(query) == CASES[query]


@pytest.mark.parametrize("query", [*CASES, *BEYOND_SQLGLOT])
def test_tables_are_found_without_a_parser(monkeypatch, query):
    monkeypatch.setattr(table_references, "syntax_tree", lambda _: None)
    assert swapped(query) == {**CASES, **BEYOND_SQLGLOT}[query]


@pytest.mark.parametrize("query", BEYOND_SQLGLOT)
def test_tables_are_found_in_queries_that_sqlglot_cannot_parse(query):
    assert swapped(query) == BEYOND_SQLGLOT[query]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT id FROM STREAM t", [("t",)]),
        ("SELECT id FROM a, stream(db.t) AS s JOIN STREAM b ON true", [("db", "t"), ("b",)]),
        ("INSERT INTO t FROM STREAM t", [("t",)]),
        ("SELECT * FROM (SELECT 1 FROM (STREAM t))", [("t",)]),
        ("SELECT id, stream b FROM a", []),
        ("SELECT stream b, max(stream) FROM a ORDER BY id, stream", []),
        ("SELECT id FROM stream", []),
    ],
)
def test_streams_are_told_from_columns_of_that_name(query, names):
    assert [*streamed_names(query)] == names


def test_times_and_arguments():
    found = find_references(
        "select * from a timestamp as of '2024', b version as of 3, hudi_table_changes('t', 'cdc', 1)"
    )
    assert [(r.name, r.time_travel, r.arguments) for r in found] == [
        (("a",), TimeTravel("'2024'", is_version=False), None),
        (("b",), TimeTravel("3", is_version=True), None),
        (("hudi_table_changes",), None, ("t", "cdc", "1")),
    ]
    with pytest.raises(SqlSyntaxError, match="literals"):
        find_references("select * from hudi_table_changes(t)")


@pytest.mark.parametrize(
    "time",
    [
        "current_timestamp() - INTERVAL 1 DAY",
        "current_timestamp - interval '1' day * 2",
        "now() - interval 1 day 2 hours",
        "interval '1:30' hour to minute + DATE '2024-01-01'",
        "('2024' || '-01-01')",
        "'2024' || '-01-01'",
        "CASE WHEN true THEN '2024' END",
        "-1",
        ":ts",
        "'2024-01-01'::timestamp",
    ],
)
def test_times_are_expressions(time):
    for after in ("", " x", " AS x WHERE a = 1", " JOIN u ON a = b"):
        assert find_references(f"SELECT * FROM t TIMESTAMP AS OF {time}{after}")[0].time_travel.value == time


def test_aliases_follow_samples():
    for text, expected in {
        "SELECT t.a FROM t TABLESAMPLE (10 ROWS) WHERE t.a = 1": "X TABLESAMPLE (10 ROWS) AS t WHERE",
        "SELECT t.a FROM t TABLESAMPLE (5 PERCENT) REPEATABLE (7)": "X TABLESAMPLE (5 PERCENT) REPEATABLE (7) AS t",
        "SELECT x.a FROM t TABLESAMPLE (10 ROWS) AS x": "X TABLESAMPLE (10 ROWS) AS x",
    }.items():
        assert expected in swapped(text)


def test_tables_of_two_databases_are_told_apart():
    query = "SELECT a.t.x, (SELECT max(b.t.y) FROM b.t WHERE b.t.id = a.t.id) FROM a.t WHERE a.t.x > 1"
    inner, outer = find_references(query)
    assert replaced(query, [(inner, "V"), (outer, "W")], str) == (
        "SELECT _pyhudi_70_t.x, (SELECT max(_pyhudi_38_t.y) FROM V AS _pyhudi_38_t WHERE _pyhudi_38_t.id = "
        "_pyhudi_70_t.id) FROM W AS _pyhudi_70_t WHERE _pyhudi_70_t.x > 1"
    )
    aliased = "SELECT (SELECT max(t.y) FROM b.u AS t WHERE t.id = a.t.id) FROM a.t"
    (_, outer) = find_references(aliased)
    assert replaced(aliased, [(outer, "W")], str) == (
        f"SELECT (SELECT max(t.y) FROM b.u AS t WHERE t.id = _pyhudi_{outer.start}_t.id) "
        f"FROM W AS _pyhudi_{outer.start}_t"
    )


def test_longer_qualifiers_are_found():
    query = "SELECT shop.t.id, s.x, t.s.x, spark_catalog.shop.t.id FROM t JOIN shop.t AS u ON Shop.T.id = 1"
    (own, full) = find_references(query)
    assert [head for head, *_ in own.qualifiers.longer] == [
        ("shop", "t"),
        ("spark_catalog", "shop", "t"),
        ("shop", "t"),
    ]
    assert [head for head, *_ in full.qualifiers.longer] == [("spark_catalog", "shop", "t")]


@pytest.mark.parametrize(
    "query", ["select 'x from t", "select values from t version as of", "select values from (", ""]
)
def test_what_is_not_understood_is_left_to_spark(query):
    assert not find_references(query)


@pytest.mark.parametrize(
    ("query", "long"),
    [
        ("TABLE rides", "SELECT * FROM rides"),
        ("table shop.`a b` ORDER BY id", "SELECT * FROM shop.`a b` ORDER BY id"),
        ("TABLE a UNION ALL TABLE b", "SELECT * FROM a UNION ALL SELECT * FROM b"),
        ("WITH a AS (TABLE b) TABLE a", "WITH a AS (SELECT * FROM b) SELECT * FROM a"),
        ("SELECT * FROM f(TABLE a PARTITION BY b)", "SELECT * FROM f(TABLE(SELECT * FROM a) PARTITION BY b)"),
        ("SELECT * FROM f(1, TABLE(a), 2)", "SELECT * FROM f(1, TABLE(SELECT * FROM a), 2)"),
        ("SELECT * FROM f(g(1), TABLE(a), 2)", "SELECT * FROM f(g(1), TABLE(SELECT * FROM a), 2)"),
        (
            "SELECT * FROM f(x => TABLE a, y => TABLE(b), z => TABLE(SELECT 1))",
            "SELECT * FROM f(x => TABLE(SELECT * FROM a), y => TABLE(SELECT * FROM b), z => TABLE(SELECT 1))",
        ),
        ("SELECT * FROM f(TABLE (s.a) ORDER BY b)", "SELECT * FROM f(TABLE(SELECT * FROM s.a) ORDER BY b)"),
        ("FROM a |> UNION ALL TABLE b |> LIMIT 1", "FROM a |> UNION ALL SELECT * FROM b |> LIMIT 1"),
        (
            "SELECT ' (TABLE x)' FROM /* (TABLE z) */ (TABLE b)",
            "SELECT ' (TABLE x)' FROM /* (TABLE z) */ (SELECT * FROM b)",
        ),
        *(
            (query, query)
            for query in (
                "TABLE",
                "TABLE 'x",
                "SELECT table b, (table IS NULL), (table AND c) FROM table",
                "SELECT * FROM (SELECT f(a), table(b) FROM c) WHERE a IN (1, table(b))",
                "WITH b AS (SELECT 1), table (a) AS (SELECT 2) SELECT * FROM table",
            )
        ),
    ],
)
def test_the_short_form_of_queries(query, long):
    assert expand_table_statements(query) == long


def test_options_after_a_table():
    query = (
        "select t.a from db.t with ('as.of.instant' = '3', k 5) tablesample (1 rows), u version as of 2 with (k=1) x"
    )
    found = find_references(query)
    assert found is not None
    table, other = found
    assert table.options == (("as.of.instant", "3"), ("k", "5"))
    assert (query[table.start : table.end], query[table.end : table.options_end]) == (
        "db.t",
        " with ('as.of.instant' = '3', k 5)",
    )
    assert (other.options, query[other.start : other.end], other.alias_at) == ((("k", "1"),), "u version as of 2", None)
    shown = replaced(query, [(replace(table, end=table.options_end), "X"), (other, "Y")], lambda name: name)
    assert shown == "select t.a from X tablesample (1 rows) AS t, Y with (k=1) x"


@pytest.mark.parametrize(("text", "travel"), [("t@v12", TimeTravel("12", True)), ("t@12 x", TimeTravel("12", False))])
def test_times_and_versions_after_an_at_sign(text, travel):
    found = find_references(f"select * from {text}")
    assert found is not None
    assert [one.time_travel for one in found] == [travel]
